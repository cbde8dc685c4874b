"""Costs learnt from finished tasks, refreshed from time to time and shared by one process."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rushes.estimates.cost import CostModel

SECONDS = 60.0  # that an answer is believed
MOST = 50  # answers that are kept
Stages = tuple[str, ...]


class LearntModels:
    """The cost models of a home on this kind of machine, kept for a minute; `learn` asks for one."""

    def __init__(self, learn: Callable[[Stages, str], CostModel], clock: Callable[[], float] = time.monotonic) -> None:
        self._learn, self._clock, self._lock = learn, clock, Lock()
        self._known: dict[tuple[Stages, str], tuple[float, CostModel]] = {}

    def of(self, stages: Stages, profile: str) -> CostModel:
        """What was learnt of some stages."""
        with self._lock:  # who comes meanwhile waits for the same answer
            now, known = self._clock(), self._known.get((stages, profile))
            if known and now - known[0] < SECONDS:
                return known[1]
            if len(self._known) >= MOST:
                self._known.clear()
            model = self._learn(stages, profile)
            self._known[stages, profile] = now, model
            return model
