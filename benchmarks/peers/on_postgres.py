"""No-op jobs on pgqueuer: run in an environment of its own, which has nothing of ours.

PEER_URL is the database. python on_postgres.py fill COUNT puts jobs in. drain says that it is ready, begins when it is
told by a line, and prints [count, begin, end, cpu] when the queue is empty. eights does so with eight at a time, single
COUNT with jobs one by one, enqueued, taken and ended. latency COUNT prints seconds from enqueue to start.
"""

import asyncio
import json
import os
import sys
import time
import uuid
from datetime import timedelta

import asyncpg  # type: ignore[import-not-found]
from pgqueuer.db import AsyncpgDriver  # type: ignore[import-not-found]
from pgqueuer.ports.repository import EntrypointExecutionParameter  # type: ignore[import-not-found]
from pgqueuer.qm import QueueManager  # type: ignore[import-not-found]
from pgqueuer.queries import Queries  # type: ignore[import-not-found]
from pgqueuer.types import QueueExecutionMode  # type: ignore[import-not-found]

BATCH = 2000  # the best of 10, 100, 500, 2000
PAUSE = 0.05  # seconds in which a worker becomes idle again


async def fill(url: str, count: int) -> None:
    """Make its tables and put jobs in."""
    connection = await asyncpg.connect(url)
    queries = Queries(AsyncpgDriver(connection))
    await queries.install()
    for begin in range(0, count, 1000):
        n = min(1000, count - begin)
        await queries.enqueue(["noop"] * n, [b"x" * 100] * n, [0] * n)
    await connection.close()


async def drain(url: str, batch: int = BATCH) -> None:
    """Work until the queue is empty."""
    connection = await asyncpg.connect(url)
    manager = QueueManager(Queries(AsyncpgDriver(connection)))
    done = 0

    @manager.entrypoint("noop")  # type: ignore[untyped-decorator]
    async def noop(_job: object) -> None:
        nonlocal done
        done += 1

    print("ready", flush=True)
    sys.stdin.readline()
    begin, cpu = time.monotonic(), time.process_time()
    await manager.run(batch_size=batch, mode=QueueExecutionMode.drain)
    print(json.dumps([done, begin, time.monotonic(), time.process_time() - cpu]), flush=True)
    await connection.close()


async def single(url: str, count: int) -> None:
    """Enqueue a job, take it, end it; then the next. By its own queries, without the manager's timers."""
    connection = await asyncpg.connect(url)
    queries = Queries(AsyncpgDriver(connection))
    print("ready", flush=True)
    sys.stdin.readline()
    begin, cpu, done = time.monotonic(), time.process_time(), 0
    limits = {"noop": EntrypointExecutionParameter(0)}
    for _ in range(count):
        await queries.enqueue("noop", b"x" * 100)
        (job,) = await queries.dequeue(1, limits, uuid.uuid4(), None, timedelta(seconds=30))
        await queries.log_jobs([(job, "successful", None)])
        done += 1
    print(json.dumps([done, begin, time.monotonic(), time.process_time() - cpu]), flush=True)
    await connection.close()


async def serve(url: str) -> None:
    """Say when each job starts, until the input ends."""
    connection = await asyncpg.connect(url)
    manager = QueueManager(Queries(AsyncpgDriver(connection)))

    @manager.entrypoint("noop")  # type: ignore[untyped-decorator]
    async def noop(_job: object) -> None:
        print(time.monotonic(), flush=True)

    print("ready", flush=True)
    asyncio.get_running_loop().add_reader(sys.stdin, manager.shutdown.set)
    await manager.run()


async def latency(url: str, count: int) -> None:
    """One job at a time to a worker in another process that is idle."""
    connection = await asyncpg.connect(url)
    queries = Queries(AsyncpgDriver(connection))
    await queries.install()
    command = [sys.executable, __file__, "serve"]
    pipe = asyncio.subprocess.PIPE
    worker = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    assert worker.stdout is not None
    await worker.stdout.readline()
    await asyncio.sleep(1.0)
    took = []
    for _ in range(count):
        await asyncio.sleep(PAUSE)
        before = time.monotonic()
        await queries.enqueue("noop", b"x" * 100)
        took.append(float(await worker.stdout.readline()) - before)
    print(json.dumps(took), flush=True)
    worker.terminate()
    await worker.wait()


def main(what: str, count: str = "0") -> None:
    """Do what was asked."""
    url = os.environ["PEER_URL"]
    if what in ("fill", "latency", "single"):
        asyncio.run({"fill": fill, "latency": latency, "single": single}[what](url, int(count)))
    else:
        asyncio.run(serve(url) if what == "serve" else drain(url, 8 if what == "eights" else BATCH))


if __name__ == "__main__":
    main(*sys.argv[1:])
