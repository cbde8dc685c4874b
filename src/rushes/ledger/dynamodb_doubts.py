"""What workers took and were not handed yet: a reply may be lost, and nobody else would ever free such a task."""

import secrets
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from rushes.aws.table import Key
from rushes.ledger.clock import Seconds

UNDER_WAY_SECONDS = 60.0  # longer than any request: what did not come about by then never will
Hand = dict[tuple[Key, str], float]  # task and take -> when that was sent


class Doubts:
    """What each worker of this process may hold without knowing."""

    def __init__(self, clock: Seconds) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._of: dict[str, Hand] = {}

    @contextmanager
    def of(self, worker: str) -> Iterator[Hand]:
        """All that is in doubt, for one caller at a time; what is left at the end, however it ends, is kept."""
        with self._lock:
            hand = self._of.pop(worker, {})
        try:
            yield hand
        finally:
            if hand:
                with self._lock:
                    self._of.setdefault(worker, {}).update(hand)

    def take(self, hand: Hand, keys: Iterable[Key]) -> str:
        """A name for a take of these, noted before it is sent."""
        take, now = secrets.token_hex(8), self._clock()
        hand.update({(key, take): now for key in keys})
        return take

    def age(self, hand: Hand) -> float:
        """How long the oldest has been in doubt."""
        return max((self._clock() - at for at in hand.values()), default=0.0)
