"""A ledger's hold on its table: clocks, what it has seen, and changes that are tried again until nobody was quicker."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import SystemRandom
from typing import TypeVar

from rushes.aws.changes import Stamps
from rushes.aws.table import TRANSACTION, Item, Key, Refusal, Table, Write
from rushes.domain.errors import StoreAway
from rushes.domain.task import LEASE_SECONDS, Draft
from rushes.ledger.clock import Seconds
from rushes.ledger.dynamodb_doubts import Doubts
from rushes.ledger.dynamodb_rows import OWED, JobRow, LanesRow, TaskRow, WorkerRow, job_key, task_key, unpack
from rushes.ledger.dynamodb_turn import Turn
from rushes.telemetry import effect

T = TypeVar("T")
KEPT = 5000  # items remembered
_TRIES = 60
_chance = SystemRandom()


@dataclass(slots=True)
class Sightings:
    """When each worker's row was last seen to change, by this process's own clock: nobody's wall clock is trusted."""

    clock: Seconds
    seen: dict[str, tuple[int, float]] = field(default_factory=dict)  # worker -> beat, when

    def see(self, row: WorkerRow, at: float | None = None) -> float:
        """Seconds until its lease is over; `at` is when the row was known to be as it is."""
        now = self.clock()
        if self.seen.get(row.id, (-1, 0.0))[0] != row.beat:
            self.seen[row.id] = row.beat, now if at is None else at
        return 0.0 if row.left else max(0.0, self.seen[row.id][1] + LEASE_SECONDS - now)

    def since(self, name: str) -> float:
        """Seconds since that was seen for the first time."""
        return self.clock() - self.seen.setdefault(name, (0, self.clock()))[1]

    def again(self, name: str, seconds: float) -> bool:
        """Whether that was not seen for so long, or never; it is seen now."""
        now, last = self.clock(), self.seen.get(name)
        if last and now - last[1] < seconds:
            return False
        self.seen[name] = 0, now
        return True


class Store:
    """What every verb is given."""

    def __init__(self, table: Table, clock: Seconds, sightings: Sightings) -> None:
        self.table, self.clock, self.wall, self.sightings = table, clock, table.wall, sightings
        self.doubts = Doubts(clock)
        self._stamps = Stamps(table.wall)
        self._cache: dict[Key, tuple[float, Item]] = {}
        self._lock = threading.Lock()
        self._plans: dict[tuple[str, int], list[Draft]] = {}

    def turn(self, seen: Mapping[Key, Item | None] | None = None) -> Turn:
        """A transaction that begins now."""
        return Turn(self.table, self.wall(), self._stamps.next(), seen or {}, self._plans)

    def change(self, verb: str, work: Callable[[Turn], T], seen: Mapping[Key, Item | None] | None = None) -> T:
        """Do it in one transaction; again with what stands there now, while others are quicker.

        Raises:
            StoreAway: others were always quicker.
        """
        known, cached = dict(seen or {}), bool(seen)
        for n in range(_TRIES):
            turn = self.turn(known)
            answer = work(turn)
            try:
                turn.commit(verb)
            except Refusal as refusal:
                known = {**(known if cached else {}), **refusal.found}
                self.remember({key: item for key, item in refusal.found.items() if item})
                time.sleep(_chance.uniform(0, min(0.2, 0.002 * 2**n)))
            else:
                self.remember(turn.written)
                return answer
        raise StoreAway("too many writers of the same rows")

    def execute(self, verb: str, statements: Sequence[Write]) -> list[Item]:
        """Updates that hold each by itself; the items that were changed."""
        with effect(f"ledger.{verb}"):
            items = self.table.execute(statements)
        self.remember({(str(item["pk"]), str(item["sk"])): item for item in items})
        return items

    def save(self, verb: str, items: Iterable[Item] = (), gone: Iterable[Key] = ()) -> None:
        """Writes that nobody else makes."""
        with effect(f"ledger.{verb}"):
            self.table.save(items, gone)

    def jobs(self, ids: Iterable[str], seconds: float) -> dict[str, JobRow]:
        """Job rows, no older than that."""
        keys = {job_key(id): id for id in ids}
        known = self.recall(keys, seconds)
        found = self.table.fetch([key for key in keys if key not in known])
        self.remember(found)
        return {keys[key]: unpack(JobRow, item) for key, item in {**known, **found}.items()}

    def remember(self, items: Mapping[Key, Item]) -> None:
        """Items as they are now, to be tried first the next time."""
        now = self.clock()
        with self._lock:
            if len(self._cache) + len(items) > KEPT:
                self._cache.clear()
            self._cache.update({key: (now, item) for key, item in items.items()})

    def recall(self, keys: Iterable[Key], seconds: float = float("inf")) -> dict[Key, Item]:
        """Those of these items that were seen in the last seconds."""
        oldest = self.clock() - seconds
        with self._lock:
            found = {key: self._cache[key] for key in keys if key in self._cache}
        return {key: item for key, (at, item) in found.items() if at > oldest}

    def recall_tasks(self, tasks: Iterable[str]) -> dict[Key, Item]:
        """What was seen of these tasks, of those who need them, and of their jobs."""
        found = self.recall(map(task_key, tasks))
        needers = [id for item in found.values() for id in unpack(TaskRow, item).then]
        found |= self.recall(map(task_key, needers[:TRANSACTION]))
        jobs = {key[0] for key in found}
        return found | self.recall((job, "job") for job in jobs) | self.recall([LanesRow.key])

    def pay(self, job: str, pages: int = 1000) -> list[str]:
        """Pay what a job owes, a transaction a page; the tasks that became ready."""
        ready: list[str] = []
        for _ in range(pages):
            owes, some = self.change("owed", lambda turn: _page(turn, job), self.recall([job_key(job), LanesRow.key]))
            ready += some
            if not owes:
                break
        return ready

    def owing(self, jobs: Iterable[str]) -> list[str]:
        """Those of these jobs that owe something, as far as it was seen."""
        items = self.recall(map(job_key, dict.fromkeys(jobs)))
        return [key[0].removeprefix("job#") for key, item in items.items() if item.get("place") == OWED]


def _page(turn: Turn, job: str) -> tuple[bool, list[str]]:
    row: JobRow | None = turn.job(job)
    if row is None or not row.owed:
        turn.sure([job_key(job)])
        row = turn.job(job)
    if row is None or not row.owed:
        return False, []
    ready = turn.pay(row)
    return bool(row.owed), ready
