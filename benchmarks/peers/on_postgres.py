"""No-op jobs on pgqueuer: run in an environment of its own, which has nothing of ours.

python on_postgres.py fill URL COUNT puts jobs in. drain URL says that it is ready, begins when it is told by a line,
and prints [count, begin, end, cpu] when the queue is empty. latency URL COUNT prints seconds from enqueue to start.
"""

import asyncio
import json
import sys
import time

import asyncpg  # type: ignore[import-not-found]
from pgqueuer.db import AsyncpgDriver  # type: ignore[import-not-found]
from pgqueuer.qm import QueueManager  # type: ignore[import-not-found]
from pgqueuer.queries import Queries  # type: ignore[import-not-found]
from pgqueuer.types import QueueExecutionMode  # type: ignore[import-not-found]

BATCH = 2000  # the best of 10, 100, 500, 2000


async def fill(url: str, count: int) -> None:
    """Make its tables and put jobs in."""
    connection = await asyncpg.connect(url)
    queries = Queries(AsyncpgDriver(connection))
    await queries.install()
    for begin in range(0, count, 1000):
        n = min(1000, count - begin)
        await queries.enqueue(["noop"] * n, [b"x" * 100] * n, [0] * n)
    await connection.close()


async def drain(url: str) -> None:
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
    await manager.run(batch_size=BATCH, mode=QueueExecutionMode.drain)
    print(json.dumps([done, begin, time.monotonic(), time.process_time() - cpu]), flush=True)
    await connection.close()


async def latency(url: str, count: int) -> None:
    """One job at a time to a worker that is idle."""
    worker, client = await asyncpg.connect(url), await asyncpg.connect(url)
    manager, queries = QueueManager(Queries(AsyncpgDriver(worker))), Queries(AsyncpgDriver(client))
    started: asyncio.Queue[float] = asyncio.Queue()

    @manager.entrypoint("noop")  # type: ignore[untyped-decorator]
    async def noop(_job: object) -> None:
        started.put_nowait(time.monotonic())

    await queries.install()
    running = asyncio.create_task(manager.run())
    await asyncio.sleep(1.0)
    took = []
    for _ in range(count):
        await asyncio.sleep(0.01)
        before = time.monotonic()
        await queries.enqueue("noop", b"x" * 100)
        took.append(await started.get() - before)
    print(json.dumps(took), flush=True)
    manager.shutdown.set()
    await running


def main(what: str, url: str, count: str = "0") -> None:
    """Do what was asked."""
    asyncio.run(drain(url) if what == "drain" else {"fill": fill, "latency": latency}[what](url, int(count)))


if __name__ == "__main__":
    main(*sys.argv[1:])
