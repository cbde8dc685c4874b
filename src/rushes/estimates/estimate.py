"""Estimates of files (with a trial if needed), of planned jobs (stored with them), or of a length of video."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction

from rushes.blobs.local_disk import free_bytes
from rushes.domain.errors import NoRoom, RushesError
from rushes.domain.job import FINAL, Job, JobState
from rushes.domain.stage import Scope
from rushes.domain.task import TaskState
from rushes.domain.video import AudioTrack, Fingerprint, VideoFacts, VideoTrack
from rushes.estimates.cost import ENOUGH, CostModel, Footage, cost_model
from rushes.estimates.learnt import LearntModels
from rushes.estimates.rates import RateHistory
from rushes.estimates.report import Estimate, FilmCost, Range
from rushes.home import Home
from rushes.jobs.intake import IntakeResult, JobRequest, add, job_spec
from rushes.jobs.originals import read_probe
from rushes.ledger.pages import all_tasks
from rushes.plan.planner import JobSpec, plan
from rushes.plan.schedule import PlannedWork, makespan

Work = Callable[[Sequence[IntakeResult]], None]  # does the jobs here and now
KIND = "estimate"  # of the records that keep them
MS = Fraction(1, 1000)
PLANNED_SECONDS = 4 * 3600  # of film, that a forecast plans; longer ones are so many of these
START_SECONDS = 0.8  # until the slots of a run have started
NO_PROBE = '{"results": {}}'  # what a plan needs of a probe that is only imagined


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
        return Estimate(one.path, error=one.error or _failure(home, one.job))
    facts, spec = read_probe(home, one.job), job_spec(home, Fingerprint("", 0, 0), wanted)
    model = model_of(home, spec.stages, spec.profile, machine)
    unmeasured = _unmeasured(home, model, spec)
    if unmeasured:
        work(list(add(home, [one.path], replace(wanted, only=unmeasured, skip=(), trial=True))))
        model = model_of(home, spec.stages, spec.profile, machine)
    tasks = _planned(home, spec, facts)
    chunks = max((sum(t.stage == stage for t in tasks) for stage in spec.stages), default=0)
    cost = _film_cost(home, model, spec.stages, tasks, Footage.of(facts))
    return Estimate(one.path, float(facts.duration), chunks, cost, measured=bool(unmeasured))


def _unmeasured(home: Home, model: CostModel, spec: JobSpec) -> tuple[str, ...]:
    """Stages on chunks that hardly ran here; work on whole videos is quick beside that."""
    chunked = [stage for stage in spec.stages if home.specs[stage].scope is Scope.CHUNK]
    return tuple(s for s in chunked if s not in model.stages or model.stages[s].measured < ENOUGH)


def _failure(home: Home, job: Job | None) -> RushesError:
    dead = home.ledger.tasks(job.id, TaskState.DEAD).rows if job else ()
    failure = dead[0].failure if dead else None
    return RushesError(failure.message, failure.hint) if failure else RushesError("it could not be read")


def job_estimate(home: Home, job: Job, machine: str, learnt: LearntModels | None = None) -> Range | None:
    """Seconds for what was left of a planned job when it was first asked for; kept. None if a stage is unknown."""
    record = home.records.get(KIND, job.owner, job.id)
    if record:
        return float(record.doc["low"]), float(record.doc["high"])
    if not job.facts:
        return None
    spec, film = JobSpec.from_text(job.payload), Footage.of_job(job)
    left = [t for t in all_tasks(home.ledger, job.id) if t.state is not TaskState.DONE]
    tasks = [PlannedWork.of(t.id, t.stage, t.spec, film.seconds) for t in left]
    model = learnt.of(spec.stages, spec.profile) if learnt else model_of(home, spec.stages, spec.profile, machine)
    cost = _film_cost(home, model, spec.stages, tasks, film)
    if cost.unknown:
        return None
    low, high = (round(seconds, 3) for seconds in cost.seconds)
    home.records.put(KIND, job.owner, job.id, {"low": low, "high": high})
    return low, high


def forget_estimate(home: Home, job: Job) -> None:
    """A job goes on: the next estimate is for what is left now."""
    if job.state not in FINAL:
        home.records.delete(KIND, job.owner, job.id)


def forecast(home: Home, recipe: str, seconds: float, pixels: tuple[int, int], machine: str) -> FilmCost:
    """What so many seconds of film would take.

    Raises:
        Refused: there is no such recipe.
    """
    spec = job_spec(home, Fingerprint("", 0, 0), JobRequest(recipe=recipe))
    times = max(1.0, seconds / PLANNED_SECONDS)
    facts = _film(seconds / times, pixels, spec.chunk_seconds)
    model = model_of(home, spec.stages, spec.profile, machine)
    return _film_cost(home, model, spec.stages, _planned(home, spec, facts), Footage.of(facts)).times(times)


def model_of(home: Home, stages: Iterable[str], profile: str, machine: str) -> CostModel:
    """What was learnt of some stages on a kind of machine."""
    history = RateHistory(home.ledger, home.records, home.blobs, home.owner)
    return cost_model(history.of([s for s in stages if s in home.specs], machine), home.specs, profile)


def _planned(home: Home, spec: JobSpec, facts: VideoFacts) -> list[PlannedWork]:
    drafts = plan("", spec, facts, home.specs, NO_PROBE)
    return [PlannedWork.of(d.id, d.stage, d.spec, float(facts.duration)) for d in drafts]


def _film_cost(
    home: Home, model: CostModel, stages: Iterable[str], tasks: Sequence[PlannedWork], film: Footage
) -> FilmCost:
    model = model.for_size(film.pixels)
    seconds = {t.id: model.seconds(t.stage, t.media_seconds, film) for t in tasks}
    known = [stage for stage in stages if stage in model.stages]
    each = {stage: sum(seconds[t.id] for t in tasks if t.stage == stage) for stage in known}
    shares = {stage: home.slots if home.specs[stage].scope is Scope.CHUNK else 1 for stage in known}
    sizes = (model.stages[s].bytes_per_second for s in known if home.specs[s].reads_source)  # others refer to these
    return FilmCost(
        model.around(START_SECONDS + makespan(tasks, seconds, home.slots) if tasks else 0.0),
        {stage: model.around(each[stage] / shares[stage]) for stage in known},
        int(sum(sizes) * film.seconds),
        tuple(stage for stage in stages if stage not in model.stages),
    )


def _film(seconds: float, pixels: tuple[int, int], chunk: int) -> VideoFacts:
    end = max(1, round(seconds * 1000))
    keys = tuple(range(0, end, chunk * 1000))
    picture = VideoTrack(0, "", *pixels, base=MS, start=0, end=end, frames=0, keys=keys, rate=None)
    return VideoFacts("", 0, "", picture, (AudioTrack(1, "", 48000, 2, MS, 0, end),))
