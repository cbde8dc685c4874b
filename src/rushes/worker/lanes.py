"""Lanes that a worker leaves for a while: those of its site if an original is missing, lane gpu if no model answers."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from rushes.domain.errors import EngineAway, RushesError, SourceMissing
from rushes.domain.task import Lease
from rushes.domain.worker import ENGINE_AWAY, GPU_LANE, Incarnation, site_of
from rushes.ledger.port import WorkLedger
from rushes.telemetry import log
from rushes.worker.inputs import TaskFailed

BLIND = "an original is missing here; left to other machines for a minute"
BLIND_SECONDS = 60.0  # for which the lanes of a site are left to the others of it
AWAY_SECONDS = 10.0  # after which a task that found no service is tried again
ENOUGH_TRIED = 4  # tasks in a row; then lane gpu is left as well for that long
LOOK_SECONDS = 10.0  # in which work that was left is found again: two sweeps


class SiteLanes:
    """The lanes that this worker takes now: those of its site, unless an original of it was just missing here."""

    def __init__(self, ledger: WorkLedger, clock: Callable[[], float] = time.monotonic) -> None:
        self._ledger, self._clock = ledger, clock
        self._blind_until = float("-inf")

    def lanes(self, lanes: Sequence[str]) -> tuple[str, ...]:
        """Those of these lanes that it takes now."""
        return tuple(lane for lane in lanes if not (self.note and site_of(lane)))

    @property
    def note(self) -> str:
        """What others are told with each renewal, "" if it sees all."""
        return BLIND if self._clock() < self._blind_until else ""

    def judge(self, me: Incarnation, lease: Lease, failed: TaskFailed) -> TaskFailed:
        """A missing original is given back while another machine may see it; the last one that looks fails it."""
        if failed.failure.kind != SourceMissing.__name__ or not self._is_taken_elsewhere(me, lease.lane):
            return failed
        self._blind_until = self._clock() + BLIND_SECONDS
        log.warning("given back, another machine may see it: %s", failed.failure.message, extra={"worker": me.id})
        return replace(failed, final=False, counts=False)

    def _is_taken_elsewhere(self, me: Incarnation, lane: str) -> bool:
        if not site_of(lane):
            return False
        try:
            others = [w for w in self._ledger.workers() if w.alive and not w.draining and w.note != BLIND]
        except RushesError:  # nobody can tell now
            return True
        return any(lane in w.incarnation.lanes and w.incarnation.host != me.host for w in others)


class EngineLanes:
    """Lane gpu, which asks models, is left while none of them answers: work of the other lanes goes on."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._away_until = float("-inf")
        self._in_a_row = 0  # tasks that found no service, since one of the lane was done

    def lanes(self, lanes: Sequence[str]) -> tuple[str, ...]:
        """Those of these lanes that it takes now."""
        leaves = self.note and self._in_a_row >= ENOUGH_TRIED
        return tuple(lane for lane in lanes if not (leaves and _asks_models(lane)))

    @property
    def note(self) -> str:
        """What others are told with each renewal, "" if models can be asked as far as it knows."""
        return ENGINE_AWAY if self._clock() < self._away_until else ""

    @property
    def tried_lately(self) -> bool:
        """Whether work that it left may be there, which the next looks find."""
        return self._clock() < self._away_until + LOOK_SECONDS

    def judge(self, failed: TaskFailed) -> TaskFailed:
        """A task that found no service comes again later, and this worker need not rest."""
        if failed.failure.kind != EngineAway.__name__ or failed.counts:
            return failed
        self._away_until = self._clock() + AWAY_SECONDS
        self._in_a_row += 1
        return replace(failed, delay=AWAY_SECONDS)

    def done(self, lane: str) -> None:
        """A task of a lane is done: if it asked a model, some of them answer."""
        if _asks_models(lane):
            self._in_a_row = 0


def _asks_models(lane: str) -> bool:
    return lane.partition("@")[0] == GPU_LANE
