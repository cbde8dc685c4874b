"""Dead letters for people: grouped by cause, retried or dismissed together."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from rushes.domain.errors import NotFound
from rushes.domain.grouping import grouped
from rushes.domain.task import Task, TaskState
from rushes.home import Home
from rushes.jobs.control import announce
from rushes.ledger.pages import every
from rushes.ledger.port import Page

DISCARDED = "discarded"  # the kind of record that says: do not show this dead letter any more
T = TypeVar("T")
PAGE = 200  # dead letters that are looked at, tried again or dismissed at once


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


@dataclass(frozen=True, slots=True)
class FailureFilter:
    """Some dead letters: those of these classes (none: all) and of one step ("": all)."""

    kinds: frozenset[str] = frozenset()
    step: str = ""

    @staticmethod
    def of(kind: str, step: str = "") -> "FailureFilter":
        """One class, or all ("")."""
        return FailureFilter(frozenset({kind} if kind else ()), step)

    def fits(self, task: Task) -> bool:
        """Whether it is one of them."""
        return (not self.kinds or _kind(task) in self.kinds) and self.step in ("", task.stage)


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """An owner's dead letters, a page at a time: three questions a page, however many there are."""

    home: Home

    def groups(self, kind: str = "") -> tuple[FailureGroup, ...]:
        """Every one that was not dismissed (of a class, or all), by class, most first. Raises as `retry_all` does."""
        groups = _grouped(every(lambda cursor: self._look(cursor, 500)[0]))
        return _found(tuple(g for g in groups if kind in ("", g.kind)), kind)

    def page(self, cursor: str = "", limit: int = PAGE) -> FailedPage:
        """The same of so many: what a page shows of however many there are."""
        page, names = self._look(cursor, limit)
        return FailedPage(_grouped(page.rows), names, page.cursor)

    def retry(self, only: FailureFilter, cursor: str = "", limit: int = PAGE) -> Page[str]:
        """Make those chosen among so many ready again with fresh tries."""
        page, _ = self._look(cursor, limit)
        by_job = grouped(filter(only.fits, page.rows), lambda task: task.job)
        revive = self.home.ledger.revive
        tasks = tuple(id for job, some in by_job.items() for id in revive(job, [task.id for task in some]))
        announce(self.home, tasks)
        return Page(tasks, page.cursor)

    def retry_all(self, kind: str = "") -> tuple[str, ...]:
        """Try all of a class (or all there are) again; killed in between, the same again does the rest.

        Raises:
            NotFound: nothing of that class is dead.
        """
        return _found(tuple(every(lambda cursor: self.retry(FailureFilter.of(kind), cursor))), kind)

    def dismiss_all(self, kind: str = "") -> tuple[str, ...]:
        """Dismiss all of a class, or all there are. Raises as `retry_all` does."""
        return _found(tuple(every(lambda cursor: self.dismiss(FailureFilter.of(kind), cursor))), kind)

    def dismiss(self, only: FailureFilter, cursor: str = "", limit: int = PAGE) -> Page[str]:
        """Dismiss those chosen among so many: they stay dead but are not shown any more."""
        page, _ = self._look(cursor, limit)
        some = list(filter(only.fits, page.rows))
        self.dismiss_tasks(some)
        return Page(tuple(task.id for task in some), page.cursor)

    def dismiss_tasks(self, dead: Iterable[Task]) -> None:
        """Do not show these any more."""
        for task in dead:
            self.home.records.put(DISCARDED, self.home.owner, _mark(task), {"task": task.id, "fence": task.fence})

    def _look(self, cursor: str, limit: int) -> tuple[Page[Task], dict[str, str]]:
        """Dead letters that are this owner's and were not dismissed, and the names of their jobs."""
        ledger, owner = self.home.ledger, self.home.owner
        page = ledger.tasks(state=TaskState.DEAD, cursor=cursor, limit=limit)
        ids = {task.job for task in page.rows}
        names = {job.id: job.name for job in ledger.jobs(owner, ids=ids).rows} if ids else {}
        mine = [task for task in page.rows if task.job in names]
        away = self.home.records.get_many(DISCARDED, owner, [_mark(task) for task in mine]) if mine else {}
        return Page(tuple(task for task in mine if _mark(task) not in away), page.cursor), names


def _found(some: tuple[T, ...], kind: str) -> tuple[T, ...]:
    if kind and not some:
        raise NotFound(f"no failed tasks of class {kind}", "See: rushes failed ls")
    return some


def _grouped(tasks: Iterable[Task]) -> tuple[FailureGroup, ...]:
    made = [FailureGroup(kind, _causes(some)) for kind, some in grouped(tasks, _kind).items()]
    return tuple(sorted(made, key=lambda g: (-len(g.tasks), g.kind)))


def _kind(task: Task) -> str:
    return task.failure.kind if task.failure else "Unknown"


def _mark(task: Task) -> str:
    return f"{task.id}.{task.fence}"  # a later death of the same task is news


def _causes(tasks: list[Task]) -> tuple[Cause, ...]:
    newest_first = sorted(tasks, key=lambda t: t.finished_at or "", reverse=True)
    return tuple(Cause(*said, tuple(some)) for said, some in grouped(newest_first, _said).items())


def _said(task: Task) -> tuple[str, str, str]:
    return (task.failure.message, task.failure.hint, task.failure.verdict) if task.failure else ("", "", "")
