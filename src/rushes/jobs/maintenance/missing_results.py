"""What done tasks made and is nowhere, though nobody may have cleared it."""

from collections.abc import Collection, Iterator, Mapping

from rushes.domain.job import Job, JobState
from rushes.domain.stage import StageSpec
from rushes.domain.task import Task, TaskState
from rushes.jobs.maintenance.verify import Damage
from rushes.ledger.pages import all_jobs, all_tasks
from rushes.ledger.port import Ledger
from rushes.plan.planner import inputs_of, results_of

_COMING = (TaskState.WAITING, TaskState.READY, TaskState.LEASED)


def find_missing(
    ledger: Ledger, owner: str, specs: Mapping[str, StageSpec], gone: Collection[str]
) -> tuple[Damage, ...]:
    """Results without a row that a job must have and nobody is making, each told of the newest such job.

    What may go some day is missing only if work that is not done yet reads it; jobs that were deleted miss nothing.
    """
    must: dict[str, Damage] = {}
    coming: set[str] = set()
    for job in all_jobs(ledger, owner):
        if job.id in gone or job.state is JobState.CANCELLED:
            continue
        tasks = all_tasks(ledger, job.id)
        coming |= {key for t in tasks if t.state in _COMING for key in results_of(t.spec).values()}
        must |= {damage.key: damage for damage in _held(job, tasks, specs)}
    keys = [key for key in must if key not in coming]
    return tuple(must[key] for key in sorted(set(keys) - ledger.known(owner, keys).keys()))


def _held(job: Job, tasks: tuple[Task, ...], specs: Mapping[str, StageSpec]) -> Iterator[Damage]:
    read = {key for task in tasks if task.state is not TaskState.DONE for key in inputs_of(task.spec)}
    for task in tasks:
        spec = specs.get(task.stage)
        may_go = (*spec.intermediate, *spec.expiring) if spec else ()
        for output, key in results_of(task.spec).items() if task.state is TaskState.DONE else ():
            if key in read or output not in may_go:
                yield Damage(job.id, task.id, key, output, "it is not there any more")
