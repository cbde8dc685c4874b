"""Control of jobs and workers; tasks that become ready are announced at once, not by the next sweep.

Reconciling: the ledger is swept, and what is ready without a hint is announced again. No time thresholds.
What a dead worker held is released when its lease is over (the sweep); a hint of something finished is settled by
whoever gets it; work that runs long is reported by its own worker and never ended.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from rushes.domain.errors import NotAllowed, NotFound
from rushes.domain.grouping import grouped
from rushes.domain.job import Job, JobCommand
from rushes.domain.task import TaskState
from rushes.home import Home
from rushes.ledger.pages import tasks_by_id
from rushes.ledger.port import Debt, Ledger, SweepResult
from rushes.transport.port import Transport


def announce(home: Home, tasks: Iterable[str]) -> None:
    """Send hints that these tasks may be ready."""
    for lane, some in group_by_lane(tasks, home.lane_of).items():
        _announce(home.ledger, home.transport, lane, some)


def _announce(ledger: Ledger, transport: Transport, lane: str, tasks: Sequence[str]) -> None:
    """Hints that stay in a queue tell which attempt comes; those that only wake need not ask."""
    if not transport.queues:
        transport.announce(lane, tasks)
        return
    fences = {task.id: task.fence for task in tasks_by_id(ledger, tasks)}
    for fence, some in grouped(tasks, lambda task: fences.get(task, 0)).items():
        transport.announce(lane, some, fence + 1)


def group_by_lane(tasks: Iterable[str], lane_of: Callable[[str], str | None]) -> dict[str, list[str]]:
    """Task ids by lane, without those of stages that this machine does not know."""
    lanes: dict[str, list[str]] = {}
    for task in tasks:
        if lane := lane_of(task):
            lanes.setdefault(lane, []).append(task)
    return lanes


def command(home: Home, job: str, command: JobCommand, value: int = 0) -> Job:
    """Pause, resume, cancel or reorder a job.

    Raises:
        NotFound: there is no such job.
        Refused: the job is finished.
    """
    row = home.ledger.control(job, command, value) or home.ledger.job(job)
    if command is JobCommand.RESUME:
        announce_ready(home, job)
    return row


def retry(home: Home, job: str, tasks: Collection[str] = (), stages: Collection[str] = ()) -> tuple[str, ...]:
    """Try dead tasks again (all of the job, those named, or some stages'); a cancelled job goes on."""
    revived = home.ledger.revive(job, tasks, stages)
    announce_ready(home, job)
    return revived


def announce_ready(home: Home, job: str) -> None:
    """Announce the ready tasks of a job; of very many the first page, the rest is found by the next sweep."""
    announce(home, [task.id for task in home.ledger.tasks(job, TaskState.READY).rows])


def drain(home: Home, worker: str) -> None:
    """Tell a worker to claim nothing more and to hand back what it holds.

    Raises:
        NotFound: there is no such worker.
        NotAllowed: another owner started it.
    """
    found = {w.incarnation.id: w.incarnation for w in home.ledger.workers()}
    if worker not in found:
        raise NotFound(f"no worker {worker[:80]!r}", what="worker")
    if found[worker].owner != home.owner and not home.settings.fleet_admin:
        raise NotAllowed("another owner started this worker", "Set fleet_admin = true where the fleet is administered.")
    home.ledger.control(worker, JobCommand.DRAIN)


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
            announce_missing(self.ledger, self.transport, self.lane_of, swept.ready)
        return swept


def announce_missing(
    ledger: Ledger, transport: Transport, lane_of: Callable[[str], str | None], ready: Sequence[str]
) -> tuple[str, ...]:
    """Announce those of the ready tasks that have no hint; answers them."""
    told: list[str] = []
    for lane, tasks in group_by_lane(ready, lane_of).items():
        if some := transport.missing(lane, tasks):
            _announce(ledger, transport, lane, some)
            told += some
    return tuple(told)
