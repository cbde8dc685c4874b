"""Reconciling: the ledger is swept, and what is ready without a hint is announced again. No time thresholds.

What a dead worker held is released when its lease is over (the sweep); a hint of something finished is settled by
whoever gets it; work that runs long is reported by its own worker and never ended.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rushes.jobs.control import group_by_lane
from rushes.ledger.port import Debt, Ledger, SweepResult
from rushes.transport.port import Transport


@dataclass(frozen=True, slots=True)
class Reconciler:
    """Compares ledger and transport; a worker sweeps with it."""

    ledger: Ledger
    transport: Transport
    lane_of: Callable[[str], str | None]  # of a task; None if this machine does not know its stage

    def sweep(self, limit: int = 500, paid: Sequence[Debt] = ()) -> SweepResult:
        """Sweep the ledger, then announce what is ready and has no hint on its way."""
        swept = self.ledger.sweep(limit, paid)
        if not paid:  # else this is the second half of a sweep
            announce_missing(self.transport, self.lane_of, swept.ready)
        return swept


def announce_missing(
    transport: Transport, lane_of: Callable[[str], str | None], ready: Sequence[str]
) -> tuple[str, ...]:
    """Announce those of the ready tasks that have no hint; answers them."""
    told: list[str] = []
    for lane, tasks in group_by_lane(ready, lane_of).items():
        if some := transport.missing(lane, tasks):
            transport.announce(lane, some)
            told += some
    return tuple(told)
