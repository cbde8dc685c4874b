"""Records on PostgreSQL: versioned documents in one table, one statement a verb."""

import json
from collections.abc import Collection, Mapping
from pathlib import Path

from rushes.domain.keys import JSON
from rushes.postgres import changes
from rushes.postgres.schema import migrate
from rushes.postgres.store import Postgres, Row
from rushes.records.port import Conflict, Record
from rushes.statements import statements

CHANGES = 10_000  # records in one answer of `changed`
_HERE = Path(__file__)
SQL = statements(_HERE.with_name("postgres.sql"))


class PostgresRecords:
    """Documents by kind, owner and id in a database."""

    def __init__(self, db: Postgres) -> None:
        self._db = db
        migrate(db, "records", _HERE.with_name("migrations"))
        db.ask(SQL["restored"], {})

    def get(self, kind: str, owner: str, id: str) -> Record | None:
        return self.get_many(kind, owner, [id]).get(id)

    def get_many(self, kind: str, owner: str, ids: Collection[str]) -> Mapping[str, Record]:
        rows = self._db.ask(SQL["named"], {"kind": kind, "owner": owner, "ids": list(ids)})
        return {record.id: record for record in map(_record, rows)}

    def put(self, kind: str, owner: str, id: str, doc: Mapping[str, JSON], expected: int | None = None) -> Record:
        values = {"kind": kind, "owner": owner, "id": id, "doc": json.dumps(dict(doc)), "expected": expected}
        rows = self._db.ask(SQL["put"], values, "records.put")
        if not rows:
            raise self._conflict(kind, owner, id, expected)
        return Record(kind, owner, id, rows[0][0], dict(doc))

    def delete(self, kind: str, owner: str, id: str, expected: int | None = None) -> bool:
        values = {"kind": kind, "owner": owner, "id": id, "expected": expected}
        if self._db.ask(SQL["delete"], values, "records.delete"):
            return True
        if expected or self.get(kind, owner, id):
            raise self._conflict(kind, owner, id, expected)
        return False

    def list(self, kind: str, owner: str, cursor: str = "", limit: int = 100) -> tuple[tuple[Record, ...], str]:
        found = self._db.ask(SQL["list"], {"kind": kind, "owner": owner, "after": cursor, "limit": limit})
        rows = tuple(map(_record, found))
        return rows, rows[-1].id if len(rows) == limit else ""

    def changed(self, cursor: str = "") -> tuple[tuple[Record, ...], str]:
        rows = self._db.ask(SQL["changed"], {**changes.place(cursor), "limit": CHANGES})
        return tuple(_record(row[:6]) for row in rows), changes.after(cursor, rows)

    def close(self) -> None:
        """Close idle connections."""
        self._db.close()

    def _conflict(self, kind: str, owner: str, id: str, expected: int | None) -> Conflict:
        there = self.get(kind, owner, id)
        return Conflict(f"{kind} {id} has version {there.version if there else 0}, not {expected}")


def _record(row: Row) -> Record:
    kind, owner, id, version, doc, deleted = row
    return Record(kind, owner, id, version, json.loads(doc), deleted)
