"""How long it will take here: from rates learnt on this machine, else measured on a few seconds of the footage."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rushes.domain.errors import RushesError
from rushes.domain.job import Job, JobState
from rushes.domain.keys import task_id
from rushes.domain.stage import Scope
from rushes.domain.task import TaskState
from rushes.domain.video import VideoFacts
from rushes.index.port import Rate
from rushes.jobs.opening import read_facts
from rushes.library.intake import Added, Wish, add
from rushes.library.run import run
from rushes.plan.grid import grid
from rushes.plan.planner import Asked, results_of
from rushes.plan.recipes import stages_of
from rushes.wiring import House

ENOUGH = 3  # rates of a stage that make calibration unnecessary
KIND = "estimate"  # the record that keeps an estimate beside what it came to


@dataclass(frozen=True, slots=True)
class Estimate:
    """A range for one file: half of all runs end before p50, nine of ten before p90."""

    path: Path
    p50: float
    p90: float
    chunks: int
    duration: float
    stages: dict[str, tuple[float, float]]
    measured: bool  # by calibration just now, not from earlier work
    error: RushesError | None = None


def estimate(house: House, paths: Sequence[Path], wish: Wish, machine: str) -> list[Estimate]:
    """Probe each file (in a slot, like all work on media), then multiply rates with what there is to do."""
    probed = list(add(house, paths, replace(wish, only=("probe",), skip=())))
    run(house, probed)
    stages = stages_of(wish.recipe or house.settings.recipe, house.cards, wish.only, wish.skip)
    return [_estimate(house, one, wish, stages, machine) for one in probed]


def facts_of(house: House, job: Job) -> VideoFacts:
    """What probe found for a job."""
    (probe,) = house.ledger.tasks(ids=[task_id(job.id, "probe", None)]).rows
    return read_facts(house.blobs, job.owner, results_of(probe.spec)["facts"])


def quick(house: House, job: Job, machine: str) -> tuple[float, float] | None:
    """A range for a planned job from learnt rates alone; None where something was never done here."""
    asked = Asked.from_text(job.payload)
    ranges = _ranges(house, facts_of(house, job), asked.stages, machine)
    if any(r is None for r in ranges.values()):
        return None
    return _sum(house, {k: r for k, r in ranges.items() if r})


def _estimate(house: House, one: Added, wish: Wish, stages: Sequence[str], machine: str) -> Estimate:
    if one.job is None or house.ledger.job(one.job.id).state is not JobState.COMPLETED:
        return Estimate(one.path, 0, 0, 0, 0, {}, measured=False, error=one.error or _why(house, one.job))
    facts = facts_of(house, one.job)
    ranges = _ranges(house, facts, stages, machine)
    missing = [s for s, r in ranges.items() if r is None]
    if missing:
        _calibrate(house, one.path, wish, missing)
        ranges = _ranges(house, facts, stages, machine, least=1)
    known = {s: r for s, r in ranges.items() if r}
    low, high = _sum(house, known)
    chunks = len(grid(facts, house.settings.chunk_seconds))
    return Estimate(one.path, low, high, chunks, float(facts.duration), known, measured=bool(missing))


def _why(house: House, job: Job | None) -> RushesError:
    dead = house.ledger.tasks(job.id, TaskState.DEAD).rows if job else ()
    failure = dead[0].failure if dead else None
    return RushesError(failure.message, failure.hint) if failure else RushesError("it could not be probed")


def _ranges(
    house: House, facts: VideoFacts, stages: Sequence[str], machine: str, least: int = ENOUGH
) -> dict[str, tuple[float, float] | None]:
    house.follower.catch_up()
    out: dict[str, tuple[float, float] | None] = {}
    for stage in stages:
        rates = house.index.rates(stage, machine)
        chunked = house.cards[stage].scope is Scope.CHUNK
        enough = len(rates) >= (least if chunked else 1)
        out[stage] = _range(rates, facts, chunked and house.cards[stage].reads_source) if enough else None
    return out


def _range(rates: Sequence[Rate], facts: VideoFacts, by_pixels: bool) -> tuple[float, float]:
    pixels = facts.video.width * facts.video.height if facts.video else 0
    costs = sorted(
        r.seconds / r.media_seconds * (pixels / r.pixels if by_pixels and r.pixels else 1.0)
        for r in rates
        if r.media_seconds > 0
    ) or [0.0]
    length = float(facts.duration)
    few = 1.0 + 0.5 / len(costs)  # little was seen: the range is wider
    return costs[len(costs) // 2] * length, costs[min(len(costs) - 1, int(len(costs) * 0.9))] * length * few


def _sum(house: House, ranges: dict[str, tuple[float, float]]) -> tuple[float, float]:
    """Chunks run side by side; whole-video work is a queue of its own."""
    low = high = 0.0
    for stage, (p50, p90) in ranges.items():
        share = house.slots if house.cards[stage].scope is Scope.CHUNK else 1
        low, high = low + p50 / share, high + p90 / share
    return low, max(high, low * 1.1)


def _calibrate(house: House, path: Path, wish: Wish, missing: Sequence[str]) -> None:
    """Do the work on a few seconds from the middle of the film, as a job of its own: its rates are then known."""
    trial = replace(wish, only=tuple(missing), skip=(), trial=True)
    run(house, list(add(house, [path], trial)))


def keep(house: House, job: Job, p50: float, p90: float) -> None:
    """Remember an estimate; `kept` tells what it came to."""
    house.records.put(KIND, job.owner, job.id, {"p50": p50, "p90": p90})


def kept(house: House, job: Job) -> dict[str, float] | None:
    """The estimate of a job, and how long it really took once it is done."""
    record = house.records.get(KIND, job.owner, job.id)
    return dict(json.loads(json.dumps(record.doc))) if record else None
