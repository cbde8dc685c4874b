"""How long work takes here: of files, by a trial if need be; of a planned job, kept with it; of so many seconds."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from rushes.blobs.local_disk import free_bytes
from rushes.domain.errors import NoRoom, RushesError
from rushes.domain.job import FINAL, Job, JobState
from rushes.domain.task import TaskState
from rushes.domain.video import AudioTrack, VideoFacts, VideoTrack
from rushes.estimates.rates import StageCost, film_costs, total_bytes, total_seconds
from rushes.home import Home
from rushes.jobs.intake import IntakeResult, JobRequest, add
from rushes.jobs.originals import read_probe
from rushes.ledger.pages import all_tasks
from rushes.plan.grid import grid
from rushes.plan.planner import JobSpec
from rushes.plan.recipes import stages_of

Work = Callable[[Sequence[IntakeResult]], None]  # does the jobs here and now
KIND = "estimate"  # of the records that keep them
MS = Fraction(1, 1000)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A range for one file: half of all runs end before p50, nine of ten before p90."""

    path: str
    p50: float
    p90: float
    chunks: int
    duration: float
    stages: dict[str, tuple[float, float]]
    measured: bool  # by a trial just now, not from earlier work
    error: RushesError | None = None
    size: int = 0  # bytes that will be kept of it
    unknown: tuple[str, ...] = ()  # stages that are not in it: nothing is known of them on this machine


def estimate(home: Home, places: Sequence[str], wanted: JobRequest, machine: str, work: Work) -> list[Estimate]:
    """Probe each file, try what was never done here on a few seconds of it, and add up.

    Raises:
        Interrupted, Terminated: a signal came.
        NoRoom: the disk has no space for a trial.
    """
    free = free_bytes(home.blobs)
    if free is not None and free < home.settings.reserve_mb * 2**20:
        raise NoRoom("the disk is nearly full: there is no space for a trial")
    found = add(home, places, replace(wanted, only=("probe",), skip=(), trial=True))
    probes = [one for one in found if not one.skipped]
    work(probes)
    return [_estimate(home, one, wanted, machine, work) for one in probes]


def _estimate(home: Home, one: IntakeResult, wanted: JobRequest, machine: str, work: Work) -> Estimate:
    if one.job is None or home.ledger.job(one.job.id).state is not JobState.COMPLETED:
        return Estimate(one.path, 0, 0, 0, 0, {}, measured=False, error=one.error or _failure(home, one.job))
    facts = read_probe(home, one.job)
    stages = stages_of(wanted.recipe or home.settings.recipe, home.specs, wanted.only, wanted.skip)
    costs = film_costs(home, facts, stages, machine)
    unmeasured = tuple(stage for stage, cost in costs.items() if cost is None)
    if unmeasured:
        work(list(add(home, [one.path], replace(wanted, only=unmeasured, skip=(), trial=True))))
        costs = film_costs(home, facts, stages, machine, least=1)
    known = {stage: cost for stage, cost in costs.items() if cost}
    return Estimate(
        one.path,
        *total_seconds(home, known),
        len(grid(facts, home.settings.chunk_seconds)),
        float(facts.duration),
        {stage: (cost.p50, cost.p90) for stage, cost in known.items()},
        measured=bool(unmeasured),
        size=total_bytes(home, known),
        unknown=tuple(stage for stage in costs if stage not in known),
    )


def _failure(home: Home, job: Job | None) -> RushesError:
    dead = home.ledger.tasks(job.id, TaskState.DEAD).rows if job else ()
    failure = dead[0].failure if dead else None
    return RushesError(failure.message, failure.hint) if failure else RushesError("it could not be read")


def job_estimate(home: Home, job: Job, machine: str) -> tuple[float, float] | None:
    """Seconds (p50, p90) for what was left of a planned job when it was first asked for in a run.

    None until something of each stage was done on this kind of machine; the first chunks of the job itself count.
    """
    record = home.records.get(KIND, job.owner, job.id)
    if record:
        return float(record.doc["p50"]), float(record.doc["p90"])
    if not job.facts:
        return None
    costs = film_costs(home, read_probe(home, job), JobSpec.from_text(job.payload).stages, machine, least=1)
    known = {stage: cost for stage, cost in costs.items() if cost}
    if len(known) < len(costs):
        return None
    p50, p90 = (round(seconds, 3) for seconds in total_seconds(home, _left(home, job, known)))
    home.records.put(KIND, job.owner, job.id, {"p50": p50, "p90": p90})
    return p50, p90


def forget_estimate(home: Home, job: Job) -> None:
    """A job goes on: the next estimate is for what is left now."""
    if job.state not in FINAL:
        home.records.delete(KIND, job.owner, job.id)


def _left(home: Home, job: Job, costs: Mapping[str, StageCost]) -> dict[str, StageCost]:
    tasks = all_tasks(home.ledger, job.id)
    total, done = Counter(t.stage for t in tasks), Counter(t.stage for t in tasks if t.state is TaskState.DONE)
    return {stage: c.part(1 - done[stage] / total[stage] if total[stage] else 1.0) for stage, c in costs.items()}


@dataclass(frozen=True, slots=True)
class Forecast:
    """Seconds as (p50, p90) for a recipe and each of its stages, and bytes that will be kept."""

    recipe: str
    stages: dict[str, tuple[float, float]]
    whole: tuple[float, float]
    size: int
    unknown: tuple[str, ...]  # stages that nothing is known of on this machine, so not in it


def forecast(home: Home, recipe: str, seconds: float, pixels: tuple[int, int], machine: str) -> Forecast:
    """What so many seconds of film would take.

    Raises:
        Refused: there is no such recipe.
    """
    costs = film_costs(home, _film(seconds, pixels), stages_of(recipe, home.specs), machine, least=1)
    known = {stage: cost for stage, cost in costs.items() if cost}
    return Forecast(
        recipe,
        {stage: (cost.p50, cost.p90) for stage, cost in known.items()},
        total_seconds(home, known),
        total_bytes(home, known),
        tuple(stage for stage in costs if stage not in known),
    )


def _film(seconds: float, pixels: tuple[int, int]) -> VideoFacts:
    end = max(1, round(seconds * 1000))
    picture = VideoTrack(0, "", *pixels, base=MS, start=0, end=end, frames=0, keys=(), rate=None)
    return VideoFacts("", 0, "", picture, (AudioTrack(1, "", 48000, 2, MS, 0, end),))
