"""How well estimates hold: on runs that were recorded, and on runs that are made of their tasks.

    python -m benchmarks.estimates [--runs PATH] [--made 150] [--seed 1]
    python -m benchmarks.estimates --record 60 --runs PATH     # makes films and runs them, on a quiet machine

Each run is estimated from those before it, as the product does. Bars: the range holds the truth in 85 to 97 % of the
runs, and the middle of the range is off by at most 15 % in the median.
"""

import argparse
import json
import math
import random
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import av

from benchmarks.media_films import make_film
from rushes.estimates.cost import CostModel, Footage, cost_model
from rushes.estimates.estimate import START_SECONDS
from rushes.estimates.rates import KIND, Rate, newest
from rushes.library import JobRequest, Library
from rushes.plan.schedule import PlannedWork, makespan
from rushes.stages.registry import load_stages, specs_of

RECORDED = Path(__file__).parent / "recorded_runs.json"
SPECS = specs_of(load_stages())
WARM = 8  # runs of a series before the first one that counts
SPOKEN = 0.6  # of the films have somebody who speaks
SPEECH = Path(__file__).parents[1] / "scripts" / "demo_media" / "jfk.flac"
SIZES = ((426, 240), (640, 360), (1280, 720), (1920, 1080))
LEAST, MOST, LATEST = 0.85, 0.97, 0.15


