"""How long it will take here: from rates learnt on this machine, else measured on a few seconds of the footage."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rushes.blobs.local_disk import free_bytes
from rushes.domain.errors import NoRoom, RushesError
from rushes.domain.job import FINAL, Job, JobCommand, JobState
from rushes.domain.stage import Scope
from rushes.domain.task import TaskState
from rushes.domain.video import VideoFacts
from rushes.estimates.guess import Guess, guess
from rushes.estimates.rates import Rate, RateHistory
from rushes.home import Home
from rushes.jobs.intake import IntakeResult, JobRequest, add, wake
from rushes.jobs.originals import probed
from rushes.ledger.pages import all_tasks
from rushes.library.run import run, stopped
from rushes.plan.grid import grid
from rushes.plan.planner import JobSpec
from rushes.plan.recipes import stages_of

ENOUGH = 3  # rates of a stage that make calibration unnecessary
WORTH_A_TRIAL = 180.0  # seconds of film
WORTH_A_LOOK = 16 * 2**20  # bytes: shorter films are done before an estimate helps
KIND = "estimate"  # the record that keeps an estimate beside what it came to


@dataclass(frozen=True, slots=True)
class Estimate:
    """A range for one file: half of all runs end before p50, nine of ten before p90."""

    path: str
    p50: float
    p90: float
    chunks: int
    duration: float
    stages: dict[str, tuple[float, float]]
    measured: bool  # by calibration just now, not from earlier work
    error: RushesError | None = None
    size: int = 0  # bytes that will be kept of it
    unknown: tuple[str, ...] = ()  # stages that are not in it: nothing is known of them on this machine


def estimate(
    home: Home,
    places: Sequence[str],
    wanted: JobRequest,
    machine: str,
    longer_than: float = 0.0,
    *,
    signals: bool = False,
) -> list[Estimate]:
    """Probe each file (in a slot, like all work on media), then multiply rates with what there is to do.

    Footage that is not longer than that many seconds is not worth a trial.
    Raises:
        Interrupted, Terminated: a signal came.
        NoRoom: nothing can be tried out here now.
    """
    if not _has_room(home):
        raise NoRoom("the disk is nearly full: nothing can be tried out on it")
    found = add(home, places, replace(wanted, only=("probe",), skip=(), trial=True))
    looked_at = [one for one in found if not one.skipped]
    _work(home, looked_at, signals)
    stages = stages_of(wanted.recipe or home.settings.recipe, home.cards, wanted.only, wanted.skip)
    return [_estimate(home, one, wanted, stages, machine, longer_than, signals) for one in looked_at]


def expected(home: Home, job: Job, machine: str) -> tuple[float, float] | None:
    """The range for what is left of a planned job, kept with it from the first time it is asked in a run.

    None where nothing is learnt yet.
    """
    record = home.records.get(KIND, job.owner, job.id)
    if record:
        return float(record.doc["p50"]), float(record.doc["p90"])
    if not job.facts:
        return None
    guesses = guess_stages(home, probed(home, job), JobSpec.from_text(job.payload).stages, machine, least=1)
    known = {stage: g for stage, g in guesses.items() if g}
    if len(known) < len(guesses):
        return None
    p50, p90 = (round(seconds, 3) for seconds in together(home, _left(home, job, known)))
    home.records.put(KIND, job.owner, job.id, {"p50": p50, "p90": p90})
    return p50, p90


def resume(home: Home, job: Job) -> None:
    """A job goes on: its range is to be told anew, for what is left."""
    if job.state not in FINAL:
        home.records.delete(KIND, job.owner, job.id)


def _left(home: Home, job: Job, guesses: Mapping[str, Guess]) -> dict[str, Guess]:
    """Without what is done."""
    tasks = all_tasks(home.ledger, job.id)
    total, done = Counter(t.stage for t in tasks), Counter(t.stage for t in tasks if t.state is TaskState.DONE)
    return {stage: g.part(1 - done[stage] / total[stage] if total[stage] else 1.0) for stage, g in guesses.items()}


def learn(home: Home, added: Sequence[IntakeResult], wanted: JobRequest, machine: str, *, signals: bool) -> None:
    """Before a first long run: measure this machine on a few seconds of the film, so that there is an estimate.

    Raises:
        Interrupted, Terminated: a signal came.
    """
    stages = stages_of(wanted.recipe or home.settings.recipe, home.cards, wanted.only, wanted.skip)
    new = [a for a in added if a.created and a.size >= WORTH_A_LOOK and _has_room(home)]
    chunked = [s for s in stages if home.cards[s].scope is Scope.CHUNK]
    if new and not all(_rates(home, chunked, machine).values()):
        estimate(home, [new[0].path], wanted, machine, WORTH_A_TRIAL, signals=signals)


def _estimate(
    home: Home,
    one: IntakeResult,
    wanted: JobRequest,
    stages: Sequence[str],
    machine: str,
    longer_than: float,
    signals: bool,
) -> Estimate:
    if one.job is None or home.ledger.job(one.job.id).state is not JobState.COMPLETED:
        return Estimate(one.path, 0, 0, 0, 0, {}, measured=False, error=one.error or _why(home, one.job))
    facts = probed(home, one.job)
    guesses = guess_stages(home, facts, stages, machine)
    missing = [s for s, g in guesses.items() if g is None]
    if missing and facts.duration > longer_than:
        _calibrate(home, one.path, wanted, missing, signals)
        guesses = guess_stages(home, facts, stages, machine, least=1)
    known = {s: g for s, g in guesses.items() if g}
    low, high = together(home, known)
    return Estimate(
        one.path,
        low,
        high,
        len(grid(facts, home.settings.chunk_seconds)),
        float(facts.duration),
        {stage: (g.p50, g.p90) for stage, g in known.items()},
        measured=bool(missing),
        size=int(sum(g.size for stage, g in known.items() if home.cards[stage].reads_source)),  # others refer to these
        unknown=tuple(s for s in guesses if s not in known),
    )


def _why(home: Home, job: Job | None) -> RushesError:
    dead = home.ledger.tasks(job.id, TaskState.DEAD).rows if job else ()
    failure = dead[0].failure if dead else None
    return RushesError(failure.message, failure.hint) if failure else RushesError("it could not be probed")


def guess_stages(
    home: Home, facts: VideoFacts, stages: Sequence[str], machine: str, least: int = ENOUGH
) -> dict[str, Guess | None]:
    """What each stage will need of a film; None where nothing that was seen on this machine tells."""
    known = _rates(home, stages, machine)
    return {stage: _guess(home, facts, stage, known[stage], least) for stage in stages}


def _rates(home: Home, stages: Sequence[str], machine: str) -> dict[str, list[Rate]]:
    return RateHistory(home.ledger, home.records, home.blobs, home.settings.owner).of(stages, machine)


def _guess(home: Home, facts: VideoFacts, stage: str, rates: Sequence[Rate], least: int) -> Guess | None:
    card = home.cards.get(stage)
    if card is None:  # of a package that is not installed any more
        return None
    if card.scope is not Scope.CHUNK:  # work on whole videos is quick beside that on chunks
        return guess(rates, facts, by_pixels=False) or Guess()
    return guess(rates, facts, by_pixels=card.reads_source) if len(rates) >= least else None


def together(home: Home, guesses: Mapping[str, Guess]) -> tuple[float, float]:
    """Chunks run side by side; whole-video work is a queue of its own."""
    low = high = 0.0
    for stage, g in guesses.items():
        share = home.slots if home.cards[stage].scope is Scope.CHUNK else 1
        low, high = low + g.p50 / share, high + g.p90 / share
    return low, max(high, low * 1.1)


def _calibrate(home: Home, path: str, wanted: JobRequest, missing: Sequence[str], signals: bool) -> None:
    """Do the work on a few seconds from the middle of the film, as a job of its own: its rates are then known."""
    trial = replace(wanted, only=tuple(missing), skip=(), trial=True)
    _work(home, list(add(home, [path], trial)), signals)


def _has_room(home: Home) -> bool:
    room = free_bytes(home.blobs)
    return room is None or room >= home.settings.reserve_mb * 2**20


def _work(home: Home, added: Sequence[IntakeResult], signals: bool) -> None:
    """Do a trial now or never: what is not finished is not left for a worker."""
    jobs = [wake(home, one.job).id for one in added if one.job]
    try:
        ran = run(home, added, signals=signals)
    finally:
        for job in jobs:
            if home.ledger.job(job).state not in FINAL:
                home.ledger.control(job, JobCommand.CANCEL)
    if ran.signal:
        raise stopped(ran.signal)
