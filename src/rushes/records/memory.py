"""Records in memory: the model for tests."""

import copy
import threading
from collections.abc import Collection, Mapping
from dataclasses import replace

from rushes.domain.keys import JSON
from rushes.records.port import Conflict, Record


class MemoryRecords:
    """Documents in a dict; what was deleted stays as a tombstone."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: dict[tuple[str, str, str], tuple[int, Record]] = {}
        self._changes = 0

    def get(self, kind: str, owner: str, id: str) -> Record | None:
        """The record, None if there is none."""
        with self._lock:
            return self._live(kind, owner, id)

    def get_many(self, kind: str, owner: str, ids: Collection[str]) -> Mapping[str, Record]:
        """Those of these records that are there, by id."""
        with self._lock:
            return {id: record for id in ids if (record := self._live(kind, owner, id))}

    def put(self, kind: str, owner: str, id: str, doc: Mapping[str, JSON], expected: int | None = None) -> Record:
        """Write a record; `expected` is the version that must be there."""
        with self._lock:
            version = self._checked(kind, owner, id, expected)
            return self._keep(Record(kind, owner, id, version + 1, copy.deepcopy(dict(doc))))

    def delete(self, kind: str, owner: str, id: str, expected: int | None = None) -> bool:
        """Delete it; False if there was none."""
        with self._lock:
            self._checked(kind, owner, id, expected)
            there = self._live(kind, owner, id)
            if there:
                self._keep(replace(there, version=there.version + 1, doc={}, deleted=True))
            return there is not None

    def list(self, kind: str, owner: str, cursor: str = "", limit: int = 100) -> tuple[tuple[Record, ...], str]:
        """Records in order of id, and the next cursor."""
        with self._lock:
            mine = [r for _, r in self._rows.values() if (r.kind, r.owner) == (kind, owner) and not r.deleted]
        rows = sorted((r for r in mine if r.id > cursor), key=lambda r: r.id)[:limit]
        return tuple(rows), rows[-1].id if len(rows) == limit else ""

    def changed(self, cursor: str = "") -> tuple[tuple[Record, ...], str]:
        """Records written or deleted since the cursor, and the next cursor."""
        with self._lock:
            rows = sorted((n, r) for n, r in self._rows.values() if n > int(cursor or 0))
        return tuple(r for _, r in rows), str(rows[-1][0]) if rows else cursor

    def close(self) -> None:
        """Nothing to let go of."""

    def _live(self, kind: str, owner: str, id: str) -> Record | None:
        row = self._rows.get((kind, owner, id))
        return None if row is None or row[1].deleted else row[1]

    def _checked(self, kind: str, owner: str, id: str, expected: int | None) -> int:
        """The version that stands (a tombstone counts on, so that no version is used twice)."""
        live, row = self._live(kind, owner, id), self._rows.get((kind, owner, id))
        version = live.version if live else 0
        if expected not in (None, version):
            raise Conflict(f"{kind} {id} has version {version}, not {expected}")
        return row[1].version if row else 0

    def _keep(self, record: Record) -> Record:
        self._changes += 1
        self._rows[record.kind, record.owner, record.id] = (self._changes, record)
        return record
