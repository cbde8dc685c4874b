"""Lane gpu while no live worker takes it: workers of lane cpu take it then, so that no task waits for one in vain."""

import time
from collections.abc import Callable, Sequence

from rushes.domain.worker import Worker, left_lanes, missing_gpu_lanes
from rushes.ledger.port import WorkLedger

LOOK_SECONDS = 10.0  # between looks at the other workers


class LeftLanes:
    """What the live workers of a ledger leave to those that take lane cpu and not lane gpu."""

    def __init__(self, ledger: WorkLedger, clock: Callable[[], float] = time.monotonic) -> None:
        self._ledger, self._clock = ledger, clock
        self._workers: tuple[Worker, ...] = ()
        self._look_at = float("-inf")

    def beside(self, lanes: Sequence[str]) -> tuple[str, ...]:
        """The lanes that are left to a worker which takes these. Raises RushesError: the store is away."""
        if not missing_gpu_lanes(lanes):
            return ()
        if self._clock() >= self._look_at:
            self._workers, self._look_at = self._ledger.workers(), self._clock() + LOOK_SECONDS
        return left_lanes(lanes, self._workers)
