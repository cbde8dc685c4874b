"""Records on SQLite: versioned documents in one table, written one by one."""

import json
import sqlite3
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from rushes.domain.errors import WrongHome
from rushes.domain.keys import JSON
from rushes.records.port import Record, next_version
from rushes.sqlite.file import SqliteFile, run_script, whole
from rushes.statements import statements

SCHEMA = 1
CHANGES = 10_000  # records in one answer of `changed`
_HERE = Path(__file__)
SQL = statements(_HERE.with_name("sqlite.sql"))


class SqliteRecords:
    """Documents by kind, owner and id in a SQLite file; one thread writes at a time."""

    def __init__(self, path: Path) -> None:
        self._file = SqliteFile(path, "records", _create)

    def get(self, kind: str, owner: str, id: str) -> Record | None:
        return self.get_many(kind, owner, [id]).get(id)

    def get_many(self, kind: str, owner: str, ids: Collection[str]) -> Mapping[str, Record]:
        with self._file.read() as db:
            rows = db.execute(SQL["named"], (kind, owner, json.dumps(list(ids)))).fetchall()
        return {record.id: record for record in map(_record, rows)}

    def put(self, kind: str, owner: str, id: str, doc: Mapping[str, JSON], expected: int | None = None) -> Record:
        with self._file.write("put") as db:
            version = next_version(_row(db, kind, owner, id), f"{kind} {id}", expected)
            _keep(db, kind, owner, id, version, dict(doc), deleted=False)
        return Record(kind, owner, id, version, dict(doc))

    def delete(self, kind: str, owner: str, id: str, expected: int | None = None) -> bool:
        with self._file.write("delete") as db:
            there = _row(db, kind, owner, id)
            version = next_version(there, f"{kind} {id}", expected)
            if there is None or there.deleted:
                return False
            _keep(db, kind, owner, id, version, {}, deleted=True)
        return True

    def list(self, kind: str, owner: str, cursor: str = "", limit: int = 100) -> tuple[tuple[Record, ...], str]:
        with self._file.read() as db:
            rows = tuple(_record(row) for row in db.execute(SQL["list"], (kind, owner, cursor, limit)))
        return rows, rows[-1].id if len(rows) == limit else ""

    def changed(self, cursor: str = "") -> tuple[tuple[Record, ...], str]:
        with self._file.read() as db:
            rows = db.execute(SQL["changed"], (int(cursor or 0), CHANGES)).fetchall()
        return tuple(_record(row[:6]) for row in rows), str(rows[-1][6]) if rows else cursor

    def backup(self, to: Path) -> None:
        """A whole copy while others go on writing; `to` is there complete or not at all."""
        self._file.backup(to)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _row(db: sqlite3.Connection, kind: str, owner: str, id: str) -> Record | None:
    row = db.execute(SQL["row"], (kind, owner, id)).fetchone()
    return None if row is None else _record(row)


def _keep(
    db: sqlite3.Connection, kind: str, owner: str, id: str, version: int, doc: dict[str, JSON], *, deleted: bool
) -> None:
    db.execute(SQL["keep"], (kind, owner, id, version, json.dumps(doc), deleted))


def _record(row: tuple[Any, ...]) -> Record:
    kind, owner, id, version, doc, deleted = row
    return Record(kind, owner, id, version, json.loads(doc), bool(deleted))


def _create(db: sqlite3.Connection) -> None:
    with whole(db):
        run_script(db, _HERE.with_name("sqlite_schema.sql").read_text("utf-8"))
        _check_schema(db.execute(SQL["version"]).fetchone()[0])


def _check_schema(version: int) -> None:
    if version > SCHEMA:
        raise WrongHome(
            f"these records were written by a newer rushes (schema {version}, this one knows {SCHEMA})",
            "Use the newer version, or restore a backup made by this one.",
        )
