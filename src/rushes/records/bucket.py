"""Records in a bucket: one SQLite file, changed in memory and put back if nobody else has changed it meanwhile."""

import threading
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TypeVar

from rushes.bucket.conditional import ConditionalBucket
from rushes.domain.errors import StoreAway
from rushes.domain.keys import JSON
from rushes.records.port import Record, Records
from rushes.records.sqlite import SqliteRecords

KEY, POINT = "records.sqlite", "records"
LOOK_SECONDS = 2.0  # what others wrote is seen after this
_TRIES = 20  # of a write that others come before
_UNKNOWN = "?"  # the ETag of what is here but not in the bucket
T = TypeVar("T")


class BucketRecords(Records):
    """Documents of all films of a bucket home; rarely written, by many machines."""

    def __init__(self, bucket: ConditionalBucket) -> None:
        self._bucket, self._records = bucket, SqliteRecords(Path(":memory:"))
        self._etag, self._looked = "", float("-inf")
        self._lock = threading.RLock()

    def get_many(self, kind: str, owner: str, ids: Collection[str]) -> Mapping[str, Record]:
        return self._read(lambda records: records.get_many(kind, owner, ids))

    def put(self, kind: str, owner: str, id: str, doc: Mapping[str, JSON], expected: int | None = None) -> Record:
        return self._write(lambda records: records.put(kind, owner, id, doc, expected))

    def delete(self, kind: str, owner: str, id: str, expected: int | None = None) -> bool:
        return self._write(lambda records: records.delete(kind, owner, id, expected))

    def list(self, kind: str, owner: str, cursor: str = "", limit: int = 100) -> tuple[tuple[Record, ...], str]:
        return self._read(lambda records: records.list(kind, owner, cursor, limit))

    def changed(self, cursor: str = "") -> tuple[tuple[Record, ...], str]:
        return self._read(lambda records: records.changed(cursor))

    def close(self) -> None:
        """Forget the copy."""
        self._records.close()

    def _read(self, ask: Callable[[SqliteRecords], T]) -> T:
        with self._lock:
            if self._etag == _UNKNOWN or time.monotonic() - self._looked >= LOOK_SECONDS:
                self._refresh()
            return ask(self._records)

    def _write(self, change: Callable[[SqliteRecords], T]) -> T:
        """What was changed here and cannot be stored is forgotten: the next look fetches what is there."""
        with self._lock:
            for _ in range(_TRIES):
                self._refresh()
                answer, was, self._etag = change(self._records), self._etag, _UNKNOWN
                etag = self._bucket.swap(KEY, self._records.dump(), was, {}, POINT)
                if etag is not None:
                    self._etag = etag
                    return answer
        raise StoreAway("other processes keep changing the records")

    def _refresh(self) -> None:
        head = self._bucket.get(KEY, body=False)
        if (head.etag if head else "") != self._etag:
            stored = self._bucket.get(KEY)
            self._records.close()
            self._records, self._etag = SqliteRecords(Path(":memory:")), stored.etag if stored else ""
            if stored:
                self._records.load(stored.data)
        self._looked = time.monotonic()
