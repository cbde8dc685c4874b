"""Records in memory: the model for tests."""

import copy
import threading
from collections.abc import Collection, Mapping

from rushes.domain.keys import JSON
from rushes.records.port import Record, Records, next_version


class MemoryRecords(Records):
    """Documents in a dict; what was deleted stays as a tombstone."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: dict[tuple[str, str, str], tuple[int, Record]] = {}  # each with the number of its change
        self._changes = 0

    def get_many(self, kind: str, owner: str, ids: Collection[str]) -> Mapping[str, Record]:
        with self._lock:
            found = [self._rows[kind, owner, id][1] for id in ids if (kind, owner, id) in self._rows]
        return {record.id: record for record in found if not record.deleted}

    def put(self, kind: str, owner: str, id: str, doc: Mapping[str, JSON], expected: int | None = None) -> Record:
        with self._lock:
            return self._write(kind, owner, id, copy.deepcopy(dict(doc)), expected)[1]

    def delete(self, kind: str, owner: str, id: str, expected: int | None = None) -> bool:
        with self._lock:
            return self._write(kind, owner, id, None, expected)[0]

    def list(self, kind: str, owner: str, cursor: str = "", limit: int = 100) -> tuple[tuple[Record, ...], str]:
        with self._lock:
            mine = [r for _, r in self._rows.values() if (r.kind, r.owner) == (kind, owner) and not r.deleted]
        rows = sorted((r for r in mine if r.id > cursor), key=lambda r: r.id)[:limit]
        return tuple(rows), rows[-1].id if len(rows) == limit else ""

    def changed(self, cursor: str = "") -> tuple[tuple[Record, ...], str]:
        with self._lock:
            rows = sorted((n, r) for n, r in self._rows.values() if n > int(cursor or 0))
        return tuple(r for _, r in rows), str(rows[-1][0]) if rows else cursor

    def close(self) -> None:
        """Nothing to close."""

    def _write(
        self, kind: str, owner: str, id: str, doc: dict[str, JSON] | None, expected: int | None
    ) -> tuple[bool, Record]:
        """Whether there was one, and what is there now."""
        _, old = self._rows.get((kind, owner, id), (0, None))
        new = Record(kind, owner, id, next_version(old, f"{kind} {id}", expected), doc or {}, deleted=doc is None)
        there = old is not None and not old.deleted
        if there or not new.deleted:
            self._changes += 1
            self._rows[kind, owner, id] = (self._changes, new)
        return there, new
