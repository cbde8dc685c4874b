"""What workers claimed and were not handed yet: a reply may be lost, and nobody else would ever free such a task."""

import secrets
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from rushes.aws.table import Key
from rushes.ledger.clock import Seconds

UNDER_WAY_SECONDS = 60.0  # longer than any request: what did not come about by then never will
Unconfirmed = dict[tuple[Key, str], float]  # task and claim id -> when that was sent


class UnconfirmedClaims:
    """What each worker of this process may hold without knowing."""

    def __init__(self, clock: Seconds) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._by_worker: dict[str, Unconfirmed] = {}

    @contextmanager
    def of(self, worker: str) -> Iterator[Unconfirmed]:
        """All of a worker, for one caller at a time; what is left at the end, however it ends, is kept."""
        with self._lock:
            claims = self._by_worker.pop(worker, {})
        try:
            yield claims
        finally:
            if claims:
                with self._lock:
                    self._by_worker.setdefault(worker, {}).update(claims)

    def begin(self, claims: Unconfirmed, keys: Iterable[Key]) -> str:
        """A new claim id for these tasks, noted before the claim is sent."""
        claim_id, now = secrets.token_hex(8), self._clock()
        claims.update({(key, claim_id): now for key in keys})
        return claim_id

    def age(self, claims: Unconfirmed) -> float:
        """How long the oldest has been unconfirmed."""
        return max((self._clock() - at for at in claims.values()), default=0.0)
