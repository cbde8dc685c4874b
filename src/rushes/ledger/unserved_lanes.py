"""Lane gpu without workers: while no live worker takes it, workers of lane cpu do, so that its tasks do not wait."""

import time
from collections.abc import Callable, Sequence

from rushes.domain.worker import Worker, missing_gpu_lanes, unserved_lanes
from rushes.ledger.port import WorkLedger

LOOK_SECONDS = 10.0  # between looks at the other workers


class UnservedLanes:
    """The lanes that no live worker takes, for workers that take lane cpu and not lane gpu."""

    def __init__(self, ledger: WorkLedger, clock: Callable[[], float] = time.monotonic) -> None:
        self._ledger, self._clock = ledger, clock
        self._workers: tuple[Worker, ...] = ()
        self._look_at = float("-inf")

    def beside(self, lanes: Sequence[str]) -> tuple[str, ...]:
        """Lanes that a worker of these lanes should take as well. Raises RushesError: the store is unavailable."""
        if not missing_gpu_lanes(lanes):
            return ()
        if self._clock() >= self._look_at:
            self._workers, self._look_at = self._ledger.workers(), self._clock() + LOOK_SECONDS
        return unserved_lanes(lanes, self._workers)
