"""A ledger's access to its table: clocks, cache, and changes retried until no other writer interferes."""

import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import SystemRandom
from typing import TypeVar

from rushes.aws.table import TRANSACTION, Item, Key, Table, Timestamps, TransactionCancelled, Write, key_of
from rushes.domain.errors import StoreAway
from rushes.domain.worker import Incarnation
from rushes.ledger.clock import Seconds, boot_seconds
from rushes.ledger.dynamodb import owed
from rushes.ledger.dynamodb.keys import OWED, job_key, job_of, task_key
from rushes.ledger.dynamodb.rows import JobRow, LanesRow, TaskRow, WorkerRow, unpack
from rushes.ledger.dynamodb.transaction import Plans, Transaction
from rushes.telemetry import effect

UNDER_WAY_SECONDS = 60.0  # longer than any request: what did not come about by then never will
Unconfirmed = dict[tuple[Key, str], float]  # task and claim id -> when that was sent


class UnconfirmedClaims:
    """What each worker of this process may hold without knowing."""

    def __init__(self, clock: Seconds) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._by_worker: dict[str, Unconfirmed] = {}

    @contextmanager
    def of(self, worker: str) -> Iterator[Unconfirmed]:
        """All of a worker, for one caller at a time; what is left at the end, however it ends, is kept."""
        with self._lock:
            claims = self._by_worker.pop(worker, {})
        try:
            yield claims
        finally:
            if claims:
                with self._lock:
                    self._by_worker.setdefault(worker, {}).update(claims)

    def begin(self, claims: Unconfirmed, keys: Iterable[Key]) -> str:
        """A new claim id for these tasks, noted before the claim is sent."""
        claim_id, now = secrets.token_hex(8), self._clock()
        claims.update({(key, claim_id): now for key in keys})
        return claim_id

    def age(self, claims: Unconfirmed) -> float:
        """How long the oldest has been unconfirmed."""
        return max((self._clock() - at for at in claims.values()), default=0.0)


T = TypeVar("T")
CACHED = 5000  # items
_TRIES = 60
_chance = SystemRandom()


@dataclass(slots=True)
class Heartbeats:
    """When each worker's row was last seen to change, by this process's own clock: nobody's wall clock is trusted."""

    clock: Seconds
    _seen: dict[str, tuple[int, float]] = field(default_factory=dict)  # worker -> heartbeat, when
    _times: dict[str, float] = field(default_factory=dict)

    def lease_left(self, row: WorkerRow, at: float | None = None) -> float:
        """Seconds until its lease is over; `at` is when the row was known to be as it is."""
        now = self.clock()
        if self._seen.get(row.id, (-1, 0.0))[0] != row.heartbeat:
            self._seen[row.id] = row.heartbeat, now if at is None else at
        return 0.0 if row.left else max(0.0, self._seen[row.id][1] + row.lease_seconds - now)

    def since_over(self, worker: str) -> float:
        """Seconds since this process first saw that the worker is over."""
        return self.clock() - self._times.setdefault(worker, self.clock())

    def is_due(self, name: str, seconds: float) -> bool:
        """Whether something that is done every so many seconds is due; it counts as done now."""
        now, last = self.clock(), self._times.get(name)
        if last is not None and now - last < seconds:
            return False
        self._times[name] = now
        return True


