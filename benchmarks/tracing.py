"""What traces cost: calls while they are off, and a worker's CPU time with a collector against without.

    python -m benchmarks.tracing [--rounds 5]

A film of two minutes is worked on by `rushes worker --until-idle`, in turns with traces off and on, so that both have
the same weather. Bar: on costs at most 2 % more CPU time, and what off costs of a task is below 0.1 %.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import timeit
from pathlib import Path

from tests.acceptance.conftest import draw
from tests.otlp_receiver import collecting

from rushes import tracing
from rushes.library import JobRequest, Library

BAR_ON, BAR_OFF = 0.02, 0.001
CALLS = 20  # of a task, at most: its parts, verbs and context


def cpu_seconds(film: Path, folder: Path, env: dict[str, str]) -> tuple[float, int]:
    """CPU time of a worker that does all of a film, and how many tasks those are."""
    with Library(folder) as library:
        library.add([film], JobRequest(only=("playlist", "shots")))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    argv = [sys.executable, "-m", "rushes", "--home", str(folder), "worker", "--until-idle", "--slots", "1"]
    subprocess.run(argv, check=True, capture_output=True, env={**os.environ, **env})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    with Library(folder) as library:
        tasks = sum(job.counts.done for job in library.jobs.page().rows)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, tasks


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
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as place, collecting() as collector:
        film = draw(Path(place) / "film.mp4", 120, (1280, 720))
        on = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_SERVICE_NAME": "benchmark"}
        times = [
            [cpu_seconds(film, Path(place) / f"{n}{kind}", env) for kind, env in (("off", {}), ("on", on))]
            for n in range(rounds)
        ]
    (off, tasks), traced = times[0][0], statistics.median(on[0] for _, on in times)
    off = statistics.median(plain[0] for plain, _ in times)
    share, cost = CALLS * off_call_seconds() * tasks / off, traced / off - 1
    print(f"off   {off:6.2f} s CPU for {tasks} tasks; a call {off_call_seconds() * 1e9:.0f} ns, {share:.4%} of a task")
    print(f"on    {traced:6.2f} s CPU, {cost:+.1%}; {rounds} rounds, spread of off "
          f"{min(p[0] for p, _ in times):.2f} to {max(p[0] for p, _ in times):.2f} s")  # fmt: skip
    print(f"{'holds' if cost <= BAR_ON else 'FAILS'}  on at most {BAR_ON:.0%} more")
    print(f"{'holds' if share <= BAR_OFF else 'FAILS'}  off below {BAR_OFF:.1%} of a task")
    return int(cost > BAR_ON or share > BAR_OFF)


if __name__ == "__main__":
    sys.exit(main())
