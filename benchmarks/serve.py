"""What the server bears: 2,000 streams of events, pages of a large library, an upload against a plain copy.

    python -m benchmarks.serve [--streams 2000] [--cases 20000] [--videos 10000] [--part streams|pages|upload|cases|all]

Streams: each reader must see every event once and in order, and the server's memory must stay flat. Pages: the time of
the server, 95th percentile, with 100 and with 10,000 videos (bar 2x). Upload: bytes per second over HTTP on loopback
with hash and type checked, against `cp` of the same file. Cases: 20,000 requests made from the API's own description.
"""

import argparse
import asyncio
import base64
import multiprocessing
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

import httpx
import psutil
from tests.api.kit import Serving, serving, submit, work
from tests.api.test_lists import fill
from tests.api.test_streams import read

from rushes.library import Library

PAGES = ("/", "/library", "/search", "/search?q=film", "/people", "/jobs", "/failed", "/workers", "/settings", "/add",
         "/videos/vid_0000000000000050", "/jobs/job_open000000000005")  # fmt: skip
TASKS, ROUNDS, MEGABYTES = 150, 100, 512
PACE = 0.6  # seconds between three events: 10,000 messages a second, which 2,000 readers on two cores can take
BARS = {"pages": 2.0, "memory": 1.10}
CALM_MS = 3.0  # below this a page is as quick as anybody can tell


def told(bar: str, *, holds: bool) -> bool:
    """One line for a bar."""
    print(f"{'holds' if holds else 'FAILS'}  {bar}", flush=True)
    return holds


