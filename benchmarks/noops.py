"""No-op tasks worked off, and their events read, by processes that begin together."""

import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import TypeVar

from benchmarks.filled_homes import LANE, worker
from rushes.domain.errors import StoreAway
from rushes.domain.result import Result
from rushes.domain.task import RENEW_SECONDS, Finish, Lease
from rushes.home import Home
from rushes.jobs.progress import follow
from rushes.wiring import open_home

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ran:
    """What one process did: how much, when, at what cost; and the seconds that its work tells of."""

    count: int
    begin: float
    end: float
    cpu: float
    seconds: tuple[float, ...] = ()


Work = Callable[[Home], tuple[int, Sequence[float]]]  # how much was done, and seconds to tell of


def drain(home: Home, batch: int = 0) -> tuple[int, Sequence[float]]:
    """Work until nothing is left, by as many at once as the ledger takes unless told; the seconds of each claim."""
    worked = list(_batches(home, batch or home.ledger.batch))
    return sum(done for done, _ in worked), [claim for _, claim in worked]


def drain_in_turns(other: Path, home: Home) -> tuple[int, Sequence[float]]:
    """A batch of this home, a batch of the other, so that both have the same weather; seconds of a task in each.

    The first of each counts as done, not as measured: connections are made there, and statements are planned.
    """
    beside = open_home(other, create=False)
    first, *batches = zip(_timed(home), _timed(beside), strict=False)
    beside.close()
    each = [[sum(part) for part in zip(*these, strict=True)] for these in zip(*batches, strict=True)]
    return int(sum(done for done, _ in (*first, *each))), [took / done for done, took in each]


def _timed(home: Home) -> Iterator[tuple[int, float]]:
    begin = time.perf_counter()
    for done, _ in _batches(home, home.ledger.batch):
        yield done, time.perf_counter() - begin
        begin = time.perf_counter()


def _batches(home: Home, batch: int) -> Iterator[tuple[int, float]]:
    """Claim and complete by the product's verbs, led by hints where they queue: how many, and seconds of the claim.

    As in a worker, threads of their own tell hints and listen for them while a batch is worked on.
    """
    me, renewed = worker(), -RENEW_SECONDS
    with ThreadPoolExecutor(1) as ear, ThreadPoolExecutor(1) as mouth:
        for hints in _hints(home, batch, ear):
            if time.monotonic() - renewed >= RENEW_SECONDS:
                home.ledger.renew(me, {}, {})
                renewed = time.monotonic()
            asked = time.perf_counter()
            hinted = () if home.ledger.finds_next else hints
            leases = _insist(partial(home.ledger.claim, me.id, [LANE], batch, hinted))
            claimed = time.perf_counter() - asked
            if not leases and not hints:
                return
            completed = _insist(partial(home.ledger.complete, me.id, [_finish(lease) for lease in leases]))
            if completed.ready:
                mouth.submit(home.transport.announce, LANE, completed.ready)
            yield sum(said == "ok" for said in completed.verdicts), claimed


def _insist(ask: Callable[[], T]) -> T:
    """As a worker does: of many that write at once to SQLite one may wait for longer than is waited for."""
    while True:
        try:
            return ask()
        except StoreAway:
            continue


def _hints(home: Home, batch: int, ear: ThreadPoolExecutor) -> Iterator[tuple[str, ...]]:
    """What each batch is hinted by, where hints queue."""
    if not home.transport.queues:
        yield from repeat(())
    coming = ear.submit(home.transport.wait, [LANE], 0, batch)
    while True:
        heard, coming = coming, ear.submit(home.transport.wait, [LANE], 0, batch)
        yield heard.result()


def drain_singly(home: Home) -> tuple[int, Sequence[float]]:
    """The same, task by task, as a worker with one free slot does it."""
    return drain(home, 1)


def read(home: Home) -> tuple[int, Sequence[float]]:
    """Read every event of every job that changed, as a follower does; how many events."""
    count, cursor = 0, ""
    while True:
        jobs, cursor = home.ledger.changed(cursor)
        if not jobs:
            return count, ()
        count += sum(1 for job in jobs for _ in follow(home.ledger, job, 0, lambda: False))


def _finish(lease: Lease) -> Finish:
    result = Result(f"{lease.task[4:]}-{'0' * 20}", "noop", "ab" * 32, 100, 1)
    return Finish(lease.task, lease.fence, (result,), seconds=0.01)


def together(work: Work, home: Path, processes: int) -> list[Ran]:
    """The same work in so many processes, begun when all have opened the home."""
    spawn = multiprocessing.get_context("spawn")
    barrier = spawn.Barrier(processes)
    pipes = [spawn.Pipe(duplex=False) for _ in range(processes)]
    workers = [spawn.Process(target=_run, args=(work, home, barrier, out)) for _, out in pipes]
    for process, (_, out) in zip(workers, pipes, strict=True):
        process.start()
        out.close()  # so that the end of a process that dies is heard
    ran: list[Ran] = [answer.recv() for answer, _ in pipes]
    for process in workers:
        process.join()
    return ran


def _run(work: Work, home: Path, barrier: Barrier, out: Connection) -> None:
    opened = open_home(home, create=False)
    opened.ledger.workers()  # connected
    opened.transport.missing(LANE, ())
    barrier.wait(timeout=300)
    begin, cpu = time.monotonic(), time.process_time()
    count, seconds = work(opened)
    out.send(Ran(count, begin, time.monotonic(), time.process_time() - cpu, tuple(seconds)))
    opened.close()
