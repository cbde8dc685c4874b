"""The file under the SQLite index: opened, found wrong and made anew, locked, and its errors translated."""

import contextlib
import fcntl
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from rushes.domain.errors import NoRoom, StoreAway
from rushes.index.searchable import VERSION as MOMENTS
from rushes.index.tokenizer import VERSION as WORDS
from rushes.sqlite.file import DAMAGED, code, connect, run_script, whole
from rushes.telemetry import effect

SCHEMA = 3  # 2: film time, sizes and voices; 3: moments, corrections, tracks
_VERSION = SCHEMA * 10_000 + MOMENTS * 100 + WORDS
_SETTINGS = ("synchronous = NORMAL",)  # a projection: what a power cut takes is followed again


class Database:
    """One connection, shared by the threads of a process; a file that is gone or damaged is made again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._guard = threading.RLock()
        self._open: sqlite3.Connection | None = None
        self._inode = 0

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The connection, for questions that see one state of the index."""
        with self._guard, self._translated():
            connection = self._connection()
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """The connection inside one transaction: all or none."""
        with effect("index"), self._guard, self._translated():
            connection = self._connection()
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    @contextlib.contextmanager
    def alone(self, patience: float) -> Iterator[bool]:
        """Hold the lock file; False if another has it for longer than that many seconds."""
        with self._lock_file() as file:
            until = time.monotonic() + patience
            while not _locked(file):
                if time.monotonic() >= until:
                    yield False
                    return
                time.sleep(0.02)
            yield True

    def reset(self) -> None:
        """Empty it in place, so that other processes see it too."""
        with self.writing() as connection:
            _create(connection)

    def close(self) -> None:
        """Close the connection; the next question opens it again."""
        with self._guard:
            if self._open:
                self._open.close()
            self._open = None

    def _connection(self) -> sqlite3.Connection:
        """The connection to the file that is there now: anybody may delete it at any time."""
        if self._open is None or _inode(self._path) != self._inode:
            self.close()
            try:
                self._open = self._opened()
            except sqlite3.DatabaseError as error:
                if code(error) not in DAMAGED:
                    raise
                self._discard(_inode(self._path))
                self._open = self._opened()
            self._inode = _inode(self._path)
        return self._open

    def _opened(self) -> sqlite3.Connection:
        if not self._path.exists():
            with self._made_by_one():
                self._remove_leftovers()
                return self._made_right(self._connected())
        connection = self._connected()
        if _version(connection) == _VERSION:
            return connection
        with self._made_by_one():
            return self._made_right(connection)

    def _connected(self) -> sqlite3.Connection:
        connection = connect(self._path, _SETTINGS)
        connection.row_factory = sqlite3.Row
        return connection

    def _made_right(self, connection: sqlite3.Connection) -> sqlite3.Connection:
        if _version(connection) != _VERSION:
            with whole(connection):
                _create(connection)
        return connection

    def _remove_leftovers(self) -> None:
        """Left-overs of a deleted file must not be taken for the journal of the new one."""
        if not self._path.exists():
            for ending in ("-wal", "-shm"):
                self._path.with_name(self._path.name + ending).unlink(missing_ok=True)

    @contextlib.contextmanager
    def _made_by_one(self) -> Iterator[None]:
        with self._lock_file(".making") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    @contextlib.contextmanager
    def _lock_file(self, ending: str = ".lock") -> Iterator[int]:
        with self._translated():
            path = self._path.with_name(self._path.name + ending)
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            yield file
        finally:
            os.close(file)

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if code(error) in DAMAGED:
                self._discard(self._inode)
            if code(error) == sqlite3.SQLITE_FULL:
                raise NoRoom("the index cannot be written: the disk is full") from error
            raise StoreAway(f"the index cannot be used: {error}") from error
        except OSError as error:
            raise StoreAway(f"the index cannot be opened: {error.strerror}") from error

    def _discard(self, inode: int) -> None:
        """A damaged file is deleted; the next question makes a new one, and the follower fills it."""
        self.close()
        with self._made_by_one():
            if _inode(self._path) == inode:
                self._path.unlink(missing_ok=True)
                self._remove_leftovers()


def _create(connection: sqlite3.Connection) -> None:
    """Drop whatever is there and make the tables."""
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL%'")
    for (name,) in tables.fetchall():
        connection.execute(f'DROP TABLE "{name}"')
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    for (name,) in tables.fetchall():
        connection.execute(f'DROP TABLE "{name}"')
    run_script(connection, Path(__file__).with_name("schema.sql").read_text("utf-8"))
    connection.execute(f"PRAGMA user_version = {_VERSION}")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return -1


def _locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
