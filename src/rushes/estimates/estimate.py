"""How long a run would take here: by rates learnt on this machine, else measured on a few seconds of the footage."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rushes.blobs.local_disk import free_bytes
from rushes.domain.errors import NoRoom, RushesError
from rushes.domain.job import Job, JobState
from rushes.domain.task import TaskState
from rushes.estimates.film_cost import film_costs, total_bytes, total_seconds
from rushes.home import Home
from rushes.jobs.intake import IntakeResult, JobRequest, add
from rushes.jobs.originals import read_probe
from rushes.plan.grid import grid
from rushes.plan.recipes import stages_of

Work = Callable[[Sequence[IntakeResult]], None]  # does the jobs here and now


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
    return RushesError(failure.message, failure.hint) if failure else RushesError("it could not be read_probe")
