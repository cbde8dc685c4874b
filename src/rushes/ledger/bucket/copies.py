"""Copies of the films' databases for readers: fetched when their ETag in the bucket's list has changed."""

import hashlib
import resource
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rushes.bucket.conditional import ConditionalBucket, listed
from rushes.domain.errors import StoreAway, WrongHome
from rushes.domain.task import RENEW_SECONDS
from rushes.files import make_private, write_whole
from rushes.ledger.bucket.film import DATABASE, FOLDER, LOCK, OPEN, TOKEN, database_key
from rushes.ledger.bucket.mailbox import films_asked
from rushes.ledger.clock import Seconds
from rushes.ledger.sqlite import SqliteLedger
from rushes.telemetry import log

LOOK_SECONDS = 5.0  # between two lists of the bucket
STILL_SECONDS = 1.5 * RENEW_SECONDS  # a lock that has not changed for so long has missed a renewal
MOST_OPEN = 1000  # copies, of 0.5 MB and three files each
_FILES, _OTHER_FILES = 3, 400
_TRIES = 5  # of a copy that another process of this machine drops while it is opened


class CopiedLedger(SqliteLedger):
    """A copy that is only read: nobody moves in."""

    def _move_in(self, host: str, boot: str, take_over: bool, places: Mapping[str, str]) -> None:
        pass

    @property
    def whole(self) -> bool:
        """Whether it is what was fetched: opened just when it was dropped, it would be an empty file of that name."""
        return bool(self._read(lambda tx: tx.column("home", name="history")))


@dataclass(frozen=True, slots=True)
class FilmStat:
    """What is known of a film without its database: its version, its last token, and whether work is left in it."""

    etag: str
    token: int
    open: bool


