"""A home in a bucket against one on this disk: CPU and wall time, requests, bytes and cost of a chunk, and a takeover.

    python -m benchmarks.bucket_home [--rounds 3] [--seconds 300]

The bucket is SeaweedFS on loopback, behind a line on which each request takes 5 ms more. What is compared is a real
recipe (proxy, frames, cuts), interleaved, the least of all rounds. For the takeover a machine is killed without
a word; the other one looks like another host, so that only the unchanged lock tells it.
"""

import argparse
import http.client
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.acceptance.conftest import draw
from tests.servers_aws import KEY, SECRET

from benchmarks.recipe import cpu
from rushes.bucket.client import connect
from rushes.bucket.location import BucketLocation
from rushes.servers import seaweed

DELAY = 0.005
CPU_BAR, WALL_BAR = 1.10, 1.15
CHUNK = 30
PRICES = {"PUT": 5e-6, "POST": 5e-6, "LIST": 5e-6, "GET": 4e-7, "HEAD": 4e-7}  # dollars, Amazon's list for the USA
ONLY = ("--only", "shots", "--only", "playlist", "--slots", "1", "--no-beside", "--chunk", str(CHUNK))
WANTED = ("--only", "shots", "--only", "playlist", "--chunk", "10")  # of the film that is taken over
KINDS = {"ckpt.sqlite": "database", "lock.json": "lock", "records.sqlite": "records", "list-type=": "list",
         "/results/": "manifests", "/blobs/": "blobs", "film.mp4": "film"}  # fmt: skip
AWAY = 120.0  # seconds within which a film must have been taken over
ELSEWHERE = """
import sys
from rushes.ledger import clock
clock.boot_id = lambda: "another-boot"
from rushes.ledger import process
process.host_id = lambda: "another-host"
from rushes.surfaces.cli.main import main
sys.exit(main())
"""


