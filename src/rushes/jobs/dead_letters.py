"""Dead letters for people: grouped by what went wrong, tried again or put away together."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from rushes.domain.errors import NotFound
from rushes.domain.task import Task, TaskState
from rushes.ledger.pages import every
from rushes.ledger.port import Ledger, Page
from rushes.records.port import Records

DISCARDED = "discarded"  # the kind of record that says: do not show this dead letter any more
T = TypeVar("T")
PAGE = 200  # dead letters that are looked at, tried again or put away in one go


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
class Choice:
    """Some dead letters: those of these classes (none: all) and of one step ("": all)."""

    kinds: frozenset[str] = frozenset()
    step: str = ""

    @staticmethod
    def of(kind: str, step: str = "") -> "Choice":
        """One class, or all ("")."""
        return Choice(frozenset({kind} if kind else ()), step)

    def fits(self, task: Task) -> bool:
        """Whether it is one of them."""
        return (not self.kinds or _kind(task) in self.kinds) and self.step in ("", task.stage)


@dataclass(frozen=True, slots=True)
class Acted:
    """The tasks of one go that were tried again or put away, and where the next ones begin."""

    tasks: tuple[str, ...]
    cursor: str


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """An owner's dead letters, a page at a time: three questions a page, however many there are."""

    ledger: Ledger
    records: Records
    owner: str

    def groups(self) -> tuple[FailureGroup, ...]:
        """Every one that was not put away, by class, most first."""
        return _grouped(every(lambda cursor: self._look(cursor, 500)[0]))

    def page(self, cursor: str = "", limit: int = PAGE) -> FailedPage:
        """The same of so many: what a page shows of however many there are."""
        page, names = self._look(cursor, limit)
        return FailedPage(_grouped(page.rows), names, page.cursor)

    def retry(self, choice: Choice, cursor: str = "", limit: int = PAGE) -> Acted:
        """Make those chosen among so many ready again with fresh tries."""
        page, _ = self._look(cursor, limit)
        by_job: dict[str, list[str]] = {}
        for task in filter(choice.fits, page.rows):
            by_job.setdefault(task.job, []).append(task.id)
        return Acted(tuple(t for job, ids in by_job.items() for t in self.ledger.revive(job, ids)), page.cursor)

    def discard(self, choice: Choice, cursor: str = "", limit: int = PAGE) -> Acted:
        """Put those chosen among so many away: they stay dead but are not shown any more."""
        page, _ = self._look(cursor, limit)
        some = list(filter(choice.fits, page.rows))
        self.put_away(some)
        return Acted(tuple(task.id for task in some), page.cursor)

    def put_away(self, dead: Iterable[Task]) -> None:
        """Show these no more."""
        for task in dead:
            self.records.put(DISCARDED, self.owner, _mark(task), {"task": task.id, "fence": task.fence})

    def _look(self, cursor: str, limit: int) -> tuple[Page[Task], dict[str, str]]:
        """Dead letters that are this owner's and were not put away, and the names of their jobs."""
        page = self.ledger.tasks(state=TaskState.DEAD, cursor=cursor, limit=limit)
        ids = {task.job for task in page.rows}
        names = {job.id: job.name for job in self.ledger.jobs(self.owner, ids=ids).rows} if ids else {}
        mine = [task for task in page.rows if task.job in names]
        away = self.records.get_many(DISCARDED, self.owner, [_mark(task) for task in mine]) if mine else {}
        return Page(tuple(task for task in mine if _mark(task) not in away), page.cursor), names


def all_of(act: Callable[[str], Acted]) -> tuple[str, ...]:
    """Go after go until none is left; killed in between, the same again does the rest."""
    done = act("")
    tasks = list(done.tasks)
    while done.cursor:
        done = act(done.cursor)
        tasks += done.tasks
    return tuple(tasks)


def chosen(some: tuple[T, ...], kind: str) -> tuple[T, ...]:
    """What is there of a class.

    Raises:
        NotFound: nothing of that class is dead.
    """
    if kind and not some:
        raise NotFound(f"nothing failed with {kind}", "See: rushes failed ls")
    return some


def _grouped(tasks: Iterable[Task]) -> tuple[FailureGroup, ...]:
    groups: dict[str, list[Task]] = {}
    for task in tasks:
        groups.setdefault(_kind(task), []).append(task)
    made = [FailureGroup(kind, _causes(some)) for kind, some in groups.items()]
    return tuple(sorted(made, key=lambda g: (-len(g.tasks), g.kind)))


def _kind(task: Task) -> str:
    return task.failure.kind if task.failure else "Unknown"


def _mark(task: Task) -> str:
    return f"{task.id}.{task.fence}"  # a later death of the same task is news


def _causes(tasks: list[Task]) -> tuple[Cause, ...]:
    said: dict[tuple[str, str, str], list[Task]] = {}
    for task in sorted(tasks, key=lambda t: t.finished_at or "", reverse=True):
        f = task.failure
        said.setdefault((f.message, f.hint, f.verdict) if f else ("", "", ""), []).append(task)
    return tuple(Cause(*words, tuple(some)) for words, some in said.items())
