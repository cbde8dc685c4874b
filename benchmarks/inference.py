"""An inference service against models in the slots: CPU time, bytes, batches, and a fleet that shares one service.

    python -m benchmarks.inference [--parts recipe,batches,fleet] [--rounds 3] [--films 50]

`recipe`: a film of a minute by all stages of `searchable`, models in the slot or in a service on the same cores, in
turns. Bars: 1.10x the CPU time of worker and service, and 1.05x the bytes of the pictures that are sent.
`batches`: pictures eight at a time against one by one. `fleet`: four workers with two slots each work off short films
by one service with two permits; no call may fail, and the median call of no worker may take twice that of another.
"""

import argparse
import os
import random
import re
import resource
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psutil
from tests.acceptance.conftest import draw, sights
from tests.inference_service import FAST, ask, inference_service

from rushes.domain.task import TaskState
from rushes.engines.http import InferenceServices
from rushes.engines.port import BATCH, Engine, Jpeg
from rushes.engines.remote import RemoteEngine
from rushes.engines.wire import unpack
from rushes.ledger.pages import all_tasks
from rushes.library import JobRequest, Library
from rushes.metrics import BOUNDS

MEDIA = Path(__file__).parents[1] / "tests" / "media"
VOICE = MEDIA / "english_then_german.mp3"
CPU_BAR, BYTES_BAR, BATCH_BAR, FAIR_BAR = 1.10, 1.05, 1.0, 2.0
WORKERS, SLOTS, PERMITS = 4, 2, 2
LOOKING = ("read_text", "objects", "faces", "places")
PICTURES = 32
LOOKS: dict[str, Callable[[Engine, list[Jpeg]], object]] = {
    "text": lambda e, some: e.read_text("ppocr-v6-tiny", some, 736, ["en"]),
    "objects": lambda e, some: e.detect_objects("efficientdet-lite0", some, 0.4),
    "faces": lambda e, some: e.detect_faces("yunet-sface", some, 0.7, 640),
    "places": lambda e, some: e.classify_place("efficientnet-lite0", some, 5),
    "depth": lambda e, some: e.inverse_depth("fastdepth", some, inverse=None),
}


@dataclass(slots=True)
class Traffic:
    """What passed a proxy."""

    seconds: list[float] = field(default_factory=list)  # of each call
    pictures: int = 0  # bytes of the pictures themselves
    sent: int = 0  # bytes of the requests that carried them
    failed: set[int] = field(default_factory=set)  # status of what is no answer