# Streams
def streams(readers: int) -> bool:
    """Every reader sees each event once; memory does not follow the events that went out."""
    _allow(readers)
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder) / "home") as server:
        job = submit(server.ledger, "film", TASKS)
        seen: list[int] = []
        worker = threading.Thread(target=_go, args=(server, readers, seen))
        worker.start()
        context = multiprocessing.get_context("spawn")
        with context.Pool(2) as pool:
            each = pool.map(_read_many, [(server.url, job.id, readers // 2)] * 2)
        worker.join()
        last = server.ledger.job(job.id).last_event
    gaps = sum(numbers != list(range(1, last + 1)) for part in each for numbers in part)
    once = told(f"{readers:,} streams, {last} events each: {gaps} with a gap, a double or wrong order", holds=not gaps)
    still, early, end = (size / 2**20 for size in (seen[0], seen[len(seen) // 10], seen[-1]))
    sizes = f"{still:.0f} MiB before the first event, {early:.0f} after a tenth of them, {end:.0f} after all"
    return once & told(f"memory: {sizes}", holds=end <= BARS["memory"] * early)


def _go(server: Serving, readers: int, seen: list[int]) -> None:
    counters, me = server.app.state.hub.counters, psutil.Process()
    while counters.streams < 2 * (readers // 2):
        time.sleep(0.05)
    print(f"{counters.streams:,} streams are open", flush=True)
    seen.append(me.memory_info().rss)
    while work(server.ledger, 3):
        time.sleep(PACE)
        seen.append(me.memory_info().rss)


def _read_many(asked: tuple[str, str, int]) -> list[list[int]]:
    url, job, readers = asked
    _allow(readers)

    async def all_of_them() -> list[list[int]]:
        limits = httpx.Limits(max_connections=readers + 10)
        async with httpx.AsyncClient(base_url=url, timeout=600, limits=limits) as client:
            return await asyncio.gather(*(_read(client, job) for _ in range(readers)))

    return asyncio.run(all_of_them())


async def _read(client: httpx.AsyncClient, job: str) -> list[int]:
    return [number async for number, _ in read(client, f"/api/v1/jobs/{job}/events")]


def _allow(files: int) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, max(4 * files, 8192)), most))


# Pages
def pages(most: int) -> bool:
    """The time of every page in a small and in a large library."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        shelves = []
        for videos in (100, most):
            print(f"a library of {videos:,} videos is made", flush=True)
            home = Path(folder) / str(videos)
            with Library(home) as library:
                fill(library, videos)
            shelves.append(stack.enter_context(serving(home)))
        held = [_page(path, shelves, most) for path in PAGES]
        return all(held)


def _page(path: str, shelves: Sequence[Serving], most: int) -> bool:
    times: list[list[float]] = [[], []]
    for n in range(ROUNDS + 3):
        for shelf, spent in zip(shelves, times, strict=True):
            began = time.perf_counter()
            shelf.http.get(path, headers={"Accept": "text/html"}).raise_for_status()
            if n >= 3:
                spent.append(1000 * (time.perf_counter() - began))
    small, large = (statistics.quantiles(spent, n=20)[-1] for spent in times)
    holds = large <= max(BARS["pages"] * small, CALM_MS)
    return told(f"{path:<32} p95 {small:6.1f} ms with 100 videos, {large:6.1f} ms with {most:,}", holds=holds)


# Upload
def upload() -> bool:
    """Bytes per second of an upload in parts, and of a copy."""
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder) / "home") as server:
        film = Path(folder) / "film.mp4"
        film.write_bytes(b"\0\0\0\x18ftypmp42" + os.urandom(MEGABYTES * 2**20))
        rates = {"cp": [_rate(lambda: _copy(film)) for _ in range(3)], "upload": []}
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            pool.apply(int)  # it has begun
            for n in range(3):
                rates["upload"].append(_rate(partial(pool.apply, _send, (server.url, film, n))))
    ours, plain = (statistics.median(rates[name]) for name in ("upload", "cp"))
    print(f"upload, checked: {ours:.0f} MiB/s, cp and sync {plain:.0f} MiB/s: {ours / plain:.2f} of it")
    return True


def _rate(do: Callable[[], Any]) -> float:
    began = time.monotonic()
    do()
    return MEGABYTES / (time.monotonic() - began)


def _copy(film: Path) -> None:
    copy = film.with_name("copy.mp4")
    subprocess.run(["cp", str(film), str(copy)], check=True)
    subprocess.run(["sync", str(copy)], check=True)  # ours is on the disk when it says so
    copy.unlink()


def _send(url: str, film: Path, n: int) -> None:
    """By the standard library, because a client that parses more is slower than the server."""
    said = {"filename": f"film {n}.mp4", "recipe": "subtitles"}
    metadata = ",".join(f"{name} {base64.b64encode(value.encode()).decode()}" for name, value in said.items())
    headers = {"Upload-Length": str(film.stat().st_size), "Upload-Metadata": metadata, "Tus-Resumable": "1.0.0"}
    client, offset = HTTPConnection(url.rpartition("/")[2]), 0
    place = _asked(client, "POST", "/api/v1/uploads", headers).headers["location"]
    with film.open("rb") as file:
        while data := file.read(64 * 2**20):
            headers = {"Upload-Offset": str(offset), "Content-Type": "application/offset+octet-stream"}
            _asked(client, "PATCH", place, headers, data)
            offset += len(data)
    client.close()


def _asked(client: HTTPConnection, verb: str, path: str, headers: dict[str, str], data: bytes = b"") -> HTTPResponse:
    client.request(verb, path, data, headers)
    answer = client.getresponse()
    answer.read()
    assert answer.status < 300, answer.reason
    return answer


# Cases
def cases(count: int) -> bool:
    """The test that makes requests from the description, with many more of them."""
    print(f"{count:,} cases are made", flush=True)
    argv = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:randomly", "tests/api/test_fuzz.py"]
    env = {**os.environ, "RUSHES_FUZZ_CASES": str(count)}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    said = done.stdout.strip().splitlines()[-1] if done.stdout else done.stderr[-500:]
    return told(f"{count:,} cases: {said}", holds=done.returncode == 0)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the parts; 1 if a bar does not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=2_000)
    parser.add_argument("--videos", type=int, default=10_000)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--part", choices=["streams", "pages", "upload", "cases", "all"], default="all")
    asked = parser.parse_args(argv)
    parts: dict[str, Callable[[], bool]] = {
        "streams": lambda: streams(asked.streams),
        "pages": lambda: pages(asked.videos),
        "upload": upload,
        "cases": lambda: cases(asked.cases),
    }
    held = [do() for name, do in parts.items() if asked.part in (name, "all")]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
