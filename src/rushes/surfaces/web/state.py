"""States in people's words: `running` means that a living worker has a task of the job in hand."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rushes.domain.job import Job, JobState
from rushes.domain.keys import parse_task_id
from rushes.domain.task import Task, TaskState
from rushes.domain.worker import Worker

_FINAL = {JobState.COMPLETED: "done", JobState.FAILED: "needs you", JobState.CANCELLED: "cancelled"}


@dataclass(frozen=True, slots=True)
class Hands:
    """Who has what in hand: hosts by job."""

    hosts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    alive: int = 0

    @property
    def jobs(self) -> frozenset[str]:
        """Those that somebody works on now."""
        return frozenset(self.hosts)


def hands(workers: Iterable[Worker]) -> Hands:
    """Who is at work on what, now."""
    hosts: dict[str, set[str]] = {}
    alive = [w for w in workers if w.alive]
    for worker in alive:
        for task in worker.held:
            hosts.setdefault(parse_task_id(task)[0], set()).add(host_of(worker))
    return Hands({job: tuple(sorted(names)) for job, names in hosts.items()}, len(alive))


def host_of(worker: Worker) -> str:
    """The machine's name, out of the worker's id: `x86_64-2.studio.local.a0fb65.17570b12`."""
    return worker.incarnation.id.partition(".")[2].rsplit(".", 2)[0] or worker.incarnation.host


def word_of(job: Job, busy: Hands) -> str:
    """A job's state in one word."""
    if job.state in _FINAL:
        return _FINAL[job.state]
    if job.paused:
        return "paused"
    return "running" if job.id in busy.jobs else "waiting"


def task_word(task: Task) -> str:
    """A task's state in one word: the ledger's, told apart where people would."""
    if task.state is TaskState.DONE:
        return "adopted" if task.adopted else "done"
    if task.state is TaskState.READY and task.due_in:
        return "backing off"
    return "dead letter" if task.state is TaskState.DEAD else task.state.value
