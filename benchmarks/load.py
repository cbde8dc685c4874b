"""Load on one server: simulated gRPC workers take, renew, tell of and complete jobs, while streams follow them.

    python -m benchmarks.load [--setup sqlite] [--workers 1000] [--streams 2000] [--jobs 2000]

Workers are coroutines of this process over a few channels, so that a thousand of them fit; streams are SSE connections
to the same server. Nothing may be lost: every job is completed once, every stream sees each event of its job, in order,
and what the workers told is all there afterwards. Prints one line of the table of capacity; 1 if anything was lost.
Everything is on loopback and ends by itself.
"""

import argparse
import asyncio
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import httpx
from proof.setups import SETUPS, servers

from rushes.remote.generated import events_pb2, jobs_pb2

QUEUE, CHANNELS = "load", 16
TOLD = ("PROCESS_START", "OUTPUT_DATA", "OUTPUT_DATA", "PROCESS_END")  # of each attempt, numbered from 1
LIMIT_SECONDS = 1200.0  # then it is over, and what is not done is lost
BUSY = (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE)
PAUSE = (0.1, 5.0)  # seconds before a refused call is made again: at first, and at most
END = -1  # instead of a number: nothing more comes
AT_ONCE = 32  # jobs that are enqueued at the same time


@dataclass
class Figures:
    """What was measured."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))  # by verb, of calls that held
    refused: int = 0  # calls that were told to come again
    done: Counter[str] = field(default_factory=Counter)
    last: float = 0.0  # when the last one was completed
    gaps: int = 0  # streams that missed an event, or saw one twice
    followed: int = 0
    untold: int = 0  # jobs of which not all is there that was told, once and in order

    def quantiles(self, verb: str) -> str:
        """Median and p99 in milliseconds."""
        some = sorted(self.seconds[verb]) or [0.0]
        return f"{1000 * some[len(some) // 2]:.0f} / {1000 * some[len(some) * 99 // 100]:.0f}"


class Client:
    """The two services of a server over one channel."""

    def __init__(self, address: str, figures: Figures) -> None:
        self.channel, self._figures = grpc.aio.insecure_channel(address), figures

    async def call(self, verb: str, request: Any, answer: Any) -> Any:
        """A call of JobService with one answer; one that is refused for now is made again."""
        path = f"/rushes.v1.JobService/{verb}"
        method = self.channel.unary_unary(path, type(request).SerializeToString, answer.FromString)
        return await self._again(verb, lambda: method(request))

    async def dequeue(self) -> Any:
        """One job, None if there is none now."""
        asked = jobs_pb2.DequeueRequest(queue=QUEUE, max_jobs=1, visibility_timeout_seconds=600)
        method = self.channel.unary_stream(
            "/rushes.v1.JobService/Dequeue",
            jobs_pb2.DequeueRequest.SerializeToString,
            jobs_pb2.DequeueResponse.FromString,
        )

        async def take() -> Any:
            found = [one async for one in method(asked)]
            return found[0] if found else None

        return await self._again("Dequeue", take)

    async def publish(self, token: str) -> None:
        """Start, two lines and end of an attempt."""
        events = [
            events_pb2.JobEvent(sequence=n, type=f"JOB_EVENT_TYPE_{kind}", data=b"a line")
            for n, kind in enumerate(TOLD, 1)
        ]
        method = self.channel.stream_unary(
            "/rushes.v1.JobEventsService/Publish",
            events_pb2.PublishRequest.SerializeToString,
            events_pb2.PublishResponse.FromString,
        )
        await self._again("Publish", lambda: method(iter([events_pb2.PublishRequest(task_token=token, events=events)])))

    async def told(self, job: str) -> list[int]:
        """The numbers of what was told of a job that is over."""
        asked = events_pb2.StreamRequest(job_id=job)
        method = self.channel.unary_stream(
            "/rushes.v1.JobEventsService/Stream",
            events_pb2.StreamRequest.SerializeToString,
            events_pb2.StreamResponse.FromString,
        )

        async def read() -> list[int]:
            return [one.event.sequence async for one in method(asked)]

        numbers: list[int] = await self._again("Stream", read)
        return numbers

    async def _again(self, verb: str, ask: Callable[[], Awaitable[Any]]) -> Any:
        pause = PAUSE[0]
        while True:
            begin = time.perf_counter()
            try:
                answer = await ask()
            except grpc.aio.AioRpcError as e:
                if e.code() not in BUSY:
                    raise
                self._figures.refused += 1
                await asyncio.sleep(pause * random.uniform(0.5, 1.0))
                pause = min(PAUSE[1], 2 * pause)
                continue
            self._figures.seconds[verb].append(time.perf_counter() - begin)
            return answer


async def work(client: Client, figures: Figures, jobs: int) -> None:
    """One worker: until every job is done."""
    while sum(figures.done.values()) < jobs:
        taken = await client.dequeue()
        if taken is None:
            await asyncio.sleep(PAUSE[1])
            continue
        token, job = taken.task_token, taken.job.job_id
        renewal = jobs_pb2.UpdateVisibilityRequest(task_token=token, queue=QUEUE, visibility_timeout_seconds=600)
        await client.call("UpdateVisibility", renewal, jobs_pb2.UpdateVisibilityResponse)
        await client.publish(token)
        finish = jobs_pb2.CompleteRequest(task_token=token, job_id=job)
        await client.call("Complete", finish, jobs_pb2.CompleteResponse)
        figures.done[job] += 1
        figures.last = time.perf_counter()


async def follow(http: httpx.AsyncClient, job: str, figures: Figures) -> None:
    """One stream: each number of a job's events once and in order, until the last; cut, it goes on from there."""
    seen, over = 0, False
    while not over:
        try:
            async for number in _events(http, job, seen):
                over = number == END
                figures.gaps += not over and number != seen + 1
                seen = max(seen, number)
        except httpx.TransportError:
            await asyncio.sleep(PAUSE[1])
    figures.followed += 1


