"""Claims on PostgreSQL: of a few tasks, each with a row of its own, or of many as runs, which are leased as they are.

Marks spare large claims the walk over what was taken before.
"""

import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import repeat
from math import ceil
from operator import itemgetter
from typing import Any

from rushes.domain.errors import LeaseLost, RushesError
from rushes.domain.task import Lease
from rushes.ledger.postgres_work import part
from rushes.postgres.columns import numbers
from rushes.postgres.store import Cursor, Postgres, Row, Transaction

KNOWN = 20_000  # keys of leased tasks that are remembered
_FRESH_SECONDS = 1.0
_BEGINNING = (-(2**31), 0)
_ID, _LANE, _KEY, _RANK, _RUN = 0, 2, 6, 7, 8  # columns of a claimed row
_key, _rank, _run, _cut = itemgetter(_KEY), itemgetter(_RANK), itemgetter(_RUN), str.partition
_lease: Callable[[Iterable[Any]], Lease] = partial(tuple.__new__, Lease)  # a third of the time of its `_make`
_DOUBT_SECONDS = 30.0  # after a claim without an answer; the server ends one after ten
_SPARE = 1.25  # rows that a large claim looks at for each that it is likely to need: others may be shorter
_LOOSE = 100  # tasks of a run that get rows of their own when a few are wanted: whoever comes next finds them
_TRIES, _PAUSE_SECONDS = 20, 0.002  # of a claim that meets a run which others hold: 0.4 s, longer than a commit takes
Who = Mapping[str, Any]  # the values of a statement: the worker, its lanes, the moment if tests give it, and more
Before = Callable[[Transaction, Who], object]  # what is to be done before a claim looks