@dataclass
class Line:
    """The way to the bucket: each request takes longer, and is counted."""

    upstream: str
    requests: Counter[tuple[str, str]] = field(default_factory=Counter)  # method and kind
    sent: Counter[str] = field(default_factory=Counter)  # bytes of bodies by kind
    first_put: dict[str, float] = field(default_factory=dict)  # kind -> when the first was answered
    url: str = ""

    def note(self, method: str, path: str, size: int) -> None:
        """A request was answered."""
        kind = next((kind for part, kind in KINDS.items() if part in path), "names")
        self.requests[method, kind] += 1
        self.sent[kind] += size
        if method == "PUT":
            self.first_put.setdefault(kind, time.monotonic())


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    line: Line
    upstream: http.client.HTTPConnection | None = None

    def pass_on(self) -> None:
        size = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(size)
        time.sleep(DELAY)
        self.upstream = self.upstream or http.client.HTTPConnection(self.line.upstream, timeout=60)
        self.upstream.request(self.command, self.path, body, dict(self.headers))
        answer = self.upstream.getresponse()
        data = answer.read()
        self.line.note(self.command, self.path, size)
        self.send_response_only(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in {"transfer-encoding", "connection", "content-length"}:
                self.send_header(name, value)
        length = answer.getheader("content-length") if self.command == "HEAD" else None
        self.send_header("content-length", length or str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = pass_on  # noqa: N815 - as http.server wants them

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def line_to(upstream: str) -> Iterator[Line]:
    """A line to a server."""
    line = Line(upstream.removeprefix("http://"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"line": line}))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    line.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield line
    finally:
        server.shutdown()


def machine(disk: Path, url: str) -> dict[str, str]:
    """The environment of a machine of its own, which reaches the bucket by that line."""
    disk.mkdir(exist_ok=True)
    folders = {name: str(disk) for name in ("HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME")}
    reached = {"S3_ENDPOINT": url, "S3_ACCESS_KEY_ID": KEY, "S3_SECRET_ACCESS_KEY": SECRET}
    return {**folders, **reached, "AWS_REGION": "us-east-1"}


def compare(place: BucketLocation, film: Path, seconds: int, folder: Path, rounds: int) -> tuple[float, float]:
    """Print both, and requests and bytes of a run; answers bucket / disk in CPU and wall seconds."""
    connect(place).put("film.mp4", film)
    times: dict[str, list[tuple[float, float]]] = {"disk": [], "bucket": []}
    for n in range(rounds):
        near, far = folder / f"near{n}", folder / f"far{n}"
        near.mkdir()
        own = [sys.executable, "-m", "rushes", "--home", str(near / "home"), "run", str(film), *ONLY]
        times["disk"].append(cpu(own, near, **machine(near, "")))
        home = replace(place, prefix=f"home{n}").url
        with line_to(place.endpoint) as line:
            there = [sys.executable, "-m", "rushes", "--home", home, "run", f"{place.url}/film.mp4", *ONLY]
            times["bucket"].append(cpu(there, folder, **machine(far, line.url)))
        shutil.rmtree(near)
        last = line
        print(f"round {n + 1} of {rounds}", file=sys.stderr, flush=True)
    best = {where: [min(one[i] for one in found) for i in (0, 1)] for where, found in times.items()}
    print("| home | CPU s | wall s |\n|---|---|---|")
    for where, (used, wall) in best.items():
        print(f"| {where} | {used:.1f} | {wall:.1f} |")
    ratios = (best["bucket"][0] / best["disk"][0], best["bucket"][1] / best["disk"][1])
    figures(last, seconds)
    print(f"\nbucket / disk: CPU {ratios[0]:.2f} (bar {CPU_BAR}), wall {ratios[1]:.2f} (bar {WALL_BAR})")
    return ratios


def figures(line: Line, seconds: int) -> None:
    """Print the requests and bytes of a run of a film so long, and what they cost."""
    chunks = seconds // CHUNK
    print("\n| requests | PUT | GET, HEAD | LIST | DELETE | MB sent |\n|---|---|---|---|---|---|")
    for kind in sorted({kind for _, kind in line.requests}):
        of = {method: count for (method, name), count in line.requests.items() if name == kind}
        puts = of.get("PUT", 0) + of.get("POST", 0)
        gets, lists = (0, of.get("GET", 0)) if kind == "list" else (of.get("GET", 0) + of.get("HEAD", 0), 0)
        print(f"| {kind} | {puts} | {gets} | {lists} | {of.get('DELETE', 0)} | {line.sent[kind] / 1e6:.2f} |")
    total, sent = line.requests.total(), sum(line.sent.values())
    home = ("database", "lock", "records", "list")
    own = sum(count for (_, kind), count in line.requests.items() if kind in home)
    print(
        f"\na chunk: {total / chunks:.1f} requests and {sent / chunks / 1e6:.2f} MB sent, of which the home itself "
        f"(database, lock, records, lists) {own / chunks:.1f} requests and "
        f"{sum(line.sent[kind] for kind in home) / chunks / 1e6:.2f} MB"
    )
    cost, own_cost = (3600 / seconds * price(line, kinds) for kinds in ({*line.sent}, home))
    print(f"an hour of film: {cost:.4f} dollars for requests, of which the home itself {own_cost:.4f}")


def price(line: Line, kinds: Collection[str]) -> float:
    """What the requests of some kinds cost, in dollars."""
    named = (
        (("LIST" if kind == "list" else method), count)
        for (method, kind), count in line.requests.items()
        if kind in kinds
    )
    return sum(count * PRICES.get(method, 0.0) for method, count in named)


def takeover(place: BucketLocation, folder: Path) -> None:
    """Kill a machine in the middle of a film and lose its disk, while another one waits for work."""
    home = replace(place, prefix="takeover")
    more = {"RUSHES_SLOTS": "1"}
    with line_to(place.endpoint) as first, line_to(place.endpoint) as second:
        add = [sys.executable, "-m", "rushes", "--home", home.url, "add", f"{place.url}/film.mp4", *WANTED]
        cpu(add, folder, **machine(folder / "person", place.endpoint))
        dying = [sys.executable, "-m", "rushes", "worker", home.url]
        waiting = [sys.executable, "-c", ELSEWHERE, "worker", home.url]
        a = _start(dying, folder / "a", first, more)
        try:
            _until(lambda: first.requests["PUT", "manifests"] > 3, "the first machine makes nothing")
            b = _start(waiting, folder / "b", second, more)
            try:
                _until(lambda: second.requests["GET", "list"] > 2, "the second machine does not look")
                a.kill()
                a.wait()
                killed = time.monotonic()
                shutil.rmtree(folder / "a", ignore_errors=True)
                _until(lambda: second.first_put.get("blobs", 0.0) > killed, "nobody goes on")
            finally:
                b.terminate()
                b.wait()
        finally:
            a.kill()
            a.wait()
        lock, chunk = (second.first_put[kind] - killed for kind in ("lock", "blobs"))
    print(f"\nfrom a kill to the lock: {lock:.1f} s; to the first chunk of the next machine: {chunk:.1f} s")


def _start(argv: Sequence[str], disk: Path, line: Line, more: dict[str, str]) -> subprocess.Popen[bytes]:
    env = {**os.environ, **machine(disk, line.url), **more}
    return subprocess.Popen(argv, env=env, cwd=disk, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _until(is_so: Callable[[], bool], why_not: str) -> None:
    end = time.monotonic() + AWAY
    while not is_so():
        if time.monotonic() > end:
            raise SystemExit(why_not)
        time.sleep(0.05)


def main(argv: Sequence[str] | None = None) -> int:
    """Run all parts; answer 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=300, help="length of the film")
    asked = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        film = draw(folder / "film.mp4", asked.seconds, (640, 360), rate=25)
        server = seaweed.start(folder / "seaweed", "films", KEY, SECRET)
        try:
            place = BucketLocation("films", "originals", server.url, KEY, SECRET)
            ratios = compare(place, film, asked.seconds, folder, asked.rounds)
            takeover(place, folder)
        finally:
            server.process.kill()
            server.process.wait()
    return int(ratios[0] > CPU_BAR or ratios[1] > WALL_BAR)


if __name__ == "__main__":
    sys.exit(main())
