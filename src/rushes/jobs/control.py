"""Steering jobs and workers; whatever becomes ready is announced, so that it does not wait for the next sweep."""

from collections.abc import Callable, Collection, Iterable

from rushes.domain.errors import NotFound
from rushes.domain.job import Job, JobCommand
from rushes.domain.task import TaskState
from rushes.home import Home


def announce(home: Home, tasks: Iterable[str]) -> None:
    """Send hints that these tasks may be ready."""
    for lane, some in group_by_lane(tasks, home.lane_of).items():
        home.transport.announce(lane, some)


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


def retry(home: Home, job: str, tasks: Collection[str] = (), stage: str = "") -> tuple[str, ...]:
    """Try dead tasks again (all of the job, those named, or one stage's); a cancelled job goes on."""
    revived = home.ledger.revive(job, tasks, stage)
    announce_ready(home, job)
    return revived


def announce_ready(home: Home, job: str, stage: str = "") -> None:
    """Announce the ready tasks of a job; of very many the first page, the rest is found by the next sweep."""
    announce(home, [task.id for task in home.ledger.tasks(job, TaskState.READY, stage).rows])


def drain(home: Home, worker: str) -> None:
    """Tell a worker to claim nothing more and to hand back what it holds.

    Raises:
        NotFound: there is no such worker.
    """
    if worker not in {w.incarnation.id for w in home.ledger.workers()}:
        raise NotFound(f"no worker {worker[:80]!r}", what="worker")
    home.ledger.control(worker, JobCommand.DRAIN)
