"""SQLite files for all backends: opened safely, one thread at a time, errors translated."""

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from rushes.domain.errors import NoRoom, RushesError, StoreAway, WrongHome
from rushes.files import PRIVATE_FILE, open_private, replacing
from rushes.telemetry import effect

BUSY_SECONDS = 5.0
MEMORY = ":memory:"  # no file at all
DURABLE = ("synchronous = FULL", "foreign_keys = ON", "temp_store = MEMORY")
DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_AWAY = frozenset(
    {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY,
     sqlite3.SQLITE_PERM, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_INTERRUPT}
)  # fmt: skip


class ClosedFile(StoreAway):
    """Another thread has closed the file meanwhile."""


class SqliteFile:
    """A file and its one connection, which threads use in turn: SQLite has one writer anyway."""

    def __init__(
        self, path: Path, name: str, made: Callable[[sqlite3.Connection], object], settings: Sequence[str] = DURABLE
    ) -> None:
        self._lock, self._name = threading.Lock(), name
        with translate_errors(name):
            self.db = connect(path, settings)
            try:
                made(self.db)
            except BaseException:
                self.db.close()
                raise

    @contextlib.contextmanager
    def write(self, verb: str) -> Iterator[sqlite3.Connection]:
        """A transaction that is committed at the end, or leaves no trace."""
        with self._lock, translate_errors(self._name), _undone(self.db):
            self.db.execute("BEGIN IMMEDIATE")
            yield self.db
            with effect(f"{self._name}.{verb}"):
                self.db.execute("COMMIT")

    @contextlib.contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """One look: all that it reads is of one moment."""
        with self._lock, translate_errors(self._name), _undone(self.db):
            self.db.execute("BEGIN")
            yield self.db

    def backup(self, to: Path) -> None:
        """A whole copy while others go on writing; `to` is there complete or not at all."""
        with (
            replacing(to, mode=PRIVATE_FILE) as part,
            self._lock,
            translate_errors(self._name),
            contextlib.closing(sqlite3.connect(part)) as copy,
        ):
            self.db.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self.db.close()


def connect(path: Path, settings: Sequence[str]) -> sqlite3.Connection:
    """A connection that writes ahead, waits for others and begins no transaction by itself.

    SQLite gives its logs the mode of the file, which is the owner's alone.
    """
    if str(path) != MEMORY:
        with contextlib.suppress(OSError):  # it is there, or SQLite says what is wrong
            os.close(open_private(path, os.O_RDWR | os.O_EXCL))
    db = sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=256
    )
    try:
        _write_ahead(db)
        for setting in settings:
            db.execute(f"PRAGMA {setting}")
    except BaseException:
        db.close()
        raise
    return db


@contextlib.contextmanager
def whole(db: sqlite3.Connection) -> Iterator[None]:
    """All that is written inside, or nothing."""
    with _undone(db):
        db.execute("BEGIN IMMEDIATE")
        yield
        db.execute("COMMIT")


def run_script(db: sqlite3.Connection, script: str) -> None:
    """Run every statement of a script in the transaction that is open."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            db.execute(statement)
            statement = ""


def code(e: sqlite3.Error) -> int:
    """The primary code of an error."""
    return int(getattr(e, "sqlite_errorcode", 0) or 0) & 0xFF


@contextlib.contextmanager
def translate_errors(name: str) -> Iterator[None]:
    """Errors of SQLite as what follows from them for the part of that name."""
    try:
        yield
    except sqlite3.Error as e:
        raise _translate(e, name) from e


@contextlib.contextmanager
def _undone(db: sqlite3.Connection) -> Iterator[None]:
    try:
        yield
    finally:
        if db.in_transaction:  # a commit, or an I/O error, has ended it already
            db.execute("ROLLBACK")


def _write_ahead(db: sqlite3.Connection) -> None:
    """No busy timeout holds for this one."""
    end = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as e:
            if code(e) != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(0.01)
        else:
            return


def _translate(e: sqlite3.Error, name: str) -> RushesError:
    if code(e) == sqlite3.SQLITE_FULL:
        return NoRoom(f"no disk space to write the {name}: {e}")
    if code(e) in _AWAY:
        return StoreAway(f"no response from the {name}: {e}")
    if isinstance(e, sqlite3.ProgrammingError) and "closed database" in str(e):
        return ClosedFile(f"the {name} was closed")
    if code(e) in DAMAGED:
        return WrongHome(f"the file of the {name} is damaged: {e}", "Restore a backup with: rushes restore")
    return RushesError(f"the {name} failed: {e}")
