"""One film of a bucket home: its database is worked on here, while its lock is ours, and stored whole in the bucket."""

import contextlib
import hashlib
import secrets
import shutil
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from rushes.bucket.conditional import WRITER, ConditionalBucket
from rushes.domain.errors import LeaseLost, RushesError, StoreAway
from rushes.domain.event import EventType
from rushes.domain.task import Lease
from rushes.domain.worker import Incarnation
from rushes.files import make_private, write_whole
from rushes.ledger.bucket.lock import FilmLock
from rushes.ledger.bucket.mailbox import Mailbox
from rushes.ledger.clock import Millis, Seconds
from rushes.ledger.sql.job_row import JobRows
from rushes.ledger.sqlite import SqliteLedger
from rushes.ledger.sqlite.store import Transaction
from rushes.sqlite.file import SqliteFile
from rushes.telemetry import log

FOLDER = "checkpoints"
DATABASE, LOCK = "ckpt.sqlite", "lock.json"
POINT = "checkpoint"  # where a test may kill the process
TOKEN, OPEN = "token", "open"  # labels of the database: who wrote it, and whether there is work left in it
_TRIES = 5  # of the first write, which a former holder may come before
IsGone = Callable[[Incarnation], bool]


class FilmLedger(SqliteLedger):
    """The ledger of one film in its local working copy."""

    def stamp(self, token: int, by: str, taken_from: str) -> None:
        """Write the fencing token; jobs that are open record from whom the film was taken."""
        self._write("stamp", lambda tx: _stamp(tx, token, by, taken_from))

    @property
    def token(self) -> int:
        """The fencing token of whoever wrote it last."""
        known: list[str] = self._read(lambda tx: tx.column("home", name="fencing_token"))
        return int(known[0]) if known else 0

    @property
    def quiet(self) -> bool:
        """Whether nothing in it is ready, leased, due or owed."""
        return bool(self._read(lambda tx: tx.column("quiet")[0]))


def _stamp(tx: Transaction, token: int, by: str, taken_from: str) -> None:
    tx.run("set_home", name="fencing_token", value=str(token))
    if taken_from:
        jobs = JobRows(tx)
        jobs.load(tx.column("unfinished_jobs"))
        for job in jobs:
            job.record(EventType.TAKEN_OVER, {"from": taken_from, "worker": by, "fencing_token": token})
        jobs.save()


