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
class FailureGroup:
    """Dead letters of one class."""

    kind: str
    message: str
    hint: str
    verdict: str
    tasks: tuple[Task, ...]


def failed(ledger: Ledger, records: Records, owner: str) -> tuple[FailureGroup, ...]:
    """Every dead letter that was not put away, by class, most first."""
    groups: dict[str, list[Task]] = {}
    for task in _dead(ledger, owner):
        if not records.get(DISCARDED, owner, _mark(task)):
            groups.setdefault(task.failure.kind if task.failure else "Unknown", []).append(task)
    made = [_group(kind, tasks) for kind, tasks in groups.items()]
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


def _group(kind: str, tasks: list[Task]) -> FailureGroup:
    last = tasks[-1].failure
    if last is None:
        return FailureGroup(kind, "", "", "", tuple(tasks))
    return FailureGroup(kind, last.message, last.hint, last.verdict, tuple(tasks))
