"""Where each set-up saturates: tasks a second, claims and events against the number of processes.

Draws docs/capacity/*.svg and writes the figures into docs/capacity.md (with --quick it only prints).
"""

import argparse
import itertools
import os
import re
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from proof.setups import servers
from scripts.proofs import commit, machine
from tests.servers_aws import ministack

from benchmarks.aws_requests import count as requests_of
from benchmarks.filled_homes import FilledHomes
from benchmarks.noops import Ran, drain, drain_singly, read, together
from benchmarks.plot import plot

PAGE = Path(__file__).resolve().parents[1] / "docs" / "capacity.md"
BEGIN, END = "<!-- figures: written by benchmarks/capacity.py -->", "<!-- end of figures -->"
SETUPS = {"sqlite": "SQLite", "postgres": "PostgreSQL", "postgres+valkey": "PostgreSQL + Valkey"}
PROCESSES = (1, 2, 4)


@dataclass(frozen=True, slots=True)
class Point:
    """One set-up with so many processes; rates are of all of them together."""

    tasks: float  # a second, claimed and completed in batches
    singly: float  # a second, one at once
    claim: float  # ms of a claim of one task, the median
    slow_claim: float  # and what 1 in 100 exceeds
    events: float  # a second, read by as many followers


PLOTS: dict[str, tuple[str, Callable[[Point], float]]] = {
    "tasks": ("Tasks a second, in batches", lambda point: point.tasks),
    "singly": ("Tasks a second, one at once", lambda point: point.singly),
    "claim": ("Claim of one task, ms (median)", lambda point: point.claim),
    "events": ("Events a second, read by followers", lambda point: point.events),
}
Curves = dict[str, list[Point]]


def measure(homes: FilledHomes, setup: str, processes: int, many: int, few: int) -> Point:
    """One point, on fresh homes."""
    with homes.home(setup, many) as home:
        drained, followed = together(drain, home, processes), together(read, home, processes)
    with homes.home(setup, few) as home:
        alone = together(drain_singly, home, processes)
    claims = sorted(1000 * seconds for ran in alone for seconds in ran.seconds)
    p50, p99 = claims[len(claims) // 2], claims[len(claims) * 99 // 100]
    return Point(_rate(drained), _rate(alone), p50, p99, _rate(followed))


def _rate(ran: Sequence[Ran]) -> float:
    return sum(r.count for r in ran) / (max(r.end for r in ran) - min(r.begin for r in ran))


def curves(folder: Path, rounds: int, many: int, few: int) -> Curves:
    """Every set-up with every number of processes, in interleaved rounds; medians."""
    found: dict[tuple[str, int], list[Point]] = {}
    with servers(folder / "servers") as running:
        homes = FilledHomes(running, folder)
        for _, processes, setup in itertools.product(range(rounds), PROCESSES, SETUPS):
            found.setdefault((setup, processes), []).append(measure(homes, setup, processes, many, few))
            print(".", end="", file=sys.stderr, flush=True)
    return {setup: [_median(found[setup, processes]) for processes in PROCESSES] for setup in SETUPS}


def _median(points: Sequence[Point]) -> Point:
    names = Point.__dataclass_fields__
    return Point(**{name: statistics.median(getattr(point, name) for point in points) for name in names})


def on_aws(folder: Path, films: int, chunks: int) -> dict[str, float]:
    """Requests per task on DynamoDB + SQS; an emulator answers, so that nothing is said of seconds."""
    running = ministack(folder)
    try:
        found = {way: requests_of(running.url, films, chunks, way == "alone") for way in ("tens", "alone")}
    finally:
        running.stop()
    return {way: requests.total() / tasks for way, (tasks, requests, _) in found.items()}


def figures(found: Curves, requests: dict[str, float], rounds: int, load: float) -> str:
    """The part of the page that is written by this program."""
    head = f"Commit {commit()}, {machine()}, with a load of {load:.1f} from others before it began; servers and "
    head += f"processes share it. Medians of {rounds}."
    lines = ["| set-up | processes | tasks/s, in batches | one at once | claim p50 / p99 ms | events/s read |"]
    lines += ["|---|---|---|---|---|---|"]
    for setup, points in found.items():
        for processes, p in zip(PROCESSES, points, strict=True):
            rates = f"{p.tasks:,.0f} | {p.singly:,.0f} | {p.claim:.1f} / {p.slow_claim:.1f} | {p.events:,.0f}"
            lines.append(f"| {SETUPS[setup]} | {processes} | {rates} |")
    pictures = [f"![{title}](capacity/{name}.svg)" for name, (title, _) in PLOTS.items()]
    aws = (
        f"DynamoDB + SQS (an emulator: requests are counted, its seconds mean nothing): {requests['tens']:.2f} "
        f"requests per task in tens, {requests['alone']:.2f} when each task finishes alone."
    )
    return "\n".join([head, "", *lines, "", aws, "", *pictures])


def write(found: Curves, text: str) -> None:
    """The page and its pictures."""
    folder = PAGE.with_suffix("")
    folder.mkdir(exist_ok=True)
    for name, (title, value) in PLOTS.items():
        lines = {SETUPS[setup]: [value(point) for point in points] for setup, points in found.items()}
        (folder / f"{name}.svg").write_text(plot(title, "processes", PROCESSES, lines), "utf-8")
    page = PAGE.read_text("utf-8")
    between = re.compile(f"{re.escape(BEGIN)}.*{re.escape(END)}", re.DOTALL)
    PAGE.write_text(between.sub(lambda _: f"{BEGIN}\n{text}\n{END}", page), "utf-8")


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small run: the figures mean little")
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args(argv)
    rounds, many, few = (1, 1_640, 164) if asked.quick else (asked.rounds, 61_500, 2_050)
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as place:
        found = curves(Path(place), rounds, many, few)
        requests = on_aws(Path(place) / "aws", 1, 40 if asked.quick else 480)
    text = figures(found, requests, rounds, load)
    print(text)
    if not asked.quick:
        write(found, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
