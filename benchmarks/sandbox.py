"""What the sandbox of a slot costs: its start, and the processor time of all tasks of a film.

    python -m benchmarks.sandbox [--rounds 7] [--seconds 30]

Each round does both ways, `sandbox = "off"` and `"auto"`, one after the other, so that both have the same weather.
Bars: a slot takes at most 50 ms more of the processor to start, and the film at most 5 % more. Waiting is printed as
well; on a busy machine it says little.
"""

import argparse
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
from pathlib import Path
from typing import TypeVar

import psutil
from tests.unit.media_files import Film, cfr, make

from rushes.domain.keys import JSON
from rushes.domain.task import Lease
from rushes.wiring import open_home
from rushes.wiring.slots import slot_process
from rushes.worker.child import Child

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
    child = Child(slot_process(opened, 1), lambda _child, message: heard.put(message))
    child.start(Lease("job.none", 1, "job", "none", None, "cpu", json.dumps(SPEC), 0, 0))
    said = heard.get(timeout=60)
    seconds = time.perf_counter() - begin
    assert said["kind"] == "NeverWorks", said
    used = psutil.Process(child.pid).cpu_times()
    child.close()
    opened.close()
    return seconds, used.user + used.system


def worked(home: Path, film: Path, way: str) -> float:
    """Processor seconds of a run with everything that it started."""
    env = {**os.environ, "RUSHES_SANDBOX": way, "RUSHES_BESIDE": "false"}
    argv = [sys.executable, "-m", "rushes", "--home", str(home), "run", str(film), "--slots", "1", "--chunk", "5"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(argv, check=True, capture_output=True, env=env)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compared(rounds: int, measure: Callable[[int, str], T]) -> dict[str, list[T]]:
    """What each way took, round by round; the first only warms up."""
    found = [{way: measure(n, way) for way in (WAYS if n % 2 else WAYS[::-1])} for n in range(rounds + 1)][1:]
    return {way: [times[way] for times in found] for way in WAYS}


def main() -> int:
    """Print both ways and whether the bars hold; 1 if one does not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=30)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        film = make(folder / "film.mp4", Film(cfr(asked.seconds), size=(640, 360), noise=10))
        starts = compared(4 * asked.rounds, lambda _round, way: started(folder / "home", way))
        runs = compared(asked.rounds, lambda n, way: worked(folder / f"{way}{n}", film, way))
    walls = [1000 * statistics.median(wall for wall, _ in starts[way]) for way in WAYS]
    starting = [1000 * statistics.mean(cpu for _, cpu in starts[way]) for way in WAYS]
    working = [statistics.median(runs[way]) for way in WAYS]
    late, more = starting[1] - starting[0], 100 * (working[1] / working[0] - 1)
    print(f"start of a slot, CPU   {starting[0]:4.0f} ms off  {starting[1]:4.0f} ms auto  {late:+.0f} ms")
    print(f"start of a slot, wall  {walls[0]:4.0f} ms off  {walls[1]:4.0f} ms auto")
    print(f"a film, CPU            {working[0]:4.2f} s off   {working[1]:4.2f} s auto   {more:+.1f} %")
    holds = late <= START_BAR and more <= CPU_BAR
    print(f"{'holds' if holds else 'FAILS'}  at most {START_BAR} ms and {CPU_BAR} % more")
    return int(not holds)


if __name__ == "__main__":
    sys.exit(main())