class CountingProxy(ThreadingHTTPServer):
    """Hands calls on to a service, and counts them."""

    daemon_threads = True

    def __init__(self, service: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.service, self.traffic, self.lock = service, Traffic(), threading.Lock()

    def count(self, head: int, body: bytes, seconds: float, status: int) -> None:
        """One call."""
        doc, parts = unpack(body)
        with self.lock:
            self.traffic.seconds.append(seconds)
            if "shapes" in doc:
                self.traffic.pictures += sum(map(len, parts))
                self.traffic.sent += head + len(body)
            if status != 200:
                self.traffic.failed.add(status)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: CountingProxy

    def do_POST(self) -> None:
        body, begun = self.rfile.read(int(self.headers["Content-Length"])), time.monotonic()
        kind = {"Content-Type": self.headers["Content-Type"]}
        status, data = ask(self.server.service, "POST", self.path, body, kind)
        head = len(self.requestline) + 2 + len(bytes(self.headers))
        self.server.count(head, body, time.monotonic() - begun, status)
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def counting(service: str) -> Iterator[tuple[str, Traffic]]:
    """The address of a proxy before a service, and what has passed it."""
    proxy = CountingProxy(service)
    threading.Thread(target=proxy.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{proxy.server_address[1]}", proxy.traffic
    finally:
        proxy.shutdown()
        proxy.server_close()


def service_cpu(url: str) -> float:
    """CPU seconds of the service so far."""
    port = int(url.rpartition(":")[2])
    (process,) = [p for p in psutil.Process().children() if any(c.laddr.port == port for c in p.net_connections())]
    used = process.cpu_times()
    return float(used.user + used.system)


def rushes(folder: Path, *argv: str) -> list[str]:
    """A command in a home of its own."""
    return [sys.executable, "-m", "rushes", "--home", str(folder), *argv]


def cpu_of_run(film: Path, folder: Path, inference: str) -> float:
    """CPU seconds of `rushes run` and its slots."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    argv = rushes(folder, "run", "--no-beside", "--slots", "1", "--profile", "fast", str(film))
    env = {"RUSHES_INFERENCE": inference, "RUSHES_SANDBOX": "off"}  # the kernel does not count a slot in a cage
    subprocess.run(argv, check=True, capture_output=True, env={**os.environ, **env})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def recipe(folder: Path, url: str, rounds: int) -> list[bool]:
    """The whole recipe near and far; whether each bar holds."""
    start = service_cpu(url)
    film = draw(folder / "film.mp4", 60, (1280, 720), rate=25, voice=VOICE, paint=sights)
    near, worker, service = list[float](), list[float](), list[float]()
    for n in range(rounds):
        for way in random.Random(n).sample(["near", "far"], 2):
            begun = service_cpu(url)
            used = cpu_of_run(film, folder / f"{way}{n}", url if way == "far" else "local")
            (worker if way == "far" else near).append(used)
            if way == "far":
                service.append(service_cpu(url) - begun)
    with counting(url) as (proxy, traffic):
        cpu_of_run(film, folder / "counted", proxy)
    far = [a + b for a, b in zip(worker, service, strict=True)]
    ratio, bytes_ratio = statistics.median(far) / statistics.median(near), traffic.sent / traffic.pictures
    print(f"local  {statistics.median(near):6.2f} s CPU ({min(near):.2f} to {max(near):.2f}, {rounds} rounds)")
    print(f"remote {statistics.median(far):6.2f} s CPU ({min(far):.2f} to {max(far):.2f}), "
          f"worker {statistics.median(worker):.2f}, service {statistics.median(service):.2f}")  # fmt: skip
    with_start = (statistics.median(far) + start) / statistics.median(near)
    print(
        f"the service loads and tries its models once, in {start:.2f} s CPU: {with_start:.3f} for a single film with it"
    )
    print(f"{traffic.pictures / 1e6:.2f} MB of pictures in {traffic.sent / 1e6:.2f} MB of requests")
    return [
        verdict(ratio <= CPU_BAR, f"remote / local {ratio:.3f} (bar {CPU_BAR})"),
        verdict(bytes_ratio <= BYTES_BAR, f"requests / pictures {bytes_ratio:.4f} (bar {BYTES_BAR})"),
    ]


def batches(url: str, rounds: int) -> list[bool]:
    """Pictures in batches and one by one, in turns; whether batches cost no more."""
    some = [(MEDIA / f"{name}.jpg").read_bytes() for name in ("slide", "astronaut", "coffee", "chelsea")]
    pictures = (some * PICTURES)[:PICTURES]
    session = InferenceServices((url,)).session()
    engine, totals = RemoteEngine(session.post), dict.fromkeys((1, BATCH), 0.0)
    print(f"| {PICTURES} pictures | CPU s one by one | CPU s by {BATCH} | s one by one | s by {BATCH} |")
    print("|---|---|---|---|---|")
    for name, look in LOOKS.items():
        found: dict[int, list[tuple[float, float]]] = {1: [], BATCH: []}
        for n in range(rounds):
            for size in random.Random(n).sample([*found], 2):
                cpu, wall = service_cpu(url) + time.process_time(), time.monotonic()
                for at in range(0, PICTURES, size):
                    look(engine, pictures[at : at + size])
                taken = service_cpu(url) + time.process_time() - cpu
                found[size].append((taken, time.monotonic() - wall))
        (one, one_wall), (many, many_wall) = (map(statistics.median, zip(*found[n], strict=True)) for n in (1, BATCH))
        totals[1], totals[BATCH] = totals[1] + one, totals[BATCH] + many
        print(f"| {name} | {one:.2f} | {many:.2f} | {one_wall:.2f} | {many_wall:.2f} |", flush=True)
    session.close()
    ratio = totals[BATCH] / totals[1]
    return [verdict(ratio <= BATCH_BAR, f"batches / one by one {ratio:.3f} of the CPU time (bar {BATCH_BAR})")]


def fleet(folder: Path, url: str, films: int) -> list[bool]:
    """Films worked off by four workers; whether the service answered every call, and all workers alike."""
    home = folder / "fleet"
    with Library(home) as library:
        for n, film in enumerate(_films(folder, films)):
            request = JobRequest(only=("develop",), chunk="4", profile="fast")
            assert library.add([film], request)[0].job, n
        library.work(slots=SLOTS, until_idle=True)
        asked = JobRequest(only=LOOKING, chunk="4", profile="fast")
        jobs = [added.job.id for added in library.add(sorted(folder.glob("film-*.mp4")), asked) if added.job]
    before, cpu, begun = told(url), service_cpu(url), time.monotonic()
    with counting(url) as one, counting(url) as two, counting(url) as three, counting(url) as four:
        lines = (one, two, three, four)
        processes = [_worker(home, line) for line, _ in lines]
        codes = [process.wait() for process in processes]
    wall, used = time.monotonic() - begun, service_cpu(url) - cpu
    figures = {name: value - before.get(name, 0.0) for name, value in told(url).items()}
    with Library(home) as library:
        tasks = [task for job in jobs for task in all_tasks(library.home.ledger, job) if task.stage in LOOKING]
    done = sum(task.state is TaskState.DONE for task in tasks)
    print(f"{len(jobs)} films, {len(tasks)} tasks in {wall:.1f} s")
    return [
        verdict(done == len(tasks) and not any(codes), f"{done} of {len(tasks)} tasks done"),
        *shares([traffic for _, traffic in lines], figures, wall, used),
    ]


def shares(traffic: Sequence[Traffic], figures: Mapping[str, float], wall: float, used: float) -> list[bool]:
    """How busy the service was, how long calls waited, and whether it served all workers alike."""
    calls, middles = sum(len(some.seconds) for some in traffic), [at(some.seconds, 0.5) for some in traffic]
    busy = sum(value for name, value in figures.items() if name.startswith("rushes_inference_seconds_total"))
    mean = figures["rushes_inference_wait_seconds_sum"] / calls
    print(f"{calls} calls, {calls / wall:.1f} a second; the service took {used / wall:.2f} of {os.cpu_count()} cores")
    print(f"{PERMITS} permits, in use {busy / wall / PERMITS:.0%} of the time; wait for one: mean {mean:.3f} s, "
          f"p50 {quantile(figures, 0.5):.3f} s, p99 {quantile(figures, 0.99):.3f} s (by histogram)")  # fmt: skip
    for n, some in enumerate(traffic):
        print(f"worker {n + 1}: {len(some.seconds)} calls, p50 {middles[n]:.3f} s, p99 {at(some.seconds, 0.99):.3f} s")
    refused, apart = figures["rushes_inference_refused_total"], max(middles) / min(middles)
    return [
        verdict(not any(some.failed for some in traffic), "no call failed"),
        verdict(not refused, f"{refused:.0f} calls were told to come later"),
        verdict(apart <= FAIR_BAR, f"slowest / fastest worker {apart:.2f} (bar {FAIR_BAR})"),
    ]


def _films(folder: Path, count: int) -> Iterator[Path]:
    """Films of four seconds that differ in a box which nobody reads."""
    first = draw(folder / "first.mp4", 4, (640, 360), paint=sights).read_bytes()
    for n in range(count):
        film = folder / f"film-{n:03}.mp4"
        film.write_bytes(first + struct.pack("!I4sI", 12, b"free", n))
        yield film


def _worker(home: Path, inference: str) -> "subprocess.Popen[bytes]":
    argv = rushes(home, "worker", "--until-idle", "--slots", str(SLOTS))
    return subprocess.Popen(argv, env={**os.environ, "RUSHES_INFERENCE": inference}, stderr=subprocess.DEVNULL)


def told(url: str) -> dict[str, float]:
    """The figures of the service."""
    _, page = ask(url, "GET", "/metrics")
    return {name: float(value) for name, value in re.findall(r"^([^#\s]\S*) (\S+)$", page.decode(), re.MULTILINE)}


def quantile(figures: Mapping[str, float], share: float) -> float:
    """Within the bucket in which it lies, in proportion, as Prometheus has it."""
    counts = [figures[f'rushes_inference_wait_seconds_bucket{{le="{bound}"}}'] for bound in (*BOUNDS, "+Inf")]
    wanted, low, below = share * counts[-1], 0.0, 0.0
    for bound, count in zip(BOUNDS, counts, strict=False):
        if count >= wanted and count > below:
            return low + (bound - low) * (wanted - below) / (count - below)
        low, below = bound, count
    return low


def at(some: Sequence[float], share: float) -> float:
    return sorted(some)[int(len(some) * share)] if some else 0.0


def verdict(holds: bool, told: str) -> bool:
    """Print whether a bar holds."""
    print(f"{'holds' if holds else 'FAILS'}  {told}", flush=True)
    return holds


def main() -> int:
    """Run the parts; 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", default="recipe,batches,fleet")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--films", type=int, default=50)
    asked = parser.parse_args()
    held: list[bool] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with inference_service(folder, gpu_concurrency=str(PERMITS), ml_models=FAST) as url:
            parts = {
                "recipe": lambda: recipe(folder, url, asked.rounds),
                "batches": lambda: batches(url, asked.rounds),
                "fleet": lambda: fleet(folder, url, asked.films),
            }
            for part in asked.parts.split(","):
                print(f"-- {part}", flush=True)
                held += parts[part]()
    return int(not all(held))


if __name__ == "__main__":
    sys.exit(main())
