"""What the sandbox of a slot costs: its start, and the processor time of all tasks of a film.

    python -m benchmarks.sandbox [--rounds 7] [--seconds 30]

Each round does both ways, `sandbox = "off"` and `"auto"`, one after the other, so that both have the same weather.
Bars: a slot starts at most 50 ms later, and the film takes at most 5 % more processor time (the medians of the rounds).
"""

import argparse
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

from tests.unit.media_files import Film, cfr, make

from rushes.domain.keys import JSON
from rushes.domain.task import Lease
from rushes.wiring import open_home
from rushes.wiring.slots import slot_process
from rushes.worker.child import Child

WAYS = ("off", "auto")
START_BAR, CPU_BAR = 0.050, 1.05
SPEC = (
    '{"owner": "me", "results": {"x": "key"}, "version": 1, "source": null, "span": null, "options": {}, "models": {},'
)
SPEC += '"inputs": {}, "profile": "", "config_hash": ""}'


def started(home: Path, way: str) -> float:
    """Seconds until a new slot has answered its first task, which asks for a stage that is not there."""
    os.environ["RUSHES_SANDBOX"] = way
    opened, heard = open_home(home), queue.SimpleQueue[JSON]()
    begin = time.perf_counter()
    child = Child(slot_process(opened, 1), lambda _child, message: heard.put(message))
    child.start(Lease("job.none", 1, "job", "none", None, "cpu", SPEC, 0, 0))
    said = heard.get(timeout=60)
    seconds = time.perf_counter() - begin
    assert said["kind"] == "NeverWorks", said
    child.close()
    opened.close()
    return seconds


def worked(home: Path, film: Path, way: str) -> float:
    """Processor seconds of a run with everything that it started."""
    env = {**os.environ, "RUSHES_SANDBOX": way, "RUSHES_BESIDE": "false"}
    argv = [sys.executable, "-m", "rushes", "--home", str(home), "run", str(film), "--slots", "1", "--chunk", "5"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(argv, check=True, capture_output=True, env=env)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compared(rounds: int, measure: Callable[[int, str], float]) -> dict[str, float]:
    """The median of each way; the first round only warms up."""
    found = [{way: measure(n, way) for way in (WAYS if n % 2 else WAYS[::-1])} for n in range(rounds + 1)][1:]
    return {way: statistics.median(times[way] for times in found) for way in WAYS}


def main() -> int:
    """Print both ways and whether the bars hold; 1 if one does not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=30)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        film = make(folder / "film.mp4", Film(cfr(asked.seconds), size=(640, 360), noise=10))
        start = compared(asked.rounds, lambda _round, way: started(folder / "home", way))
        cpu = compared(asked.rounds, lambda n, way: worked(folder / f"{way}{n}", film, way))
    late, more = start["auto"] - start["off"], cpu["auto"] / cpu["off"]
    print(
        f"start of a slot   {1000 * start['off']:5.0f} ms off  {1000 * start['auto']:5.0f} ms auto  {1000 * late:+.0f} ms"
    )
    print(f"processor time    {cpu['off']:5.2f} s off   {cpu['auto']:5.2f} s auto   {100 * (more - 1):+.1f} %")
    holds = late <= START_BAR and more <= CPU_BAR
    print(f"{'holds' if holds else 'FAILS'}  at most {1000 * START_BAR:.0f} ms and {100 * (CPU_BAR - 1):.0f} % more")
    return int(not holds)


if __name__ == "__main__":
    sys.exit(main())
