"""What the sandbox of a slot costs: its start, and the processor time of all tasks of a film.

    python -m benchmarks.sandbox [--starts 100] [--rounds 7] [--seconds 30]

Each round does both ways, `sandbox = "off"` and `"auto"`, one right after the other and in turns first, so that both
have the same weather; what counts is the median of the differences of all pairs. Bars: a slot takes at most 50 ms more
to start, of the processor and by the wall, and the film at most 5 % more of the processor.
"""

import argparse
import ctypes
import json
import os
import queue
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import psutil
from tests.unit.media_files import Film, cfr, make

from rushes.domain.keys import JSON
from rushes.domain.task import Lease
from rushes.wiring import open_home
from rushes.wiring.slots import slot_process
from rushes.worker.broker.attempt import AttemptDeps
from rushes.worker.child import Child

PR_SET_CHILD_SUBREAPER = 36
WAYS = ("off", "auto")
START_BAR, CPU_BAR = 50, 5  # ms, %
T = TypeVar("T")
SPEC: JSON = {"owner": "me", "results": {"x": "key"}, "version": 1, "source": None, "span": None, "options": {}}
SPEC |= {"models": {}, "inputs": {}, "profile": "", "config_hash": ""}


def started(home: Path, way: str) -> tuple[float, float]:
    """Seconds until a new slot has answered its first task (a stage that is not there), and those of its processor."""
    os.environ["RUSHES_SANDBOX"] = way
    opened, heard = open_home(home), queue.SimpleQueue[JSON]()
    begin = time.perf_counter()
    deps = AttemptDeps.on(opened.blobs, opened.original, "0")
    child = Child(slot_process(opened, 1, lambda _lease: deps), lambda _child, message: heard.put(message))
    child.start(Lease("job.none", 1, "job", "none", None, "cpu", json.dumps(SPEC), 0, 0))
    said = heard.get(timeout=60)
    seconds = time.perf_counter() - begin
    assert said["kind"] == "NeverWorks", said
    root = psutil.Process(child.pid)
    used = [process.cpu_times() for process in (root, *root.children(recursive=True))]
    child.close()
    opened.close()
    return seconds, sum(times.user + times.system for times in used)


def worked(home: Path, film: Path, way: str) -> float:
    """Processor seconds of a run with everything that it started: orphans (what a killed slot ran) come to us."""
    env = {**os.environ, "RUSHES_SANDBOX": way, "RUSHES_BESIDE": "false"}
    argv = [sys.executable, "-m", "rushes", "--home", str(home), "run", str(film), "--slots", "1", "--chunk", "5"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(argv, check=True, capture_output=True, env=env)
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compared(rounds: int, measure: Callable[[int, str], T]) -> dict[str, list[T]]:
    """What each way took, round by round; the first only warms up."""
    found = [{way: measure(n, way) for way in (WAYS if n % 2 else WAYS[::-1])} for n in range(rounds + 1)][1:]
    return {way: [times[way] for times in found] for way in WAYS}


def more(found: dict[str, list[float]]) -> float:
    """How much more the second way took: the median of the differences of all pairs."""
    return statistics.median(auto - off for off, auto in zip(found["off"], found["auto"], strict=True))


def shown(what: str, found: dict[str, list[float]], unit: str) -> float:
    """Print both medians and how much more the second is."""
    off, auto = (statistics.median(found[way]) for way in WAYS)
    print(f"{what:22} {off:7.2f} {unit} off  {auto:7.2f} {unit} auto  {more(found):+.2f} {unit} (median of pairs)")
    return more(found)


def main() -> int:
    """Print both ways and whether the bars hold; 1 if one does not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--starts", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=30)
    asked = parser.parse_args()
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        film = make(folder / "film.mp4", Film(cfr(asked.seconds), size=(640, 360), noise=10))
        starts = compared(asked.starts, lambda _round, way: started(folder / "home", way))
        runs = compared(asked.rounds, lambda n, way: worked(folder / f"{way}{n}", film, way))
    wall = shown("start of a slot, wall", {way: [1000 * one for one, _ in starts[way]] for way in WAYS}, "ms")
    cpu = shown("start of a slot, CPU", {way: [1000 * one for _, one in starts[way]] for way in WAYS}, "ms")
    film_cpu = shown("a film, CPU", runs, "s")
    percent = 100 * film_cpu / statistics.median(runs["off"])
    holds = max(wall, cpu) <= START_BAR and percent <= CPU_BAR
    print(f"{'holds' if holds else 'FAILS'}  {asked.starts} and {asked.rounds} pairs; the film {percent:+.1f} %; "
          f"bars {START_BAR} ms and {CPU_BAR} %")  # fmt: skip
    return int(not holds)


if __name__ == "__main__":
    sys.exit(main())
