"""The index in one SQLite file: FTS5 over words that our own tokenizer made."""

import contextlib
import json
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rushes.domain.errors import NoRoom, StoreAway
from rushes.files import locked
from rushes.index.passages import Passage
from rushes.index.port import Window
from rushes.index.query import Term
from rushes.index.sql import SqlIndex
from rushes.index.sql.database import CONTENT_VERSION, SqlTransaction
from rushes.sqlite.file import DAMAGED, code, connect, run_script, whole
from rushes.statements import statements
from rushes.telemetry import effect

SCHEMA = 4
_VERSION = SCHEMA * 10_000 + CONTENT_VERSION
_SETTINGS = ("synchronous = NORMAL",)  # a projection: what a power cut takes is followed again
_HERE = Path(__file__)
_SQL = statements(_HERE.with_name("statements.sql"))


class SqliteIndex(SqlIndex):
    """One connection, shared by the threads of a process; a file that is gone or damaged is made again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._guard = threading.RLock()
        self._open: sqlite3.Connection | None = None
        self._inode = 0

    def ask(self, name: str, /, **values: object) -> list[tuple[Any, ...]]:
        with self._guard, self._translated():
            return self._connection().execute(_SQL[name], values).fetchall()

    def write(self, body: Callable[[SqlTransaction], None]) -> None:
        with effect("index"), self._guard, self._translated():
            connection = self._connection()
            with whole(connection):
                body(_Writes(connection))

    @contextlib.contextmanager
    def lock(self, patience: float = 2.0) -> Iterator[bool]:
        with contextlib.ExitStack() as held:
            with self._translated():
                mine = held.enter_context(locked(self._beside(".lock"), patience))
            yield mine

    def array(self, values: Iterable[str]) -> str:
        return json.dumps(list(values))

    def windows(self, windows: Sequence[Window]) -> str:
        return json.dumps(windows)

    def text_query(self, term: Term) -> str:
        """Every word is quoted, so that none can be taken for the syntax of FTS5."""
        followed = f'words : "{" ".join(term.words)}"' + (" *" if term.prefix else "")
        kinds = " OR ".join(f'kind : "{kind}"' for kind in term.kinds)
        return f"(({kinds}) AND {followed})" if kinds else followed

    def passage_row(self, passage: Passage) -> dict[str, object]:
        return asdict(passage)

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
                return _made_right(connect(self._path, _SETTINGS))
        connection = connect(self._path, _SETTINGS)
        if _version(connection) == _VERSION:
            return connection
        with self._made_by_one():
            return _made_right(connection)

    def _remove_leftovers(self) -> None:
        """Left-overs of a deleted file must not be taken for the journal of the new one."""
        if not self._path.exists():
            for ending in ("-wal", "-shm"):
                self._beside(ending).unlink(missing_ok=True)

    def _made_by_one(self) -> contextlib.AbstractContextManager[bool]:
        return locked(self._beside(".making"))

    def _beside(self, ending: str) -> Path:
        return self._path.with_name(self._path.name + ending)

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if code(error) in DAMAGED:
                self._discard(self._inode)
            if code(error) == sqlite3.SQLITE_FULL:
                raise NoRoom("the index cannot be written: the disk is full") from error
            raise StoreAway(f"the index does not work: {error}") from error
        except OSError as error:
            raise StoreAway(f"the index cannot be opened: {error.strerror}") from error

    def _discard(self, inode: int) -> None:
        """A damaged file is deleted; the next question makes a new one, and the follower fills it."""
        self.close()
        with self._made_by_one():
            if _inode(self._path) == inode:
                self._path.unlink(missing_ok=True)
                self._remove_leftovers()


class _Writes:
    """A transaction that is open."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def run(self, name: str, /, **values: object) -> None:
        self._connection.execute(_SQL[name], values)

    def all(self, name: str, /, **values: object) -> list[tuple[Any, ...]]:
        return self._connection.execute(_SQL[name], values).fetchall()

    def many(self, name: str, rows: Iterable[Mapping[str, object]], /) -> None:
        self._connection.executemany(_SQL[name], rows)

    def reset(self) -> None:
        """Empty it in place, so that other processes see it too."""
        _create(self._connection)


def _made_right(connection: sqlite3.Connection) -> sqlite3.Connection:
    if _version(connection) != _VERSION:
        with whole(connection):
            _create(connection)
    return connection


def _create(connection: sqlite3.Connection) -> None:
    """Drop whatever is there and make the tables."""
    for what in ("type = 'view'", "type = 'table' AND sql LIKE 'CREATE VIRTUAL%'", "type = 'table'"):
        asked = f"SELECT type, name FROM sqlite_master WHERE {what} AND name NOT LIKE 'sqlite_%'"  # noqa: S608
        for kind, name in connection.execute(asked).fetchall():
            connection.execute(f'DROP {kind} "{name}"')
    run_script(connection, _HERE.with_name("schema.sql").read_text("utf-8"))
    connection.execute(f"PRAGMA user_version = {_VERSION}")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return -1