class Copies:
    """Every film of the bucket as it was stored last."""

    def __init__(self, bucket: ConditionalBucket, folder: Path, clock: Seconds) -> None:
        self._bucket, self._folder, self._clock = bucket, folder, clock
        self._etags: dict[str, str] = {}  # as the bucket lists them
        self._copies: OrderedDict[str, tuple[str, CopiedLedger]] = OrderedDict()  # that are open; used last: at the end
        self._most = _most_open()
        self._quiet: dict[str, tuple[str, str]] = {}  # a version, and the cursor after which nothing changed in it
        self._stats: dict[str, FilmStat] = {}
        self._damaged: dict[str, str] = {}  # the version of a film that cannot be opened
        self._looked = float("-inf")
        self._lock = threading.RLock()
        self.locks: Mapping[str, tuple[str, float]] = {}  # of films: the version of each, and when it was seen first
        self._new_locks: set[str] = set()  # that nobody here has asked about
        self.asked: frozenset[str] = frozenset()  # films that something is asked of

    def names(self, *, now: bool = False) -> tuple[str, ...]:
        """Every film that has a database; the list is a few seconds old at most, or of `now`."""
        with self._lock:
            if now or self._clock() - self._looked >= LOOK_SECONDS:
                self._look()
            return tuple(self._etags)

    def ledger(self, name: str) -> CopiedLedger | None:
        """The copy of a film, a few seconds old at most; None if it has no database, or a damaged one."""
        with self._lock:
            self.names()
            etag, kept = self._etags.get(name), self._copies.get(name)
            if etag is None or self._damaged.get(name) == etag:
                return None
            try:
                if kept is None or kept[0] != etag:
                    kept = self._fetch(name, etag)
            except WrongHome as e:
                self.set_damaged(name, e)
            self._close_oldest(name)
            return kept[1] if kept else None

    def is_quiet(self, name: str, cursor: str) -> bool:
        """Whether this version is known to have nothing after that cursor."""
        return self._quiet.get(name) == (self._etags.get(name), cursor)

    def note_quiet(self, name: str, asked: SqliteLedger, cursor: str) -> None:
        """The copy that was asked has nothing after that cursor; one that was fetched meanwhile may have."""
        with self._lock:
            kept = self._copies.get(name)
            if kept and kept[1] is asked:
                self._quiet[name] = (kept[0], cursor)

    def set_damaged(self, name: str, error: WrongHome) -> None:
        """This version of a film cannot be opened: it is passed over, so that the others can be worked on."""
        log.error("skipped %s: %s", name, error)
        with self._lock:
            self._damaged[name] = self._etags.get(name, "")

    def stat(self, name: str) -> FilmStat:
        """What the labels of its database say; asked again when its version has changed."""
        with self._lock:
            known = self._stats.get(name)
            if known is None or known.etag != self._etags.get(name):
                head = self._bucket.get(database_key(name), body=False)
                labels = head.labels if head else {}
                token = labels.get(TOKEN, "")
                known = FilmStat(
                    listed(head.etag) if head else "", int(token) if token.isdecimal() else 0, labels.get(OPEN) != "0"
                )
                self._stats[name] = known
            return known

    def open_films(self) -> Iterator[str]:
        """Films in which work is left, or of which something is asked, those that nobody holds first."""
        return (name for name in self._sound_films() if self._is_open(name))

    def free_films(self) -> Iterator[str]:
        """Open films that may be taken. A lock that changes in the list is renewed: no request is made for its film."""
        return (name for name in self._sound_films() if not self._is_renewed(name) and self._is_open(name))

    def note(self, name: str, etag: str) -> None:
        """This process has just stored that version: readers see it before the next look."""
        with self._lock:
            self._etags[name] = listed(etag)

    def close(self) -> None:
        """Close every copy."""
        with self._lock:
            for _, ledger in self._copies.values():
                ledger.close()
            self._copies.clear()

    def _close_oldest(self, used: str) -> None:
        """A bucket may have more films than a process may have files."""
        if used in self._copies:
            self._copies.move_to_end(used)
        while len(self._copies) > self._most:
            _, (_, ledger) = self._copies.popitem(last=False)
            ledger.close()

    def _sound_films(self) -> list[str]:
        names = [
            name for name in self.names() if name not in self._damaged or self._damaged[name] != self._etags.get(name)
        ]
        return sorted(names, key=lambda name: name in self.locks)

    def _is_open(self, name: str) -> bool:
        return name in self.asked or self.stat(name).open

    def _is_renewed(self, name: str) -> bool:
        """A lock that is new is asked about once: its holder may be a process of this machine that is gone."""
        if name not in self.locks or name in self._new_locks:
            self._new_locks.discard(name)
            return False
        return self._clock() - self.locks[name][1] < STILL_SECONDS

    def _look(self) -> None:
        found = self._bucket.list(f"{FOLDER}/")
        self._etags = dict(_films(found, DATABASE))
        now, before = self._clock(), self.locks
        self.locks = {
            name: before[name] if name in before and before[name][0] == etag else (etag, now)
            for name, etag in _films(found, LOCK)
        }
        self._new_locks |= self.locks.keys() - before.keys()
        self.asked = films_asked(found, FOLDER)
        self._looked = now

    def _fetch(self, name: str, etag: str) -> tuple[str, CopiedLedger] | None:
        film, version = _short(name), _short(etag)
        file = self._folder / film / f"{version}.sqlite"
        for _ in range(_TRIES):
            if not file.exists():
                stored = self._bucket.get(database_key(name))
                if stored is None:
                    return None
                make_private(file.parent)
                write_whole(file, stored.data)
            ledger = CopiedLedger(file)
            if ledger.whole:
                break
            ledger.close()
            file.unlink(missing_ok=True)
        else:
            raise StoreAway(f"the copy of {name} is removed by other processes again and again")
        if name in self._copies:
            self._copies[name][1].close()
        for old in file.parent.glob("*.sqlite*"):
            if not old.name.startswith((version, ".")):  # a dot: another process of this machine writes it now
                old.unlink(missing_ok=True)  # what others have opened they read on
        self._copies[name] = (etag, ledger)
        return self._copies[name]


def _most_open() -> int:
    """As many as are wanted, or as this process may have files for; by itself it may often have 1024."""
    wanted, (soft, hard) = _FILES * MOST_OPEN + _OTHER_FILES, resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return max(1, (max(soft, allowed) - _OTHER_FILES) // _FILES) if allowed < wanted else MOST_OPEN


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _films(found: dict[str, str], last: str) -> Iterator[tuple[str, str]]:
    for key, etag in sorted(found.items()):
        if key.endswith(f"/{last}"):
            yield key.removeprefix(f"{FOLDER}/").removesuffix(f"/{last}"), etag
