"""Turns on the SQLite file of a ledger: each has its moment by every clock, and runs named statements."""

import contextlib
import json
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from rushes.ledger.clock import Millis, Seconds
from rushes.ledger.migrations import migrate
from rushes.sqlite.file import DURABLE, SqliteFile
from rushes.statements import statements

Row = tuple[Any, ...]
encode = json.JSONEncoder(separators=(",", ":")).encode  # ASCII: names may hold bytes that are no text
BULK = 100
SETTINGS = (*DURABLE, "cache_size = -65536", "wal_autocheckpoint = 4000")
_HERE = Path(__file__).parent
SQL: Mapping[str, str] = statements(
    *(_HERE / f"sqlite_{part}.sql" for part in ("take", "work", "results", "steer", "look"))
)


@cache
def _bulk(insert: str) -> str:
    """An insert of one row as an insert of many."""
    head, values, tail = re.split(r"(\(\?[?, ]*\))", insert)
    return head + ", ".join([values] * BULK) + tail


class Transaction:
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

    def bulk(self, name: str, columns: Sequence[Sequence[object]]) -> int:
        """Run an insert for many rows, given as columns: a hundred in one statement take two thirds of the time."""
        wide, rows = len(columns), len(columns[0])
        flat: list[object] = [None] * (wide * rows)
        for n, column in enumerate(columns):
            flat[n::wide] = column
        whole, added = rows - rows % BULK, 0
        for begin in range(0, whole * wide, BULK * wide):
            added += self._db.execute(_bulk(SQL[name]), flat[begin : begin + BULK * wide]).rowcount
        return added + self.many(name, list(zip(*(column[whole:] for column in columns), strict=True)))


class Store:
    """The file, and the clocks of its turns."""

    def __init__(self, path: Path, seconds: Seconds, awake: Seconds, millis: Millis) -> None:
        self._seconds, self._awake, self._millis = seconds, awake, millis
        self.file = SqliteFile(path, "ledger", migrate, SETTINGS)

    @contextlib.contextmanager
    def write(self, verb: str) -> Iterator[Transaction]:
        """A transaction that is committed at the end, or leaves no trace."""
        with self.file.write(verb) as db:
            yield self._turn(db)

    @contextlib.contextmanager
    def read(self) -> Iterator[Transaction]:
        """One look: all that it reads is of one moment."""
        with self.file.read() as db:
            yield self._turn(db)

    def _turn(self, db: sqlite3.Connection) -> Transaction:
        return Transaction(db, self._seconds(), self._awake(), self._millis())
