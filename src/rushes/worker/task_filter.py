"""Which tasks a worker takes: of some jobs or of all, and only those that this machine can run."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from rushes.domain.job import FINAL
from rushes.domain.task import Task, TaskState
from rushes.ledger.pages import every
from rushes.ledger.port import Ledger

_PAGE = 50
_PAGES = 4  # in one claim: a worker that reads a long queue to its end in one claim loses its lease
_REOPEN_SECONDS = 10.0  # between looks at jobs that were final: a look at 500 of them takes 30 ms


@dataclass(frozen=True, slots=True)
class TaskFilter:
    """Which tasks a worker takes; a worker without a filter takes all."""

    accepts: Callable[[Task], bool]
    jobs: tuple[str, ...] = ()  # only tasks of these jobs; none named: of all
    is_on: Callable[[], bool] = lambda: True  # while it is off, the worker takes all


class FilteredTasks:
    """Finds the ids of ready tasks that pass a filter, to claim them."""

    def __init__(self, ledger: Ledger, filter: TaskFilter) -> None:
        self._ledger, self._filter = ledger, filter
        self._open = list(filter.jobs)  # those that were not final at the last look
        self._reopen_at = 0.0
        self._cursors: dict[tuple[str, ...], str] = {}  # how far each group of lanes has read the whole queue

    @property
    def is_on(self) -> bool:
        """Whether only what `find` finds may be claimed."""
        return self._filter.is_on()

    @property
    def halfway(self) -> bool:
        """Whether there is more to read before one can say that nothing is left."""
        return self.is_on and any(self._cursors.values())

    def find(self, lanes: Sequence[str], n: int) -> list[str]:
        """Up to n tasks that may be claimed; none may mean that the next call reads on."""
        if not self._filter.jobs:
            return self._of_all(tuple(lanes), n)
        found = list(islice(self._of_jobs(lanes), n))
        if not found and self._reopened():
            found = list(islice(self._of_jobs(lanes), n))
        return found or list(islice(self._leased(), n))

    def _leased(self) -> Iterator[str]:
        """Where nothing is ready: in a bucket, who asks for a task of a dead machine takes its film over with it."""
        for job in self._open:
            yield from (task.id for task in self._ledger.tasks(job, TaskState.LEASED, limit=1).rows)

    def _reopened(self) -> bool:
        """Whether all jobs are looked at again: a final one may have been retried."""
        now = time.monotonic()
        if now < self._reopen_at or len(self._open) == len(self._filter.jobs):
            return False
        self._reopen_at, self._open = now + _REOPEN_SECONDS, list(self._filter.jobs)
        return True

    def _of_jobs(self, lanes: Sequence[str]) -> Iterator[str]:
        for job in list(self._open):
            if self._ledger.job(job).state in FINAL:
                self._open.remove(job)
                continue
            yield from (t.id for t in self._ready(job) if self._takes(t, lanes))

    def _ready(self, job: str) -> Iterator[Task]:
        return every(lambda cursor: self._ledger.tasks(job, TaskState.READY, cursor=cursor, limit=_PAGE))

    def _of_all(self, lanes: tuple[str, ...], n: int) -> list[str]:
        found: list[str] = []
        for _ in range(_PAGES):
            page = self._ledger.tasks(state=TaskState.READY, cursor=self._cursors.get(lanes, ""), limit=_PAGE)
            found += [t.id for t in page.rows if self._takes(t, lanes)]
            if len(found) >= n:
                break
            self._cursors[lanes] = page.cursor
            if not page.cursor:
                break
        return found[:n]

    def _takes(self, task: Task, lanes: Sequence[str]) -> bool:
        return task.lane in lanes and is_due(task) and self._filter.accepts(task)


def is_due(task: Task) -> bool:
    """Whether a ready task may be claimed now."""
    return task.state is TaskState.READY and not task.due_in and not task.parked
