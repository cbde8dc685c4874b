"""Transactions on the SQLite file of a ledger: each has a timestamp by every clock, and runs named statements."""

import contextlib
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rushes.ledger.clock import Millis, Seconds
from rushes.ledger.sql import STATEMENTS
from rushes.ledger.sql.transaction import Row, encode
from rushes.ledger.sqlite.schema import migrate
from rushes.sqlite.file import DURABLE, SqliteFile
from rushes.statements import statements

SETTINGS = (*DURABLE, "cache_size = -65536", "wal_autocheckpoint = 4000")
_LISTS = re.compile(r"= ANY \(:(\w+)\)")
_LOCKS = re.compile(r"\s+FOR (?:NO KEY )?UPDATE(?: OF \w+)?(?: SKIP LOCKED)?")


def for_sqlite(statement: str) -> str:
    """A statement as SQLite reads it: no schema, lists as JSON, no locks, because there is one writer at a time."""
    listed = _LISTS.sub(r"IN (SELECT value FROM json_each(:\1))", statement.replace("rushes.", ""))
    return _LOCKS.sub("", listed)


_FILES = (*STATEMENTS, Path(__file__).with_name("dialect.sql"))
SQL: Mapping[str, Sequence[str]] = {  # what PostgreSQL says in one statement may be several here, run in turn
    name: for_sqlite(text).split(";\n") for name, text in statements(*_FILES).items()
}


class Transaction:
    """One transaction: its moment by each clock, and the named statements it runs."""

    __slots__ = ("_db", "awake", "now", "wall")

    def __init__(self, db: sqlite3.Connection, now: float, awake: float, wall: int) -> None:
        self._db, self.now, self.awake, self.wall = db, now, awake, wall

    @property
    def at(self) -> int:
        """The moment for a statement."""
        return self.wall

    def run(self, name: str, /, **values: object) -> None:
        """Run a statement whose answer nobody needs."""
        self.all(name, **values)

    def all(self, name: str, /, **values: object) -> list[Row]:
        """All its rows; lists go as JSON."""
        bound = {key: encode(value) if isinstance(value, list) else value for key, value in values.items()}
        return [row for part in SQL[name] for row in self._db.execute(part, bound)]

    def one(self, name: str, /, **values: object) -> Row | None:
        """Its first row."""
        return next(iter(self.all(name, **values)), None)

    def column(self, name: str, /, **values: object) -> list[Any]:
        """The first value of each row."""
        return [row[0] for row in self.all(name, **values)]

    def send(self, name: str, /, **values: object) -> Callable[[], list[Row]]:
        """Its rows: there is no trip to save."""
        rows = self.all(name, **values)
        return lambda: rows

    def many(self, name: str, rows: Sequence[Mapping[str, object]], /) -> None:
        """Run a statement for each of these rows."""
        for part in SQL[name]:
            self._db.executemany(part, rows)

    def insert(self, table: str, rows: Sequence[Mapping[str, object]], *, skip_existing: bool = False) -> None:
        """Insert rows with the same columns."""
        if rows:
            columns, marks = ", ".join(rows[0]), ", ".join("?" * len(rows[0]))
            how = "INSERT OR IGNORE" if skip_existing else "INSERT"
            values = [tuple(row.values()) for row in rows]  # by place: to bind by name takes twice as long
            self._db.executemany(f"{how} INTO {table} ({columns}) VALUES ({marks})", values)


class Store:
    """The file, and the clocks of its transactions."""

    def __init__(self, path: Path, seconds: Seconds, awake: Seconds, millis: Millis) -> None:
        self._seconds, self._awake, self._millis = seconds, awake, millis
        self.file = SqliteFile(path, "ledger", migrate, SETTINGS)

    @contextlib.contextmanager
    def write(self, verb: str) -> Iterator[Transaction]:
        """A transaction that is committed at the end, or leaves no trace."""
        with self.file.write(verb) as db:
            yield self._begin(db)

    @contextlib.contextmanager
    def read(self) -> Iterator[Transaction]:
        """One look: all that it reads is of one moment."""
        with self.file.read() as db:
            yield self._begin(db)

    def _begin(self, db: sqlite3.Connection) -> Transaction:
        return Transaction(db, self._seconds(), self._awake(), self._millis())
