"""The lock of one film: an object that its holder rewrites, and that others may take over when it stays as it is.

Clocks of two machines are never compared: a lock is over when an observer has seen it unchanged for a whole lease by
its own clock. What a former holder still writes is refused by the conditional write of the database.
"""

import json
import secrets
import threading
from dataclasses import asdict, dataclass
from typing import Any

from rushes.bucket.conditional import WRITER, ConditionalBucket, listed
from rushes.domain.keys import JSON
from rushes.domain.task import LEASE_SECONDS
from rushes.domain.worker import Incarnation
from rushes.ledger.clock import Millis, Seconds, iso
from rushes.ledger.process import is_gone_from_here

POINT = "lock"  # where a test may kill the process


@dataclass(frozen=True, slots=True)
class LockDocument:
    """Who holds a film. `expires_at` is for people: nobody decides by it."""

    worker_id: str
    acquired_at: str
    expires_at: str
    fencing_token: int
    host: str
    boot: str
    pid: int
    pid_start: str
    nonce: str  # no two versions have the same bytes, so that no two have the same ETag

    @property
    def holder(self) -> Incarnation:
        """The process that holds it."""
        return Incarnation(self.worker_id, self.host, self.boot, self.pid, self.pid_start)

    def to_bytes(self) -> bytes:
        """As it is stored."""
        return json.dumps(asdict(self), indent=1).encode()


def parse_lock(data: bytes) -> LockDocument | None:
    """The document, None if it is not one: then nobody can hold it."""
    try:
        doc: JSON = json.loads(data)
        known: dict[str, Any] = {name: doc[name] for name in LockDocument.__slots__}
        document = LockDocument(**known)
        return document if isinstance(document.fencing_token, int) else None
    except (ValueError, KeyError, TypeError):
        return None


class FilmLock:
    """The lock of one film, as one process sees it."""

    def __init__(self, bucket: ConditionalBucket, key: str, me: Incarnation, clock: Seconds, wall: Millis) -> None:
        self._bucket, self._key, self._me, self._clock, self._wall = bucket, key, me, clock, wall
        self._etag, self._until = "", 0.0  # of our own lock: the version that we wrote, and until when it holds
        self._seen, self._since = "", float("-inf")  # of another's: the version, and when we saw it first
        self._document: LockDocument | None = None
        self._turn = threading.Lock()  # two threads that write it would refuse each other
        self.writer = secrets.token_hex(8)  # by which our own writes are known when their answers were lost
        self.taken_from = ""  # the worker that held it before us, if we did not wait for its release
        self.held_by = ""  # the worker that held it when we last asked for it in vain

    @property
    def token(self) -> int:
        """The fencing token of our lock."""
        return self._document.fencing_token if self._document else 0

    @property
    def held(self) -> bool:
        """Whether it is ours for certain: nobody can have seen our last write unchanged for a lease."""
        return bool(self._etag) and self._clock() < self._until

    def saw(self, etag: str, since: float) -> None:
        """A list of the bucket has had this version since then, by our clock."""
        if since > self._since and etag != self._seen:
            self._seen, self._since = etag, since

    def acquire(self, last_token: int) -> bool:
        """Take it if nobody holds it any more; the token is greater than any before, also than `last_token`."""
        with self._turn:
            began, there = self._clock(), self._bucket.get(self._key)
            document = parse_lock(there.data) if there else None
            ours = there is not None and there.labels.get(WRITER) == self.writer
            if there and document and not ours and not self._is_over(there.etag, document):
                self.held_by = document.worker_id
                return False
            token = max(last_token, document.fencing_token if document else 0) + 1
            if not ours:
                self.taken_from = document.worker_id if document else ""
            return self._write(token, iso(self._wall()), there.etag if there else "", began)

    def renew(self, token: int = 0) -> bool:
        """Keep it for another lease, with this token if ours is less; whether it is still ours."""
        with self._turn:
            if self._document is None or not self._etag:
                return False
            began = self._clock()
            return self._write(max(self.token, token), self._document.acquired_at, self._etag, began)

    def release(self) -> None:
        """Let others have it at once. One that may be over already is left alone: it may be another's by now.

        Whether it is, its object tells: our clock does not count the time for which this machine slept.
        """
        with self._turn:
            try:
                there = self._bucket.get(self._key, body=False) if self.held else None
                if there and there.labels.get(WRITER) == self.writer:
                    self._bucket.delete(self._key, POINT)
            finally:
                self._etag, self._until = "", 0.0

    def _is_over(self, etag: str, document: LockDocument) -> bool:
        if listed(etag) != self._seen:
            self._seen, self._since = listed(etag), self._clock()
        return is_gone_from_here(document.holder) or self._clock() - self._since >= LEASE_SECONDS

    def _write(self, token: int, acquired_at: str, was: str, began: float) -> bool:
        expires, me = iso(self._wall() + int(LEASE_SECONDS * 1000)), self._me
        document = LockDocument(
            me.id, acquired_at, expires, token, me.host, me.boot, me.pid, me.pid_start, secrets.token_hex(8)
        )
        etag = self._bucket.swap(self._key, document.to_bytes(), was, {WRITER: self.writer}, POINT)
        self._document, self._etag, self._until = document, etag or "", began + LEASE_SECONDS
        return etag is not None
