"""Jobs of no-op tasks in a home of any set-up: put in, worked off and read by processes that begin together."""

import multiprocessing
import os
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from pathlib import Path

from rushes.domain.job import NewJob
from rushes.domain.keys import job_id, task_id
from rushes.domain.result import Result
from rushes.domain.task import RENEW_SECONDS, Draft, Finish, Lease, Need
from rushes.domain.worker import Incarnation
from rushes.jobs.follow import follow
from rushes.wiring import House, open_home

CHUNKS = 40  # of a job, and a join
BATCH = 500
OWNER, LANE = "bench", "cpu"
SPEC = '{"stage": "noop", "options": {"every_ms": 100}, "span": [0, 60], "note": "%s"}' % ("x" * 40)


@dataclass(frozen=True, slots=True)
class Ran:
    """What one process did: how much, when, at what cost; and the seconds of each claim, where they were asked for."""

    count: int
    begin: float
    end: float
    cpu: float
    claims: tuple[float, ...] = ()


Work = Callable[[House], tuple[int, Sequence[float]]]  # how much was done, and the seconds of each claim


def fill(house: House, tasks: int) -> int:
    """Put in about so many tasks, each announced as a worker would; how many."""
    jobs = max(1, tasks // (CHUNKS + 1))
    filler = _worker()
    for begin in range(0, jobs, 100):
        house.ledger.renew(filler, {}, {})
        for _ in range(begin, min(begin + 100, jobs)):
            _submit(house)
        leases = house.ledger.claim(filler.id, ["first"], 100)
        for lease in leases:
            house.ledger.draft(lease.job, lease.task, lease.fence, _plan(lease.job), "{}")
        finishes = [Finish(lease.task, lease.fence) for lease in leases]
        announce(house, house.ledger.complete(filler.id, finishes).ready)
    return jobs * (CHUNKS + 1)


def _submit(house: House) -> None:
    job = job_id(OWNER, secrets.token_hex(8))
    probe = Draft(task_id(job, "probe", None), job, "probe", None, SPEC, "first")
    house.ledger.submit(NewJob(job, OWNER, job, "film.mp4", "bench", "{}"), probe)


def _plan(job: str) -> list[Draft]:
    parts = [Draft(task_id(job, "noop", n), job, "noop", n, SPEC, LANE, n + 1) for n in range(CHUNKS)]
    needs = tuple(Need(part.id) for part in parts)
    return [*parts, Draft(task_id(job, "join", None), job, "join", None, SPEC, LANE, CHUNKS + 1, needs)]


def announce(house: House, ready: Sequence[str]) -> None:
    """Tell of what became ready, if anything did."""
    for begin in range(0, len(ready), BATCH):
        house.transport.announce(LANE, ready[begin : begin + BATCH])


def drain(house: House, batch: int = BATCH) -> tuple[int, Sequence[float]]:
    """Claim and complete by the product's verbs, led by hints where they queue, until nothing is left."""
    me, done, renewed, claims = _worker(), 0, -RENEW_SECONDS, []
    while True:
        if time.monotonic() - renewed >= RENEW_SECONDS:
            house.ledger.renew(me, {}, {})
            renewed = time.monotonic()
        hinted = house.transport.wait([LANE], 0, batch) if house.transport.queues else ()
        asked = time.perf_counter()
        leases = house.ledger.claim(me.id, [LANE], batch, hinted)
        claims.append(time.perf_counter() - asked)
        if not leases and not hinted:
            return done, claims
        completed = house.ledger.complete(me.id, [_finish(lease) for lease in leases])
        done += sum(said == "ok" for said in completed.said)
        announce(house, completed.ready)


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


def _worker() -> Incarnation:
    return Incarnation(f"bench-{os.getpid()}-{time.monotonic_ns()}", "bench", "bench", os.getpid(), "")


def make_home(folder: Path, settings: str) -> Path:
    """A home with these settings."""
    folder.mkdir(parents=True)
    (folder / "rushes.toml").write_text(settings)
    open_home(folder).close()
    return folder


def together(work: Work, home: Path, processes: int) -> list[Ran]:
    """The same work in so many processes, begun when all have opened the home."""
    spawn = multiprocessing.get_context("spawn")
    barrier = spawn.Barrier(processes)
    pipes = [spawn.Pipe(duplex=False) for _ in range(processes)]
    workers = [spawn.Process(target=_run, args=(work, home, barrier, out)) for _, out in pipes]
    for worker, (_, out) in zip(workers, pipes, strict=True):
        worker.start()
        out.close()  # so that the end of a process that dies is heard
    ran: list[Ran] = [answer.recv() for answer, _ in pipes]
    for worker in workers:
        worker.join()
    return ran


def _run(work: Work, home: Path, barrier: Barrier, out: Connection) -> None:
    house = open_home(home, create=False)
    house.ledger.workers()  # connected
    house.transport.missing(LANE, ())
    barrier.wait(timeout=60)
    begin, cpu = time.monotonic(), time.process_time()
    count, claims = work(house)
    out.send(Ran(count, begin, time.monotonic(), time.process_time() - cpu, tuple(claims)))
    house.close()
