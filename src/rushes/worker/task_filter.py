"""Ledgers that hand out some work only: of some jobs, for whoever waits for a film, or what needs no weights."""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import islice
from typing import Any

from rushes.domain.job import FINAL
from rushes.domain.task import Lease, Task, TaskState
from rushes.ledger.pages import every
from rushes.ledger.port import Ledger

_PAGE = 50
_PAGES = 4  # in one claim
_AGAIN_SECONDS = 10.0  # between looks at jobs that were final: with 500 of them one takes 30 ms


class OwnWork:
    """The ledger, but for claims: only tasks of these jobs, and only those that can be worked on here."""

    def __init__(self, ledger: Ledger, jobs: Sequence[str], can: Callable[[Task], bool]) -> None:
        self._ledger, self._jobs, self._can = ledger, tuple(jobs), can
        self._open = list(jobs)  # those that were not final when they were last looked at
        self._again_at = 0.0

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._ledger, verb)

    def claim(self, worker: str, lanes: Sequence[str], n: int, _hinted: Collection[str] = ()) -> tuple[Lease, ...]:
        """Up to n ready tasks of these jobs."""
        mine = list(islice(self._ready(lanes), n))
        if not mine and self._reopened():
            mine = list(islice(self._ready(lanes), n))
        return self._ledger.claim(worker, lanes, n, mine) if mine else ()

    def _reopened(self) -> bool:
        """Whether all jobs are looked at again: somebody may have tried a final one again."""
        now = time.monotonic()
        if now < self._again_at or len(self._open) == len(self._jobs):
            return False
        self._again_at, self._open = now + _AGAIN_SECONDS, list(self._jobs)
        return True

    def _ready(self, lanes: Sequence[str]) -> Iterator[str]:
        for job in list(self._open):
            if self._ledger.job(job).state in FINAL:
                self._open.remove(job)
                continue
            yield from (t.id for t in self._tasks(job) if t.lane in lanes and is_due(t) and self._can(t))

    def _tasks(self, job: str) -> Iterator[Task]:
        return every(lambda cursor: self._ledger.tasks(job, TaskState.READY, cursor=cursor, limit=_PAGE))


class AbleWork:
    """The ledger, but for claims: while weights are lacking, only tasks that can be worked on without them."""

    def __init__(self, ledger: Ledger, can: Callable[[Task], bool], able: Callable[[], bool]) -> None:
        self._ledger, self._can, self._able = ledger, can, able
        self._cursors: dict[tuple[str, ...], str] = {}  # how far each group of lanes has read

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._ledger, verb)

    def claim(self, worker: str, lanes: Sequence[str], n: int, hinted: Collection[str] = ()) -> tuple[Lease, ...]:
        """Up to n ready tasks that can be done here."""
        if self._able():
            return self._ledger.claim(worker, lanes, n, hinted)
        some = self._some(tuple(lanes), n)
        return self._ledger.claim(worker, lanes, n, some) if some else ()

    @property
    def halfway(self) -> bool:
        """Whether there is more to read before anybody can say that nothing is left."""
        return not self._able() and any(self._cursors.values())

    def _some(self, lanes: tuple[str, ...], n: int) -> list[str]:
        """Up to n of the next few pages: whoever reads a long queue to its end in one claim loses its lease."""
        found: list[str] = []
        for _ in range(_PAGES):
            page = self._ledger.tasks(state=TaskState.READY, cursor=self._cursors.get(lanes, ""), limit=_PAGE)
            found += [t.id for t in page.rows if t.lane in lanes and is_due(t) and self._can(t)]
            if len(found) >= n:
                break
            self._cursors[lanes] = page.cursor
            if not page.cursor:
                break
        return found[:n]


def is_due(task: Task) -> bool:
    """Whether a ready task may be claimed now."""
    return task.state is TaskState.READY and not task.due_in and not task.parked
