"""One film of a bucket home: its database is worked on here, while its lock is ours, and stored whole in the bucket."""

import contextlib
import hashlib
import shutil
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from rushes.bucket.conditional import ConditionalBucket
from rushes.domain.errors import LeaseLost
from rushes.domain.event import EventType
from rushes.domain.worker import Incarnation
from rushes.files import make_private, write_whole
from rushes.ledger.bucket.lock import FilmLock
from rushes.ledger.clock import Millis, Seconds
from rushes.ledger.sql.job_row import JobRows
from rushes.ledger.sqlite import SqliteLedger
from rushes.ledger.sqlite.store import Transaction
from rushes.sqlite.file import SqliteFile

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
        self._bucket, self._folder = bucket, folder / hashlib.sha256(name.encode()).hexdigest()[:24] / str(lock.token)
        self._database, self._base = self._folder / DATABASE, self._folder / "etag"
        self.etag, self._written, self._stored = "", 0, 0
        self._storing, self._closed = threading.Lock(), False
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
            self.ledger.stamp(self.lock.token, me.id, self.lock.taken_from)
            self.touch()
            with contextlib.suppress(LeaseLost):
                self.store()
                return self._drop_others()
            self.ledger.close()
            shutil.rmtree(self._folder)  # the former holder came first with a last write: take that up
            if not self.lock.renew():
                break
        raise LeaseLost(f"{self.name} was taken by another process")

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
            labels = {TOKEN: str(self.lock.token), OPEN: "0" if self.ledger.quiet else "1"}
            etag = self._bucket.swap(database_key(self.name), copy.read_bytes(), self.etag, labels, POINT)
            copy.unlink()
            if etag is None:
                raise LeaseLost(f"another process has written {self.name}")
            self.etag, self._stored = etag, written
            write_whole(self._base, etag.encode())

    def release(self) -> None:
        """Store what is left and let others have it."""
        self.store()
        self._close()
        self.lock.release()

    def forget(self) -> None:
        """It is not ours any more: what is here is not taken up again."""
        self._close()
        shutil.rmtree(self._folder)

    def _close(self) -> None:
        with self._storing:
            self._closed = True
            self.ledger.close()

    def _fetch(self) -> None:
        """What an earlier process of this machine left is newer than the bucket's version, if that is its base."""
        head = self._bucket.get(database_key(self.name), body=False)
        self.etag = head.etag if head else ""
        left = [base.with_name(DATABASE) for base in self._others("etag") if base.read_text() == self.etag]
        if left and left[0].exists():
            SqliteFile(left[0], "ledger", lambda _db: None).backup(self._database)
        elif head and (stored := self._bucket.get(database_key(self.name))):
            self.etag = stored.etag
            write_whole(self._database, stored.data)

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
