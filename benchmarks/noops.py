"""No-op tasks worked off, and their events read, by processes that begin together."""

import multiprocessing
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from pathlib import Path

from benchmarks.corners import LANE, worker
from rushes.domain.result import Result
from rushes.domain.task import RENEW_SECONDS, Finish, Lease
from rushes.jobs.follow import follow
from rushes.wiring import House, open_home

BATCH = 500


@dataclass(frozen=True, slots=True)
class Ran:
    """What one process did: how much, when, at what cost; and the seconds of each claim, where they were asked for."""

    count: int
    begin: float
    end: float
    cpu: float
    claims: tuple[float, ...] = ()


Work = Callable[[House], tuple[int, Sequence[float]]]  # how much was done, and the seconds of each claim


def drain(house: House, batch: int = BATCH) -> tuple[int, Sequence[float]]:
    """Claim and complete by the product's verbs, led by hints where they queue, until nothing is left."""
    me, done, renewed, claims = worker(), 0, -RENEW_SECONDS, []
    while True:
        if time.monotonic() - renewed >= RENEW_SECONDS:
            house.ledger.renew(me, {}, {})
            renewed = time.monotonic()
        hints = house.transport.wait([LANE], 0, batch) if house.transport.queues else ()
        asked = time.perf_counter()
        leases = house.ledger.claim(me.id, [LANE], batch, () if house.ledger.finds_next else hints)  # as a worker does
        claims.append(time.perf_counter() - asked)
        if not leases and not hints:
            return done, claims
        completed = house.ledger.complete(me.id, [_finish(lease) for lease in leases])
        done += sum(said == "ok" for said in completed.said)
        if completed.ready:
            house.transport.announce(LANE, completed.ready)


def drain_singly(house: House) -> tuple[int, Sequence[float]]:
    """The same, task by task, as a worker with one free slot does it."""
    return drain(house, 1)


def read(house: House) -> tuple[int, Sequence[float]]:
    """Read every event of every job that changed, as a follower does; how many events."""
    count, cursor = 0, ""
    while True:
        jobs, cursor = house.ledger.changed(cursor)
        if not jobs:
            return count, ()
        count += sum(1 for job in jobs for _ in follow(house.ledger, job, 0, lambda: False))


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
    house = open_home(home, create=False)
    house.ledger.workers()  # connected
    house.transport.missing(LANE, ())
    barrier.wait(timeout=300)
    begin, cpu = time.monotonic(), time.process_time()
    count, claims = work(house)
    out.send(Ran(count, begin, time.monotonic(), time.process_time() - cpu, tuple(claims)))
    house.close()
