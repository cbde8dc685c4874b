"""One SQLite file, opened safely: settings, turns to write, and foreign errors in our own words."""

import contextlib
import json
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from rushes.domain.errors import NoRoom, RushesError, StoreAway, WrongHome
from rushes.ledger.clock import Millis, Seconds
from rushes.ledger.migrations import migrate
from rushes.ledger.statements import named
from rushes.telemetry import effect

Row = tuple[Any, ...]
encode = json.JSONEncoder(separators=(",", ":")).encode  # ASCII: names may hold bytes that are no text
BUSY_SECONDS = 5.0
BULK = 100
SQL: Mapping[str, str] = named(*(f"sqlite_{part}.sql" for part in ("take", "work", "results", "steer", "look")))

_SETTINGS = (
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    "PRAGMA cache_size = -65536",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA wal_autocheckpoint = 4000",
)
_AWAY = frozenset(
    {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY,
     sqlite3.SQLITE_PERM, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_INTERRUPT}
)  # fmt: skip
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


@cache
def _bulk(insert: str) -> str:
    """An insert of one row as an insert of many."""
    head, values, tail = re.split(r"(\(\?[?, ]*\))", insert)
    return head + ", ".join([values] * BULK) + tail


class Turn:
    """One transaction: its moment by each clock, and the named statements it runs."""

    __slots__ = ("_db", "awake", "now", "wall")

    def __init__(self, db: sqlite3.Connection, now: float, awake: float, wall: int) -> None:
        self._db, self.now, self.awake, self.wall = db, now, awake, wall

    def run(self, name: str, *values: object) -> sqlite3.Cursor:
        """Run a statement."""
        return self._db.execute(SQL[name], values)

    def all(self, name: str, *values: object) -> list[Row]:
        """All its rows."""
        return self._db.execute(SQL[name], values).fetchall()

    def one(self, name: str, *values: object) -> Row | None:
        """Its first row."""
        row: Row | None = self._db.execute(SQL[name], values).fetchone()
        return row

    def column(self, name: str, *values: object) -> list[Any]:
        """The first value of each row."""
        return [row[0] for row in self._db.execute(SQL[name], values)]

    def many(self, name: str, rows: list[Row]) -> int:
        """Run a statement once per row; how many rows it changed."""
        return max(0, self._db.executemany(SQL[name], rows).rowcount)

    def bulk(self, name: str, rows: list[Row]) -> int:
        """Run an insert for many rows: a hundred in one statement take two thirds of the time."""
        whole = len(rows) - len(rows) % BULK
        added = 0
        for begin in range(0, whole, BULK):
            values = list(chain.from_iterable(rows[begin : begin + BULK]))
            added += self._db.execute(_bulk(SQL[name]), values).rowcount
        return added + self.many(name, rows[whole:])


class Store:
    """The file and its one connection, which threads use in turn: SQLite has one writer anyway."""

    def __init__(self, path: Path, seconds: Seconds, awake: Seconds, millis: Millis) -> None:
        self._lock = threading.Lock()
        self._seconds, self._awake, self._millis = seconds, awake, millis
        with _our_words():
            self._db = _connect(path)
            try:
                _prepare(self._db)
            except BaseException:
                self._db.close()
                raise

    @contextlib.contextmanager
    def write(self, verb: str) -> Iterator[Turn]:
        """A transaction that is committed at the end, or leaves no trace."""
        with self._lock, _our_words():
            db = self._db
            db.execute("BEGIN IMMEDIATE")
            try:
                yield Turn(db, self._seconds(), self._awake(), self._millis())
                with effect(f"ledger.{verb}"):
                    db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise

    @contextlib.contextmanager
    def read(self) -> Iterator[Turn]:
        """One look: all that it reads is of one moment."""
        with self._lock, _our_words():
            self._db.execute("BEGIN")
            try:
                yield Turn(self._db, self._seconds(), self._awake(), self._millis())
            finally:
                if self._db.in_transaction:  # an I/O error has ended it already
                    self._db.execute("ROLLBACK")

    def backup(self, to: Path) -> None:
        """A whole copy while others go on writing; `to` is there complete or not at all."""
        part = to.with_name(to.name + ".part")
        part.unlink(missing_ok=True)
        with self._lock, _our_words(), contextlib.closing(sqlite3.connect(part)) as copy:
            self._db.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")
        part.replace(to)

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._db.close()


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=256
    )


def _prepare(db: sqlite3.Connection) -> None:
    _patiently(lambda: db.execute("PRAGMA journal_mode = WAL"))  # no busy timeout holds for this one
    for setting in _SETTINGS:
        db.execute(setting)
    migrate(db)


def _patiently(step: Callable[[], object]) -> None:
    end = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            step()
        except sqlite3.OperationalError as e:
            if _code(e) != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(0.01)
        else:
            return


@contextlib.contextmanager
def _our_words() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as e:
        raise _translated(e) from e


def _translated(e: sqlite3.Error) -> RushesError:
    code = _code(e)
    if code == sqlite3.SQLITE_FULL:
        return NoRoom(f"the ledger cannot be written: {e}")
    if code in _AWAY:
        return StoreAway(f"the ledger did not answer: {e}")
    if code in _DAMAGED:
        return WrongHome(f"the ledger is damaged: {e}", "Restore a backup with: rushes restore")
    return RushesError(f"the ledger failed: {e}")


def _code(e: sqlite3.Error) -> int:
    return int(getattr(e, "sqlite_errorcode", 0) or 0) & 0xFF  # the primary code
