"""Records over SQL: the verbs once, for every database with its statements."""

import json
from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from rushes.domain.keys import JSON
from rushes.records.port import Conflict, Record, Records

CHANGES = 10_000  # records in one answer of `changed`


class SqlRecords(Records):
    """Documents by kind, owner and id in one table, one statement a verb."""

    @abstractmethod
    def _ask(self, name: str, verb: str = "", /, **values: object) -> Sequence[Sequence[Any]]:
        """The rows of a statement; with a verb it writes."""

    @abstractmethod
    def _array(self, values: Iterable[str]) -> object:
        """A list of texts as a statement takes it."""

    def get_many(self, kind: str, owner: str, ids: Collection[str]) -> Mapping[str, Record]:
        rows = self._ask("named", kind=kind, owner=owner, ids=self._array(ids))
        return {record.id: record for record in map(record_of, rows)}

    def put(self, kind: str, owner: str, id: str, doc: Mapping[str, JSON], expected: int | None = None) -> Record:
        text = json.dumps(dict(doc))
        rows = self._ask("put", "put", kind=kind, owner=owner, id=id, doc=text, expected=expected)
        if not rows:
            raise self._conflict(kind, owner, id, expected)
        return Record(kind, owner, id, rows[0][0], dict(doc))

    def delete(self, kind: str, owner: str, id: str, expected: int | None = None) -> bool:
        if self._ask("delete", "delete", kind=kind, owner=owner, id=id, expected=expected):
            return True
        if expected or self.get(kind, owner, id):
            raise self._conflict(kind, owner, id, expected)
        return False

    def list(self, kind: str, owner: str, cursor: str = "", limit: int = 100) -> tuple[tuple[Record, ...], str]:
        found = self._ask("list", kind=kind, owner=owner, after=cursor, limit=limit)
        rows = tuple(map(record_of, found))
        return rows, rows[-1].id if len(rows) == limit else ""

    def _conflict(self, kind: str, owner: str, id: str, expected: int | None) -> Conflict:
        there = self.get(kind, owner, id)
        return Conflict(f"{kind} {id} has version {there.version if there else 0}, not {expected}")


def record_of(row: Sequence[Any]) -> Record:
    """The record of a row; what follows its own columns is for `changed`."""
    kind, owner, id, version, doc, deleted, *_ = row
    return Record(kind, owner, id, version, json.loads(doc), bool(deleted))
