"""Reading all of what comes in pages."""

from collections.abc import Callable, Iterator
from typing import TypeVar

from rushes.domain.job import Job
from rushes.domain.task import Task, TaskState
from rushes.ledger.port import Ledger, Page

T = TypeVar("T")


def every(ask: Callable[[str], Page[T]]) -> Iterator[T]:
    """All rows of a question that is asked with a cursor."""
    cursor, more = "", True
    while more:
        page = ask(cursor)
        yield from page.rows
        cursor = page.cursor
        more = bool(cursor)


def all_jobs(ledger: Ledger, owner: str) -> Iterator[Job]:
    """Every job of an owner, oldest first."""
    return every(lambda cursor: ledger.jobs(owner, oldest_first=True, cursor=cursor))


def all_tasks(ledger: Ledger, job: str, state: TaskState | None = None, stage: str = "") -> tuple[Task, ...]:
    """Every task of a job, in plan order."""
    return tuple(every(lambda cursor: ledger.tasks(job, state, stage, cursor=cursor)))
