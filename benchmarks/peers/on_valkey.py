"""No-op tasks on dramatiq, taskiq or arq: run in an environment of the peer's own, which has nothing of ours.

python on_valkey.py NAME fill COUNT puts tasks in. NAME drain says that it is ready, begins when it is told by
a line, ends when nothing came for a while, and prints what it did, by the clock of its first and of its last task.
"""
# ruff: noqa: PLC0415 - an environment has one peer only

import asyncio
import json
import logging
import os
import sys
import threading
import time
from collections.abc import Callable

QUIET = 1.0  # seconds without a task after which nothing is left
PATIENCE = 20.0  # seconds until the first one


class Tally:
    """How many tasks ran here, from when to when."""

    def __init__(self) -> None:
        self.count = 0
        self.first: tuple[float, float] | None = None
        self.last = (0.0, 0.0)

    def bump(self) -> None:
        """One more."""
        self.last = time.monotonic(), time.process_time()
        self.first = self.first or self.last
        self.count += 1

    def watch(self) -> None:
        """End the process when there is nothing more."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            time.sleep(0.1)
            until = self.last[0] + QUIET if self.count else until
        (begin, cpu), (end, spent) = self.first or self.last, self.last
        print(json.dumps([self.count, begin, end, spent - cpu]), flush=True)
        os._exit(0)


TALLY = Tally()


def begin() -> None:
    """Wait for the others, then count."""
    print("ready", flush=True)
    sys.stdin.readline()
    threading.Thread(target=TALLY.watch).start()


def dramatiq_peer(url: str, count: int) -> None:
    """In threads; a list of ids and a hash, acknowledged."""
    import dramatiq  # type: ignore[import-not-found]
    from dramatiq.brokers.redis import RedisBroker  # type: ignore[import-not-found]

    broker = RedisBroker(url=url)
    noop = dramatiq.actor(TALLY.bump, broker=broker, actor_name="noop")
    if count:
        for _ in range(count):
            noop.send()
        return
    worker = dramatiq.Worker(broker, worker_threads=int(os.environ.get("PEER_AT_ONCE", "8")))
    begin()
    worker.start()


def taskiq_peer(url: str, count: int) -> None:
    """In one event loop; a list, without acknowledgement or results."""
    from taskiq.api import run_receiver_task  # type: ignore[import-not-found]
    from taskiq_redis import ListQueueBroker  # type: ignore[import-not-found]

    broker = ListQueueBroker(url)
    noop = broker.register_task(_bump, task_name="noop")

    async def fill() -> None:
        await broker.startup()
        for _ in range(count):
            await noop.kiq()
        await broker.shutdown()

    async def drain() -> None:
        await broker.startup()
        begin()
        await run_receiver_task(broker, max_async_tasks=int(os.environ.get("PEER_AT_ONCE", "100")))

    asyncio.run(fill() if count else drain())


def arq_peer(url: str, count: int) -> None:
    """In one event loop; a sorted set, results not kept."""
    from arq import create_pool, func  # type: ignore[import-not-found]
    from arq.connections import RedisSettings  # type: ignore[import-not-found]
    from arq.worker import Worker  # type: ignore[import-not-found]

    server = RedisSettings.from_dsn(url)

    async def fill() -> None:
        pool = await create_pool(server)
        for _ in range(count):
            await pool.enqueue_job("noop")

    async def drain() -> None:
        at_once = int(os.environ.get("PEER_AT_ONCE", "100"))
        noop = func(_bump, name="noop", keep_result=0)
        worker = Worker([noop], redis_settings=server, max_jobs=at_once, poll_delay=0.01, log_results=False)
        begin()
        await worker.async_run()

    asyncio.run(fill() if count else drain())


async def _bump(*_: object) -> None:
    TALLY.bump()


PEERS: dict[str, Callable[[str, int], None]] = {"dramatiq": dramatiq_peer, "taskiq": taskiq_peer, "arq": arq_peer}

if __name__ == "__main__":
    logging.disable(logging.WARNING)
    name, _, *more = sys.argv[1:]
    PEERS[name](os.environ["PEER_URL"], int(more[0]) if more else 0)