class Store:
    """What every verb is given."""

    def __init__(
        self,
        table: Table,
        clock: Seconds = boot_seconds,
        is_gone: Callable[[Incarnation], bool] = lambda _: False,
        heartbeats: Heartbeats | None = None,
    ) -> None:
        """`heartbeats` are shared by the ledgers of one process."""
        self.table, self.clock, self.wall, self.is_gone = table, clock, table.wall, is_gone
        self.heartbeats = heartbeats or Heartbeats(clock)
        self.unconfirmed = UnconfirmedClaims(clock)
        self._timestamps = Timestamps(table.wall)
        self._cache: dict[Key, tuple[float, Item]] = {}
        self._lock = threading.Lock()
        self._plans: Plans = {}

    # Transactions
    def begin(self, cached: Mapping[Key, Item | None] | None = None) -> Transaction:
        """A transaction that begins now."""
        return Transaction(self.table, self.wall(), self._timestamps.next(), cached or {}, self._plans)

    def change(self, verb: str, work: Callable[[Transaction], T], cached: Mapping[Key, Item | None] | None = None) -> T:
        """Do it in one transaction; again with what is there now, while others are quicker.

        Raises:
            StoreAway: others were always quicker.
        """
        known = dict(cached or {})
        for n in range(_TRIES):
            tx = self.begin(known)
            answer = work(tx)
            try:
                tx.commit(verb)
            except TransactionCancelled as e:
                known = {**(known if cached else {}), **e.found}
                self.remember({key: item for key, item in e.found.items() if item})
                time.sleep(_chance.uniform(0, min(0.2, 0.002 * 2**n)))
            else:
                self.remember(tx.written)
                return answer
        raise StoreAway("too many concurrent writers of the same rows")

    def execute(self, verb: str, statements: Sequence[Write]) -> list[Item]:
        """Updates that hold each by itself; the items that were changed."""
        with effect(f"ledger.{verb}"):
            items = self.table.execute(statements)
        self.remember({key_of(item): item for item in items})
        return items

    def save(self, verb: str, items: Iterable[Item] = (), gone: Iterable[Key] = ()) -> None:
        """Writes that nobody else makes."""
        with effect(f"ledger.{verb}"):
            self.table.save(items, gone)

    # The cache
    def remember(self, items: Mapping[Key, Item]) -> None:
        """Items as they are now, to be tried first the next time."""
        now = self.clock()
        with self._lock:
            if len(self._cache) + len(items) > CACHED:
                self._cache.clear()
            self._cache.update({key: (now, item) for key, item in items.items()})

    def clear_cache(self) -> None:
        """Whatever was read may be gone."""
        with self._lock:
            self._cache.clear()

    def recall(self, keys: Iterable[Key], seconds: float = float("inf")) -> dict[Key, Item]:
        """Those of these items that were read or written in the last seconds."""
        oldest = self.clock() - seconds
        with self._lock:
            found = {key: self._cache[key] for key in keys if key in self._cache}
        return {key: item for key, (at, item) in found.items() if at > oldest}

    def recall_tasks(self, tasks: Iterable[str]) -> dict[Key, Item]:
        """What is cached of these tasks, of their dependants, and of their jobs."""
        found = self.recall(map(task_key, tasks))
        dependants = [id for item in found.values() for id in unpack(TaskRow, item).dependants]
        found |= self.recall(map(task_key, dependants[:TRANSACTION]))
        return found | self.recall([*((pk, "job") for pk, _ in found), LanesRow.key])

    def job_rows(self, ids: Iterable[str], seconds: float) -> dict[str, JobRow]:
        """Job rows, no older than that."""
        keys = {job_key(id): id for id in ids}
        known = self.recall(keys, seconds)
        found = self.table.fetch([key for key in keys if key not in known])
        self.remember(found)
        return {keys[key]: unpack(JobRow, item) for key, item in {**known, **found}.items()}

    # What jobs owe
    def pay_if_owing(self, jobs: Iterable[str]) -> list[str]:
        """Pay what these jobs owe, as far as it is cached that they do; the tasks that became ready."""
        items = self.recall(map(job_key, dict.fromkeys(jobs)))
        return [task for item in items.values() if item.get("list_name") == OWED for task in self.pay(job_of(item))]

    def pay(self, job: str, pages: int = 1000) -> list[str]:
        """Pay what a job owes, a transaction a page; the tasks that became ready."""
        ready: list[str] = []
        for _ in range(pages):
            owes, some = self.change("owed", lambda tx: _pay_page(tx, job), self.recall([job_key(job), LanesRow.key]))
            ready += some
            if not owes:
                break
        return ready


def _pay_page(tx: Transaction, job: str) -> tuple[bool, list[str]]:
    row = tx.find_job(job)
    if row is None or not row.owed:
        tx.reload([job_key(job)])
        row = tx.find_job(job)
    if row is None or not row.owed:
        return False, []
    ready = owed.pay(tx, row)
    return bool(row.owed), ready
