"""What the contract of the ledger is tried with: backends with a clock that tests move, and small jobs."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, cast

import aws_kit
import postgres_kit
from obstore.store import MemoryStore
from remote_kit import RemoteHandle

from rushes.bucket.conditional import ConditionalBucket
from rushes.domain.job import NewJob
from rushes.domain.keys import job_id, task_id
from rushes.domain.result import Result
from rushes.domain.task import Draft, Failure, Finish, Lease, Need
from rushes.domain.worker import Incarnation
from rushes.ledger.bucket import BucketLedger
from rushes.ledger.dynamodb import DynamoLedger
from rushes.ledger.memory import MemoryLedger
from rushes.ledger.port import Ledger
from rushes.ledger.postgres import PostgresLedger
from rushes.ledger.sqlite import SqliteLedger

OWNER = "ann"
BROKEN = Failure("SlotDied", "it died", "look at the log", "may work next time", ("last line",), 9)


@dataclass(slots=True)
class Clock:
    """Seconds and wall time that stand still until a test moves them."""

    seconds: float = 1000.0
    millis: int = 1_700_000_000_000

    def now(self) -> float:
        return self.seconds

    def wall(self) -> int:
        return self.millis

    def advance(self, seconds: float) -> None:
        self.seconds += seconds
        self.millis += int(seconds * 1000)


class Handle(Ledger, Protocol):
    """A ledger that can be closed."""

    def close(self) -> None: ...


@dataclass(slots=True)
class Backend:
    """One store, any number of handles on it."""

    name: str
    folder: Path
    clock: Clock = field(default_factory=Clock)
    gone: set[str] = field(default_factory=set)  # workers whose process is gone
    handles: list[Handle] = field(default_factory=list)

    def open(self) -> Ledger:
        """A handle on the store."""
        handle = OPEN[self.name](self)
        self.handles.append(handle)
        return handle

    def close(self) -> None:
        for handle in self.handles:
            handle.close()

    def is_gone(self, worker: Incarnation) -> bool:
        return worker.id in self.gone


def _memory(backend: Backend) -> Handle:
    return (
        backend.handles[0] if backend.handles else MemoryLedger(backend.clock.now, backend.clock.wall, backend.is_gone)
    )


def _sqlite(backend: Backend) -> Handle:
    clock, path = backend.clock, backend.folder / "ledger.sqlite"
    return SqliteLedger(path, clock=clock.now, wall=clock.wall, is_gone=backend.is_gone)


def _postgres(version: int) -> Callable[[Backend], Handle]:
    def opened(backend: Backend) -> Handle:
        db = postgres_kit.database(version, backend.folder)
        return PostgresLedger(db, wall=backend.clock.wall, is_gone=backend.is_gone)

    return opened


def _dynamodb(backend: Backend) -> Handle:
    clock, folder = backend.clock, backend.folder
    seen = aws_kit.heartbeats(folder, clock.now)
    return DynamoLedger(aws_kit.table(folder, clock.wall), clock.now, backend.is_gone, seen)


@functools.cache
def _memory_bucket(_folder: Path) -> ConditionalBucket:
    return ConditionalBucket(MemoryStore())


def _bucket(backend: Backend) -> Handle:
    """All jobs in one film, so that all that holds for a ledger holds in it; films apart: test_bucket_ledger."""
    if backend.handles:  # one process holds a film
        return backend.handles[0]
    clock = backend.clock
    me = Incarnation("process", "host", "boot", 1, "1")
    return BucketLedger(
        _memory_bucket(backend.folder),
        backend.folder / "bucket",
        me,
        lambda _new: "film",
        lambda _key: "film",
        clock=clock.now,
        wall=clock.wall,
        ledger_clock=clock.now,
        is_gone=backend.is_gone,
    )


def kill(ledger: BucketLedger) -> None:
    """The process ends here: nothing is stored or released any more."""
    films = ledger.films
    films._over.set()
    films._wake.set()
    if films._thread:
        films._thread.join()
    for one in films:
        one.close()
    films._held.clear()


def _remote(backend: Backend) -> Handle:
    """One server: what a worker was told it keeps for all handles."""
    return backend.handles[0] if backend.handles else cast(Handle, RemoteHandle(_sqlite(backend), backend.folder))


OPEN: dict[str, Callable[[Backend], Handle]] = {"memory": _memory, "sqlite": _sqlite, "remote": _remote}
OPEN["dynamodb"] = _dynamodb
OPEN["bucket"] = _bucket
OPEN |= {f"postgres{version}": _postgres(version) for version in postgres_kit.VERSIONS}


def who(id: str = "w1") -> Incarnation:
    """A worker."""
    return Incarnation(id, "host", "boot", 4711, "1", ("cpu",), 2, "m", "0")


def worker(ledger: Ledger, id: str = "w1") -> Incarnation:
    """A worker that has entered."""
    ledger.renew(who(id), {}, {})
    return who(id)


def new_job(name: str = "film", owner: str = OWNER, priority: int = 0) -> NewJob:
    """A job as it is submitted."""
    return NewJob(job_id(owner, name), owner, name, f"{name}.mp4", "searchable", '{"a": 1}', priority, "team")


def first_of(new: NewJob, needs: Sequence[Need] = (), lane: str = "cpu") -> Draft:
    """Its first task."""
    return Draft(task_id(new.id, "probe", None), new.id, "probe", None, "{}", lane, 0, tuple(needs))


def film(new: NewJob, chunks: int = 3, lane: str = "cpu") -> list[Draft]:
    """A plan: chunks that need nothing more, and a join that needs every chunk."""
    parts = [
        Draft(task_id(new.id, "develop", n), new.id, "develop", n, f'{{"n": {n}}}', lane, n + 1) for n in range(chunks)
    ]
    needs = tuple(Need(part.id) for part in parts)
    return [*parts, Draft(task_id(new.id, "join", None), new.id, "join", None, "{}", lane, chunks + 1, needs)]


def opened(ledger: Ledger, new: NewJob, plan: Sequence[Draft], by: str = "opener") -> tuple[str, ...]:
    """Submit a job and open its plan; the tasks that are ready."""
    worker(ledger, by)
    first = first_of(new)
    ledger.submit(new, first)
    (lease,) = ledger.claim(by, ["cpu"], 1, hinted=[first.id])
    ledger.draft(new.id, lease.task, lease.fence, plan, '{"found": true}')
    return ledger.complete(by, [Finish(lease.task, lease.fence)]).ready


def claim(ledger: Ledger, by: str = "w1", n: int = 1, hinted: Sequence[str] = ()) -> tuple[Lease, ...]:
    """Up to n leases of lane cpu."""
    return ledger.claim(by, ["cpu"], n, hinted)


def done(lease: Lease, *results: Result, seconds: float = 1.0) -> Finish:
    """A finish of that lease."""
    return Finish(lease.task, lease.fence, results, seconds=seconds)


def result(name: str, publishes: bool = False) -> Result:
    """A result row."""
    return Result(f"{name}-key", "frames", "ab" * 32, 7, 3, 1, publishes)


def stale(lease: Lease) -> Lease:
    """The same lease with a fence of before."""
    return lease._replace(fence=lease.fence - 1)


def picture(ledger: Ledger, *jobs: str) -> object:
    """All that readers can see, to tell whether something changed."""
    return (
        [(ledger.job(job), ledger.tasks(job), ledger.events(job)) for job in jobs],
        ledger.changed(),
        ledger.workers(),
    )