@dataclass(frozen=True, slots=True)
class RecordedTask:
    """A task of a run, and how long it took."""

    id: str
    stage: str
    media_seconds: float
    needs: tuple[str, ...]
    seconds: float
    voiced_seconds: float | None


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A run of one film."""

    pixels: int
    sound: bool
    slots: int
    seconds: float
    tasks: tuple[RecordedTask, ...]


def main(argv: Sequence[str] | None = None) -> int:
    """Print the figures; 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, default=RECORDED)
    parser.add_argument("--record", type=int, default=0)
    parser.add_argument("--made", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(argv)
    if chosen.record:
        record(chosen.runs, chosen.record, random.Random(chosen.seed))
        return 0
    recorded = read(chosen.runs)
    made = list(make_runs(recorded, chosen.made + WARM, random.Random(chosen.seed)))
    found = [report("recorded", recorded), report("made", made)]
    return judge([one for some in found for one in some])


def judge(ratios: Sequence[tuple[float, bool]]) -> int:
    """The bars, over all runs."""
    held = sum(inside for _, inside in ratios) / len(ratios)
    off = statistics.median(abs(ratio - 1) for ratio, _ in ratios)
    bars = f"range holds {held:.0%} (bar {LEAST:.0%}-{MOST:.0%}), off by {off:.0%} (bar {LATEST:.0%})"
    print(f"all: {len(ratios)} runs, {bars}")
    return 0 if LEAST <= held <= MOST and off <= LATEST else 1


def report(name: str, runs: Sequence[RecordedRun]) -> list[tuple[float, bool]]:
    """For each run the truth by the middle of its range, and whether the range held it."""
    found = []
    for n, run in enumerate(runs):
        if n >= WARM:
            low, high = estimate(model_of(runs[:n]), run)
            found.append((run.seconds / math.sqrt(low * high), low <= run.seconds <= high))
    ratios = sorted(ratio for ratio, _ in found)
    held, tenth = sum(inside for _, inside in found) / len(found), len(ratios) // 10
    print(
        f"{name}: {len(found)} runs, {min(r.seconds for r in runs):.1f} to {max(r.seconds for r in runs):.0f} s; "
        f"range holds {held:.0%}; truth by estimate p10 {ratios[tenth]:.2f}, p50 {statistics.median(ratios):.2f}, "
        f"p90 {ratios[-tenth - 1]:.2f}"
    )
    return found


def estimate(model: CostModel, run: RecordedRun) -> tuple[float, float]:
    """What the product says of a run before it begins."""
    footage = Footage(run.pixels, run.sound)
    work = [PlannedWork(t.id, t.stage, t.media_seconds, t.needs) for t in run.tasks]
    model = model.for_size(run.pixels)
    seconds = {w.id: model.seconds(w.stage, w.media_seconds, footage) for w in work}
    return model.around(START_SECONDS + makespan(work, seconds, run.slots))


def model_of(runs: Sequence[RecordedRun]) -> CostModel:
    """What was learnt from some runs."""
    history: defaultdict[str, list[Rate]] = defaultdict(list)
    for number, run in enumerate(runs):
        for task in run.tasks:
            history[task.stage].append(_rate(number, run, task))
    return cost_model({stage: newest(rates) for stage, rates in history.items()}, SPECS, "balanced")


def _rate(number: int, run: RecordedRun, task: RecordedTask) -> Rate:
    known = (task.seconds, task.media_seconds, run.pixels, f"{number:06}", "balanced", 0, task.voiced_seconds)
    return Rate(f"job_{number}.{task.stage}", task.stage, "", *known)


def make_runs(recorded: Sequence[RecordedRun], count: int, dice: random.Random) -> Iterator[RecordedRun]:
    """Longer films, as many chunks as the dice say, each chunk with the tasks and times of one that was recorded."""
    spoken = [run for run in recorded if any(t.voiced_seconds for t in run.tasks)]
    for _ in range(count):
        run = dice.choice(spoken or list(recorded))
        chunks, slower = round(math.exp(dice.uniform(0.0, 4.0))), dice.lognormvariate(0.0, 0.08)
        yield _made(run, chunks, slower, dice)


def _made(run: RecordedRun, chunks: int, slower: float, dice: random.Random) -> RecordedRun:
    tasks = [t for n in range(chunks) for t in _chunk(run, n, slower, dice)]
    seconds = {t.id: t.seconds for t in tasks}
    work = [PlannedWork(t.id, t.stage, t.media_seconds, t.needs) for t in tasks]
    return replace(run, tasks=tuple(tasks), seconds=START_SECONDS + makespan(work, seconds, run.slots))


def _chunk(run: RecordedRun, number: int, slower: float, dice: random.Random) -> Iterator[RecordedTask]:
    for task in run.tasks:
        seconds = task.seconds * slower * dice.lognormvariate(0.0, 0.1)
        needs = tuple(f"{need}.{number}" for need in task.needs)
        yield replace(task, id=f"{task.id}.{number}", needs=needs, seconds=seconds)


def record(path: Path, count: int, dice: random.Random) -> None:
    """Make films of many lengths and sizes and run each; what they took is added to the file."""
    runs = read(path) if path.exists() else []
    with tempfile.TemporaryDirectory() as temp, Library(Path(temp) / "home") as library:
        for number in range(count):
            size, seconds = dice.choice(SIZES), round(math.exp(dice.uniform(1.0, 4.2)))
            film = Path(temp) / f"{number}.mp4"
            make_film(film, size, seconds, dice.randrange(10**6))
            if dice.random() < SPOKEN:
                film = speak(film, seconds)
            runs.append(_run(library, film))
            film.unlink()
            print(f"{number}: {seconds} s of {size[1]}p in {runs[-1].seconds:.1f} s", file=sys.stderr, flush=True)
            path.write_text(json.dumps([asdict(run) for run in runs], separators=(",", ":")) + "\n", "utf-8")


def speak(silent: Path, seconds: float) -> Path:
    """The same film with speech for its sound, as long as it lasts."""
    path = silent.with_suffix(".mkv")
    with av.open(str(silent)) as film, av.open(str(path), "w") as out:
        pictures = out.add_stream_from_template(film.streams.video[0])
        sound = out.add_stream("aac", rate=16_000, layout="mono")
        for packet in film.demux(film.streams.video[0]):
            if packet.dts is not None:
                packet.stream = pictures
                out.mux(packet)
        for frame in _speech(seconds):
            out.mux(sound.encode(frame))
        out.mux(sound.encode(None))
    silent.unlink()
    return path


def _speech(seconds: float) -> Iterator[av.AudioFrame]:
    at, resampler = 0, av.AudioResampler("fltp", "mono", 16_000)
    while at < seconds * 16_000:
        with av.open(str(SPEECH)) as heard:
            for decoded in heard.decode(audio=0):
                for frame in resampler.resample(decoded):
                    frame.pts, at = at, at + frame.samples
                    yield frame


def _run(library: Library, film: Path) -> RecordedRun:
    begun = time.monotonic()
    (job,) = library.run([film], JobRequest(), beside=False).jobs
    seconds, facts = time.monotonic() - begun, json.loads(job.facts)
    library.jobs.expected(job)
    took = {rate["task"]: rate for r in library.home.all_records(KIND) for rate in r.doc.get("tasks", ())}
    length = facts["duration_us"] / 1e6
    tasks = []
    for task in library.jobs.tasks(job.id):
        work, rate = PlannedWork.of(task.id, task.stage, task.spec, length), took.get(task.id, {})
        id, needs = task.id.partition(".")[2], tuple(need.partition(".")[2] for need in work.needs)
        took_seconds, voiced = rate.get("seconds", 0.0), rate.get("voiced_seconds")
        tasks.append(RecordedTask(id, task.stage, work.media_seconds, needs, took_seconds, voiced))
    return RecordedRun(facts["width"] * facts["height"], facts["audio"], library.home.slots, seconds, tuple(tasks))


def read(path: Path) -> list[RecordedRun]:
    """The runs of a file."""
    docs = json.loads(path.read_text("utf-8"))
    return [RecordedRun(**{**run, "tasks": tuple(map(_task, run["tasks"]))}) for run in docs]


def _task(doc: dict[str, object]) -> RecordedTask:
    return RecordedTask(**{**doc, "needs": tuple(doc["needs"])})  # type: ignore[arg-type]


if __name__ == "__main__":
    sys.exit(main())
