"""Dead letters for people: grouped by what went wrong, tried again or put away together."""

from collections.abc import Iterator
from dataclasses import dataclass

from rushes.domain.errors import NotFound
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


def failed(ledger: Ledger, records: Records, owner: str) -> tuple[FailureGroup, ...]:
    """Every dead letter that was not put away, by class, most first."""
    groups: dict[str, list[Task]] = {}
    for task in _dead(ledger, owner):
        if not records.get(DISCARDED, owner, _mark(task)):
            groups.setdefault(task.failure.kind if task.failure else "Unknown", []).append(task)
    made = [FailureGroup(kind, _causes(tasks)) for kind, tasks in groups.items()]
    return tuple(sorted(made, key=lambda g: (-len(g.tasks), g.kind)))


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


def _dead(ledger: Ledger, owner: str) -> Iterator[Task]:
    owners: dict[str, str] = {}
    for task in every(lambda cursor: ledger.tasks(state=TaskState.DEAD, cursor=cursor)):
        if task.job not in owners:
            owners[task.job] = ledger.job(task.job).owner
        if owners[task.job] == owner:
            yield task


def _mark(task: Task) -> str:
    return f"{task.id}.{task.fence}"  # a later death of the same task is news


def _causes(tasks: list[Task]) -> tuple[Cause, ...]:
    said: dict[tuple[str, str, str], list[Task]] = {}
    for task in sorted(tasks, key=lambda t: t.finished_at or "", reverse=True):
        f = task.failure
        said.setdefault((f.message, f.hint, f.verdict) if f else ("", "", ""), []).append(task)
    return tuple(Cause(*words, tuple(some)) for words, some in said.items())
