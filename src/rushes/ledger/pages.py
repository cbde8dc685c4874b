"""Iterating over all pages of a list."""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TypeVar

from rushes.domain.event import Event, EventType
from rushes.domain.job import Job
from rushes.domain.result import Result
from rushes.domain.task import Task, TaskState
from rushes.ledger.port import Ledger, Page

T = TypeVar("T")
_PAGE = 200


def every(ask: Callable[[str], Page[T]]) -> Iterator[T]:
    """All rows of a question that is asked with a cursor."""
    page = ask("")
    yield from page.rows
    while page.cursor:
        page = ask(page.cursor)
        yield from page.rows


def all_jobs(ledger: Ledger, owner: str) -> Iterator[Job]:
    """Every job of an owner, oldest first."""
    return every(lambda cursor: ledger.jobs(owner, oldest_first=True, cursor=cursor))


def all_tasks(ledger: Ledger, job: str, state: TaskState | None = None, stage: str = "") -> tuple[Task, ...]:
    """Every task of a job, in plan order."""
    return tuple(every(lambda cursor: ledger.tasks(job, state, stage, cursor=cursor)))


def tasks_by_id(ledger: Ledger, ids: Sequence[str]) -> Iterator[Task]:
    """Those of these tasks that there are."""
    for at in range(0, len(ids), _PAGE):
        yield from ledger.tasks(ids=ids[at : at + _PAGE]).rows


def known_in_pages(ledger: Ledger, owner: str, keys: Collection[str]) -> dict[str, Result]:
    """Which of these results exist, however many they are."""
    wanted = list(dict.fromkeys(keys))
    pages = (wanted[at : at + _PAGE] for at in range(0, len(wanted), _PAGE))
    return {key: result for page in pages for key, result in ledger.known(owner, page).items()}


def all_events(ledger: Ledger, job: str, after: int = 0, types: Collection[EventType] = ()) -> Iterator[Event]:
    """Every event of a job after a number."""
    while page := ledger.events(job, after, types):
        yield from page
        after = page[-1].number