class Film:
    """A film whose lock this process holds. Who finds the lock lost writes nothing more."""

    def __init__(self, bucket: ConditionalBucket, name: str, folder: Path, lock: FilmLock) -> None:
        """`folder` is where working copies of all films lie; each holding of a film has a copy of its own there."""
        self.name, self.lock = name, lock
        copies = folder / hashlib.sha256(name.encode()).hexdigest()[:24]
        self._bucket, self._folder = bucket, copies / f"{lock.token}-{secrets.token_hex(4)}"
        self._database, self._base = self._folder / DATABASE, self._folder / "etag"
        self.etag, self._written, self._stored = "", 0, 0
        self._storing, self._closed = threading.Lock(), False
        self._mailbox = Mailbox(bucket, f"{FOLDER}/{name}")
        self.ledger: FilmLedger

    @property
    def changed(self) -> bool:
        """Whether the bucket does not have all of it yet."""
        return self._stored != self._written

    def touch(self) -> None:
        """Something was written that the bucket must have."""
        self._written += 1

    def open(
        self, me: Incarnation, clock: Seconds | None, wall: Millis, is_gone: IsGone, places: Mapping[str, str]
    ) -> None:
        """Fetch the database, or go on with the copy that is here if the bucket has nothing newer, and make it ours.

        Raises:
            LeaseLost: another process has taken the film meanwhile.
        """
        make_private(self._folder.parent)
        for _ in range(_TRIES):
            make_private(self._folder)
            self._fetch()
            self.ledger = FilmLedger(
                self._database,
                clock=clock,
                wall=wall,
                host=me.host,
                boot=me.boot,
                is_gone=is_gone,
                take_over=True,
                places=places,
            )
            try:
                if self._make_ours(me):
                    self.do_requests()
                    return self._drop_others()
            except BaseException:
                self.forget()
                raise
            self.ledger.close()
            shutil.rmtree(self._folder)
        raise LeaseLost(f"{self.name} was taken by another process")

    def _make_ours(self, me: Incarnation) -> bool:
        """Store it under our token; False if a former holder came first with a last write, which is to be taken up."""
        last = self.ledger.token
        if last >= self.lock.token and not self.lock.renew(last + 1):
            raise LeaseLost(f"{self.name} was taken by another process")
        self.ledger.stamp(self.lock.token, me.id, self.lock.taken_from)
        self.touch()
        with contextlib.suppress(LeaseLost):
            self.store()
        return not self.changed

    def store(self) -> None:
        """Put the database into the bucket if it has changed.

        Raises:
            LeaseLost: another process has written it, or holds the lock.
            StoreAway: later, then.
        """
        with self._storing:
            written = self._written
            if written == self._stored or self._closed:
                return
            if not (self.lock.held or self.lock.renew()):
                raise LeaseLost(f"the lock of {self.name} was lost")
            copy = self._folder / f"{DATABASE}.copy"
            self.ledger.backup(copy)
            labels = {
                TOKEN: str(self.lock.token),
                OPEN: "0" if self.ledger.quiet else "1",
                WRITER: self.lock.writer,
            }
            etag = self._bucket.swap(database_key(self.name), copy.read_bytes(), self.etag, labels, POINT)
            copy.unlink()
            if etag is None:
                raise LeaseLost(f"another process has written {self.name}")
            self.etag, self._stored = etag, written
            write_whole(self._base, etag.encode())

    def claim(self, worker: str, lanes: Sequence[str], n: int, hinted: Collection[str] = ()) -> list[Lease]:
        """Leases that carry our token, which stands in the manifests that are made under them."""
        return [lease._replace(token=self.lock.token) for lease in self.ledger.claim(worker, lanes, n, hinted)]

    def do_requests(self) -> None:
        """Do what was asked of it while others could not write it.

        Raises:
            LeaseLost: another process has written it, or holds the lock.
            StoreAway: later, then.
        """
        keys = self._mailbox.apply(self.ledger)
        if keys:
            self.touch()
            self.store()
            self._mailbox.delete(keys)

    def release(self) -> None:
        """Store what is left and let others have it; a lock that cannot be deleted now ends by itself."""
        self.store()
        self.close()
        try:
            self.lock.release()
        except StoreAway as e:
            log.warning("the lock of %s could not be released: %s", self.name, e)

    def forget(self) -> None:
        """It is not ours any more: what is here is not taken up again."""
        self.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def close(self) -> None:
        """Write nothing more; what is here may be taken up again."""
        with self._storing:
            self._closed = True
            self.ledger.close()

    def _fetch(self) -> None:
        """What an earlier process of this machine left is newer than the bucket's version, if that is its base."""
        head = self._bucket.get(database_key(self.name), body=False)
        self.etag = head.etag if head else ""
        left = [base.with_name(DATABASE) for base in self._others("etag") if base.read_text() == self.etag]
        if any(self._taken_up(file) for file in left if file.exists()):
            return
        if head and (stored := self._bucket.get(database_key(self.name))):
            self.etag = stored.etag
            write_whole(self._database, stored.data)

    def _taken_up(self, file: Path) -> bool:
        try:
            with contextlib.closing(SqliteFile(file, "ledger", lambda _db: None)) as left:
                left.backup(self._database)
        except RushesError as e:
            log.warning("the working copy %s is not used: %s", file, e)
            return False
        return True

    def _others(self, name: str) -> list[Path]:
        return [path for path in self._folder.parent.glob(f"*/{name}") if path.parent != self._folder]

    def _drop_others(self) -> None:
        for folder in {path.parent for path in self._others("*")}:
            shutil.rmtree(folder, ignore_errors=True)


def database_key(film: str) -> str:
    """Where the database of a film is stored."""
    return f"{FOLDER}/{film}/{DATABASE}"


def lock_key(film: str) -> str:
    """Where the lock of a film is."""
    return f"{FOLDER}/{film}/{LOCK}"