async def _events(http: httpx.AsyncClient, job: str, after: int) -> AsyncIterator[int]:
    """Numbers of events; `END` when the job is over and nothing is left."""
    async with http.stream("GET", f"/api/v1/jobs/{job}/events", headers={"Last-Event-ID": str(after)}) as answer:
        async for line in answer.aiter_lines():
            if line.startswith("id: "):
                yield int(line[4:])
            elif line == "event: end":
                yield END
        if answer.status_code == 204:
            yield END


async def load(urls: dict[str, str], workers: int, streams: int, jobs: int) -> tuple[Figures, float]:
    """Everything at once; the figures, and the seconds from the first claim to the last completion."""
    figures = Figures()
    clients = [Client(urls["grpc"], figures) for _ in range(CHANNELS)]
    gate = asyncio.Semaphore(AT_ONCE)

    async def check(n: int, job: str) -> None:
        async with gate:
            figures.untold += await clients[n % CHANNELS].told(job) != [*range(1, len(TOLD) + 1)]

    async def enqueue(n: int) -> str:
        async with gate:
            asked = jobs_pb2.EnqueueRequest(queue=QUEUE, request_id=f"load-{n}", params=b"{}")
            return str((await clients[n % CHANNELS].call("Enqueue", asked, jobs_pb2.EnqueueResponse)).job_id)

    ids = await asyncio.gather(*map(enqueue, range(jobs)))
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=urls["http"], timeout=None, limits=limits) as http:
        listening = [asyncio.create_task(follow(http, ids[n % jobs], figures)) for n in range(streams)]
        begin = time.perf_counter()
        await asyncio.gather(*(work(clients[n % CHANNELS], figures, jobs) for n in range(workers)))
        await asyncio.gather(*listening)
    await asyncio.gather(*(check(n, job) for n, job in enumerate(ids)))
    for client in clients:
        await client.channel.close()
    return figures, figures.last - begin


@contextmanager
def serving(home: Path) -> Iterator[dict[str, str]]:
    """`rushes serve --grpc` on a home; where it listens."""
    argv = [sys.executable, "-m", "rushes", "--json", "--home", str(home), "serve", "--port", "0", "--grpc", "0"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            urls: dict[str, str] = {}
            while len(urls) < 2:
                said = json.loads((process.stdout or sys.stdin).readline())
                urls |= {"grpc": said["address"]} if "address" in said else {}
                urls |= {"http": said["url"]} if "url" in said else {}
            yield urls
        finally:
            process.kill()


def main() -> int:
    """Print a line of the table; 1 if something was lost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--setup", choices=SETUPS, default="sqlite")
    for name, default in (("workers", 1000), ("streams", 2000), ("jobs", 2000)):
        parser.add_argument(f"--{name}", type=int, default=default)
    asked = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # a file for each stream, here and in the server
    with tempfile.TemporaryDirectory() as place, servers(Path(place)) as all_servers:
        home = Path(place) / "home"
        home.mkdir()
        (home / "rushes.toml").write_text(all_servers.settings(asked.setup, "load") + f'queues = "{QUEUE}"\n')
        with serving(home) as urls:
            running = load(urls, asked.workers, asked.streams, asked.jobs)
            figures, seconds = asyncio.run(asyncio.wait_for(running, LIMIT_SECONDS))
    return report(asked, figures, seconds)


def report(asked: argparse.Namespace, figures: Figures, seconds: float) -> int:
    """The line of the table, and what was lost."""
    verbs = ("Enqueue", "Dequeue", "UpdateVisibility", "Publish", "Complete")
    print(f"| set-up | workers | streams | jobs/s | {' | '.join(f'{verb} p50 / p99 ms' for verb in verbs)} | refused |")
    print(f"|{'---|' * (5 + len(verbs))}")
    cells = [asked.setup, asked.workers, asked.streams, f"{asked.jobs / seconds:.0f}", *map(figures.quantiles, verbs)]
    print(f"| {' | '.join(map(str, cells))} | {figures.refused} |")
    lost, twice = asked.jobs - len(figures.done), sum(n - 1 for n in figures.done.values())
    print(f"{lost} jobs lost, {twice} done twice, {figures.gaps} gaps in {figures.followed} streams")
    print(f"{figures.untold} jobs without all that their workers told, once and in order")
    nothing_wrong = not (lost or twice or figures.gaps or figures.untold)
    holds = nothing_wrong and figures.followed == asked.streams
    print(f"{'holds' if holds else 'FAILS'}  nothing is lost, doubled or out of order")
    return int(not holds)


if __name__ == "__main__":
    sys.exit(main())
