"""What traces and figures cost: calls while they are off, and a worker's CPU time with a collector against without.

    python -m benchmarks.tracing [--rounds 5] [--only playlist,shots] [--seconds 120]

A film of two minutes with speech is worked on by `rushes worker --until-idle` (all of the usual recipe), unless told
otherwise; in turns with telemetry off, on, and on while the collector is away, so that all have the same weather. Bar:
both cost at most 2 % more CPU time, and what off costs of a task is below 0.1 %.
"""

import argparse
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import timeit
from contextlib import suppress
from pathlib import Path

import psutil
from tests.acceptance.conftest import draw
from tests.otlp_receiver import collecting

from rushes import tracing
from rushes.library import JobRequest, Library

VOICE = Path(__file__).parents[1] / "tests/media/english_then_german.mp3"
BAR_ON, BAR_OFF = 0.02, 0.001
LOOK_SECONDS = 0.1  # between looks at what slots took
CALLS = 20  # of a task, at most: its parts, verbs and context


def cpu_seconds(film: Path, folder: Path, env: dict[str, str], only: tuple[str, ...]) -> tuple[float, int]:
    """CPU time of a worker and its slots that do all of a film, and how many tasks those are."""
    with Library(folder) as library:  # of its trace: a worker goes on with that of the job
        tracing.start("benchmark", env)
        library.add([film], JobRequest(only=only))
        tracing.stop()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    argv = [sys.executable, "-m", "rushes", "--home", str(folder), "worker", "--until-idle", "--slots", "1"]
    slots: dict[int, float] = {}  # a worker ends its slots without hearing what they took
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ | env) as worker:
        while worker.poll() is None:
            slots |= cpu_below(worker.pid)
            time.sleep(LOOK_SECONDS)
    if worker.returncode:
        raise subprocess.CalledProcessError(worker.returncode, argv)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    with Library(folder) as library:
        tasks = sum(job.counts.done for job in library.jobs.page().rows)
    own = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return own + sum(slots.values()), tasks


def cpu_below(pid: int) -> dict[int, float]:
    """What the processes below one have taken so far, by their ids."""
    found = {}
    with suppress(psutil.Error):
        for process in psutil.Process(pid).children(recursive=True):
            with suppress(psutil.Error):
                times = process.cpu_times()
                found[process.pid] = times.user + times.system
    return found


def off_call_seconds() -> float:
    """One call while traces are off."""

    def call() -> None:
        with tracing.of_task("job.stage", "name"):
            pass

    return min(timeit.repeat(call, number=100_000, repeat=5)) / 100_000


def main() -> int:
    """Print the figures; 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=int, default=120)
    asked = parser.parse_args()
    only = tuple(filter(None, asked.only.split(",")))
    with tempfile.TemporaryDirectory() as place, collecting() as collector:
        film = draw(Path(place) / "film.mp4", asked.seconds, (1280, 720), voice=VOICE)
        ways = {"off": {}, "on": _named(collector.url), "away": _named("http://127.0.0.1:9")}
        times: dict[str, list[float]] = {way: [] for way in ways}
        for n in range(asked.rounds):
            for way in random.Random(n).sample(list(ways), len(ways)):
                seconds, tasks = cpu_seconds(film, Path(place) / f"{n}{way}", ways[way], only)
                times[way].append(seconds)
        sent = len(collector.spans)
    return report(times, tasks, sent)


def _named(url: str) -> dict[str, str]:
    return {"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_SERVICE_NAME": "benchmark"}


def report(times: dict[str, list[float]], tasks: int, sent: int) -> int:
    """Print the figures; 1 if a bar is missed."""
    off, call = statistics.median(times["off"]), off_call_seconds()
    share = CALLS * call * tasks / off
    print(f"off   {off:6.2f} s CPU for {tasks} tasks; a call {call * 1e9:.0f} ns, {share:.4%} of a task; "
          f"{len(times['off'])} rounds, {min(times['off']):.2f} to {max(times['off']):.2f} s")  # fmt: skip
    costs = {way: statistics.median(times[way]) / off - 1 for way in ("on", "away")}
    for way, cost in costs.items():
        print(f"{way:<5} {statistics.median(times[way]):6.2f} s CPU, {cost:+.1%}")
    print(f"{sent} spans reached the collector")
    for way, cost in costs.items():
        print(f"{'holds' if cost <= BAR_ON else 'FAILS'}  {way}: at most {BAR_ON:.0%} more")
    print(f"{'holds' if share <= BAR_OFF else 'FAILS'}  off below {BAR_OFF:.1%} of a task")
    return int(max(costs.values()) > BAR_ON or share > BAR_OFF or not sent)


if __name__ == "__main__":
    sys.exit(main())
