"""A ledger that hands out the work of some jobs only: who waits for a film does not work through a backlog first."""

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import islice
from typing import Any

from rushes.domain.job import FINAL
from rushes.domain.task import Lease, Task, TaskState
from rushes.ledger.pages import every
from rushes.ledger.port import Ledger

_PAGE = 50


class OwnWork:
    """The ledger, but for claims: only tasks of these jobs, and only those that can be worked on here."""

    def __init__(self, ledger: Ledger, jobs: Sequence[str], can: Callable[[Task], bool]) -> None:
        self._ledger, self._open, self._can = ledger, list(jobs), can

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._ledger, verb)

    def claim(self, worker: str, lanes: Sequence[str], n: int, _hinted: Collection[str] = ()) -> tuple[Lease, ...]:
        """Up to n ready tasks of these jobs."""
        mine = list(islice(self._ready(lanes), n))
        return self._ledger.claim(worker, lanes, n, mine) if mine else ()

    def _ready(self, lanes: Sequence[str]) -> Iterator[str]:
        for job in list(self._open):
            if self._ledger.job(job).state in FINAL:
                self._open.remove(job)
                continue
            yield from (t.id for t in self._tasks(job) if t.lane in lanes and is_due(t) and self._can(t))

    def _tasks(self, job: str) -> Iterator[Task]:
        return every(lambda cursor: self._ledger.tasks(job, TaskState.READY, cursor=cursor, limit=_PAGE))


def is_due(task: Task) -> bool:
    """Whether a ready task may be claimed now."""
    return task.state is TaskState.READY and not task.due_in and not task.parked
