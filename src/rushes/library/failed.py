"""Dead letters for people: grouped by what went wrong, tried again or put away together."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rushes.domain.errors import NotFound
from rushes.domain.job import Job
from rushes.domain.task import Task, TaskState
from rushes.ledger.pages import every
from rushes.ledger.port import Ledger
from rushes.records.port import Records

DISCARDED = "discarded"  # the kind of record that says: do not show this dead letter any more


@dataclass(frozen=True, slots=True)
class Cause:
    """Dead letters that say the same; the newest task first."""

    message: str
    hint: str
    verdict: str
    tasks: tuple[Task, ...]


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """Dead letters of one class, by what they say; the newest cause first."""

    kind: str
    causes: tuple[Cause, ...]

    @property
    def tasks(self) -> tuple[Task, ...]:
        """All of them."""
        return tuple(task for cause in self.causes for task in cause.tasks)


@dataclass(frozen=True, slots=True)
class FailedPage:
    """Some dead letters by class, most first, the names of their jobs, and where the next ones begin."""

    groups: tuple[FailureGroup, ...]
    names: Mapping[str, str]
    cursor: str


def failed(ledger: Ledger, records: Records, owner: str) -> tuple[FailureGroup, ...]:
    """Every dead letter that was not put away, by class, most first."""
    jobs: dict[str, Job] = {}
    dead = every(lambda cursor: ledger.tasks(state=TaskState.DEAD, cursor=cursor))
    return _grouped(task for task in dead if _is_shown(task, ledger, records, owner, jobs))


def failed_page(ledger: Ledger, records: Records, owner: str, cursor: str = "", limit: int = 200) -> FailedPage:
    """The same of so many dead letters: what a page shows of however many there are."""
    jobs: dict[str, Job] = {}
    page = ledger.tasks(state=TaskState.DEAD, cursor=cursor, limit=limit)
    groups = _grouped(task for task in page.rows if _is_shown(task, ledger, records, owner, jobs))
    return FailedPage(groups, {id: job.name for id, job in jobs.items()}, page.cursor)


def retry(ledger: Ledger, groups: tuple[FailureGroup, ...]) -> tuple[str, ...]:
    """Make them ready again with fresh tries."""
    by_job: dict[str, list[str]] = {}
    for group in groups:
        for task in group.tasks:
            by_job.setdefault(task.job, []).append(task.id)
    return tuple(t for job, ids in by_job.items() for t in ledger.revive(job, ids))


def discard(records: Records, owner: str, groups: tuple[FailureGroup, ...]) -> int:
    """Put them away: they stay dead but are not shown any more."""
    tasks = [t for g in groups for t in g.tasks]
    for task in tasks:
        records.put(DISCARDED, owner, _mark(task), {"task": task.id, "fence": task.fence})
    return len(tasks)


def chosen(groups: tuple[FailureGroup, ...], kind: str) -> tuple[FailureGroup, ...]:
    """The groups of one class, or all.

    Raises:
        NotFound: nothing of that class is dead.
    """
    some = tuple(g for g in groups if kind in ("", g.kind))
    if kind and not some:
        raise NotFound(f"nothing failed with {kind}", "See: rushes failed ls")
    return some


def _is_shown(task: Task, ledger: Ledger, records: Records, owner: str, jobs: dict[str, Job]) -> bool:
    """Whether it is this owner's and was not put away; a job is asked for once."""
    if task.job not in jobs:
        jobs[task.job] = ledger.job(task.job)
    return jobs[task.job].owner == owner and not records.get(DISCARDED, owner, _mark(task))


def _grouped(tasks: Iterable[Task]) -> tuple[FailureGroup, ...]:
    groups: dict[str, list[Task]] = {}
    for task in tasks:
        groups.setdefault(task.failure.kind if task.failure else "Unknown", []).append(task)
    made = [FailureGroup(kind, _causes(some)) for kind, some in groups.items()]
    return tuple(sorted(made, key=lambda g: (-len(g.tasks), g.kind)))


def _mark(task: Task) -> str:
    return f"{task.id}.{task.fence}"  # a later death of the same task is news


def _causes(tasks: list[Task]) -> tuple[Cause, ...]:
    said: dict[tuple[str, str, str], list[Task]] = {}
    for task in sorted(tasks, key=lambda t: t.finished_at or "", reverse=True):
        f = task.failure
        said.setdefault((f.message, f.hint, f.verdict) if f else ("", "", ""), []).append(task)
    return tuple(Cause(*words, tuple(some)) for words, some in said.items())
