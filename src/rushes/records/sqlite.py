"""Records on SQLite: versioned documents in one table, written one by one."""

import contextlib
import json
import re
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rushes.domain.errors import NoRoom, RushesError, StoreAway, WrongHome
from rushes.domain.keys import JSON
from rushes.records.port import Conflict, Record
from rushes.telemetry import effect

SCHEMA = 1
CHANGES = 10_000  # records in one answer of `changed`
_HERE = Path(__file__)
_PARTS = re.split(r"^-- name: (\w+)\n", _HERE.with_name("sqlite.sql").read_text("utf-8"), flags=re.MULTILINE)
SQL: Mapping[str, str] = dict(zip(_PARTS[1::2], _PARTS[2::2], strict=True))


class SqliteRecords:
    """Documents by kind, owner and id in a SQLite file; threads take turns."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        with _our_words():
            self._db = sqlite3.connect(path, timeout=5.0, isolation_level=None, check_same_thread=False)
            try:
                _prepare(self._db)
            except BaseException:
                self._db.close()
                raise

    def get(self, kind: str, owner: str, id: str) -> Record | None:
        """The record, None if there is none."""
        with self._lock, _our_words():
            record = self._row(kind, owner, id)
        return record if record and not record.deleted else None

    def put(self, kind: str, owner: str, id: str, doc: Mapping[str, JSON], expected: int | None = None) -> Record:
        """Write a record; `expected` is the version that must be there."""
        with self._write("put"):
            version = _checked(self._row(kind, owner, id), f"{kind} {id}", expected)
            self._keep(kind, owner, id, version + 1, dict(doc), deleted=False)
        return Record(kind, owner, id, version + 1, dict(doc))

    def delete(self, kind: str, owner: str, id: str, expected: int | None = None) -> bool:
        """Delete it; False if there was none."""
        with self._write("delete"):
            there = self._row(kind, owner, id)
            version = _checked(there, f"{kind} {id}", expected)
            if there is None or there.deleted:
                return False
            self._keep(kind, owner, id, version + 1, {}, deleted=True)
        return True

    def list(self, kind: str, owner: str, cursor: str = "", limit: int = 100) -> tuple[tuple[Record, ...], str]:
        """Records in order of id, and the next cursor."""
        with self._lock, _our_words():
            rows = tuple(_record(row) for row in self._db.execute(SQL["list"], (kind, owner, cursor, limit)))
        return rows, rows[-1].id if len(rows) == limit else ""

    def changed(self, cursor: str = "") -> tuple[tuple[Record, ...], str]:
        """Records written or deleted since the cursor; call again until there are none."""
        with self._lock, _our_words():
            rows = self._db.execute(SQL["changed"], (int(cursor or 0), CHANGES)).fetchall()
        return tuple(_record(row[:6]) for row in rows), str(rows[-1][6]) if rows else cursor

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

    @contextlib.contextmanager
    def _write(self, verb: str) -> Iterator[None]:
        with self._lock, _our_words():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                with effect(f"records.{verb}"):
                    self._db.execute("COMMIT")
            finally:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")

    def _row(self, kind: str, owner: str, id: str) -> Record | None:
        row = self._db.execute(SQL["row"], (kind, owner, id)).fetchone()
        return None if row is None else _record(row)

    def _keep(self, kind: str, owner: str, id: str, version: int, doc: dict[str, JSON], *, deleted: bool) -> None:
        self._db.execute(SQL["keep"], (kind, owner, id, version, json.dumps(doc, ensure_ascii=False), deleted))


def _record(row: tuple[Any, ...]) -> Record:
    kind, owner, id, version, doc, deleted = row
    return Record(kind, owner, id, version, json.loads(doc), bool(deleted))


def _checked(there: Record | None, name: str, expected: int | None) -> int:
    """The version that stands (a tombstone counts on, so that no version is used twice)."""
    live = there.version if there and not there.deleted else 0
    if expected not in (None, live):
        raise Conflict(f"{name} has version {live}, not {expected}")
    return there.version if there else 0


def _prepare(db: sqlite3.Connection) -> None:
    for setting in ("journal_mode = WAL", "synchronous = FULL", "temp_store = MEMORY"):
        db.execute(f"PRAGMA {setting}")
    db.execute("BEGIN IMMEDIATE")
    try:
        for statement in _HERE.with_name("sqlite_schema.sql").read_text("utf-8").split(";\n"):
            db.execute(statement)
        _check_schema(db.execute(SQL["version"]).fetchone()[0])
        db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def _check_schema(version: int) -> None:
    if version > SCHEMA:
        raise WrongHome(
            f"these records were written by a newer rushes (schema {version}, this one knows {SCHEMA})",
            "Use the newer version, or restore a backup made by this one.",
        )


@contextlib.contextmanager
def _our_words() -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as e:
        if e.sqlite_errorcode & 0xFF == sqlite3.SQLITE_FULL:
            raise NoRoom(f"the records cannot be written: {e}") from e
        raise StoreAway(f"the records did not answer: {e}") from e
    except sqlite3.Error as e:
        raise RushesError(f"the records failed: {e}") from e