class Claims:
    """What this process remembers of its claims: the keys of their tasks, and how far each lane is taken.

    While something elsewhere keeps an old snapshot open, taken rows stay in the way: 68,000 tasks a second without
    marks, 105,000 with. A mark holds for a second, because tasks before it may become ready.
    """

    large = 100  # tasks of smaller claims have rows of their own, because they end one by one

    def __init__(self, db: Postgres, sql: Mapping[str, str]) -> None:
        self._db, self._sql = db, sql
        self._marks: dict[str, tuple[int, int]] = {}
        self._fresh_until = 0.0
        self._length = 16.0  # tasks in a row, as the last claim met them
        self._doubts: dict[str, float] = {}  # workers whose last claim was not answered, until when
        self.known: dict[str, int] = {}

    def claim(
        self, worker: str, lanes: Sequence[str], n: int, hinted: Collection[str], at: int | None
    ) -> tuple[Lease, ...]:
        """Lease the next tasks.

        Raises:
            LeaseLost: the worker's own row is over.
        """
        who = {"worker": worker, "at": at, "lanes": list(dict.fromkeys(lanes))}
        rows = self._unanswered(worker, n) if self._doubts else []
        try:
            rows = rows or (self._hinted(who, n, list(hinted)) if hinted else self._next(who, n))
        except RushesError:  # it may have been done, or some of it
            self._doubts[worker] = time.monotonic() + _DOUBT_SECONDS
            raise
        if not rows and not self._db.ask(self._sql["may_claim"], who):
            raise LeaseLost(f"the lease of worker {worker} has expired")
        return self._leases(rows)

    def forget(self) -> None:
        """Something may be ready before the marks."""
        self._marks.clear()

    def over(self, tasks: Iterable[str]) -> None:
        """These leases have ended: their keys need not be remembered."""
        deque(map(self.known.pop, tasks, repeat(None)), maxlen=0)  # without a step of ours for each

    def _next(self, who: Who, n: int) -> list[Row]:
        return self._many(who, n) if n >= self.large else self._few(who, n)

    def _few(self, who: Who, n: int) -> list[Row]:
        """The next tasks, one by one; of a run that is in the way some get rows of their own, when nobody holds it."""
        rows: list[Row] = []
        for attempt in range(_TRIES):
            if attempt > 1:
                time.sleep(_PAUSE_SECONDS * attempt)
            found = self._lease("claim", {**who, "n": n - len(rows)}, _loosen if attempt else _nothing)
            rows += (row for row in found if row[_ID])
            if len(rows) == n or all(row[_ID] for row in found):
                break
        return rows

    def _many(self, who: Who, n: int) -> list[Row]:
        """The next that nobody holds, look by look: how many tasks a row has is only guessed."""
        rows, more = list[Row](), True
        while more and len(rows) < n:
            got, more = self._look(who, n - len(rows))
            rows += got
        return rows

    def _look(self, who: Who, n: int) -> tuple[list[Row], bool]:
        """What one statement takes as runs, and whether there may be more."""
        if time.monotonic() > self._fresh_until:
            self._marks.clear()
            self._fresh_until = time.monotonic() + _FRESH_SECONDS
        marked = any(lane in self._marks for lane in who["lanes"])
        marks = [self._marks.get(lane, _BEGINNING) for lane in who["lanes"]]
        places = {"ranks": numbers(rank for rank, _ in marks), "keys": numbers(key for _, key in marks)}
        most = min(n, ceil(n / self._length * _SPARE))
        rows = self._lease("claim_runs", {**who, **places, "n": n, "rows": most}, _nothing)
        runs = len(set(map(_run, rows)))
        self._length = len(rows) / runs if runs else self._length
        if len(rows) < n and runs < most:
            self._marks.clear()
            return rows, marked
        self._mark(rows, len(marks))
        return rows, True

    def _mark(self, rows: Sequence[Row], lanes: int) -> None:
        """How far the lanes of these are taken: by the last one of each."""
        last: dict[str, tuple[int, int]] = {}
        for row in reversed(rows):
            last.setdefault(row[_LANE], (row[_RANK], row[_KEY]))
            if len(last) == lanes:
                break
        for lane, mark in last.items():
            self._marks[lane] = max(mark, self._marks.get(lane, mark))  # another thread may be further

    def _hinted(self, who: Who, n: int, ids: list[str]) -> list[Row]:
        """Of these only; if others took from their run meanwhile, once more."""
        in_runs: list[bool] = []
        for _ in range(_TRIES):
            rows = self._lease(
                "claim_hinted", {**who, "ids": ids, "n": n}, lambda turn, _: in_runs.append(part(turn, ids))
            )
            if rows or not in_runs[-1]:
                break
        return rows

    def _lease(self, name: str, values: Who, before: Before) -> list[Row]:
        def body(turn: Transaction) -> Cursor:
            before(turn, values)
            return turn.run_wide(name, **values)

        rows = self._db.write("ledger.claim", self._sql, body).fetchall()  # the answer came with the commit
        rows.sort(key=_key)
        rows.sort(key=_rank)  # two sorts by a number take half the time of one by a pair
        return rows

    def _unanswered(self, worker: str, n: int) -> list[Row]:
        """Leases of a claim whose answer was lost: nobody else would ever free them while this worker lives."""
        if time.monotonic() > self._doubts.get(worker, 0.0):
            self._doubts.pop(worker, None)
            return []
        return self._db.ask(self._sql["unanswered"], {"worker": worker, "known": list(self.known), "n": n})

    def _leases(self, rows: Sequence[Row]) -> tuple[Lease, ...]:
        if len(self.known) > KNOWN and not self._doubts:
            self.known.clear()  # leases that were lost; the others are looked up
        if not rows:
            return ()
        ids, fences, lanes, specs, failures, losses, keys, _, _ = zip(*rows, strict=True)
        self.known.update(zip(ids, keys, strict=True))
        jobs, _, places = zip(*map(_cut, ids, repeat(".")), strict=True)
        stages, chunks = zip(*map(_stage_and_chunk, places), strict=True)
        leases = zip(ids, fences, jobs, stages, chunks, lanes, specs, failures, losses, strict=True)
        return tuple(map(_lease, leases))


def _nothing(_turn: Transaction, _who: Who) -> None:
    """The claim looks at once."""


def _loosen(turn: Transaction, who: Who) -> None:
    turn.run("loosen", lanes=who["lanes"], loose=_LOOSE)


@lru_cache(maxsize=10_000)  # plans are much alike
def _stage_and_chunk(place: str) -> tuple[str, int | None]:
    """What a task's id says after its job: cheaper to read here than to keep in columns, which every claim writes."""
    stage, _, chunk = place.partition(".")
    return stage, int(chunk) if chunk else None
