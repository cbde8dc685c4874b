"""Taking in: paths become questions, questions become jobs; one bad path never stops the rest."""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from rushes.domain.errors import Refused, RushesError
from rushes.domain.job import FINAL, Job, JobCommand, JobState
from rushes.domain.keys import JSON, digest
from rushes.domain.task import TaskState
from rushes.domain.video import Fingerprint
from rushes.engines.models.languages import is_spoken
from rushes.home import Home
from rushes.index.deleted_jobs import is_gone
from rushes.jobs.models import missing, question
from rushes.jobs.own_outputs import ours
from rushes.jobs.submit import display_name, request_of, submit
from rushes.ledger.pages import all_tasks
from rushes.plan.planner import JobSpec
from rushes.plan.recipes import stages_of
from rushes.sources.folder import below
from rushes.sources.port import FoundFile, LeftOut
from rushes.sources.watch import find

TRIAL = "trial"  # the recipe of what an estimate tries out
LARGE = (300, 50 * 2**20)  # chunk=large: five minutes, or 50 MB


@dataclass(frozen=True, slots=True)
class JobRequest:
    """What a person wants of some paths."""

    recipe: str = ""
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    profile: str = ""
    chunk: str = ""  # seconds, or "large"
    language: str = ""
    priority: int = 0
    again: int = 0  # a take number: asks anew although the results are there
    trial: bool = False  # only a few seconds from the middle, to learn how fast this machine is
    options: Mapping[str, Mapping[str, JSON]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class IntakeResult:
    """One path: its job, or the reason why there is none."""

    path: str  # absolute, or s3://bucket/key
    job: Job | None = None
    created: bool = False
    error: RushesError | None = None
    skipped: str = ""  # why it was passed over, which is no fault
    size: int = 0


def add(home: Home, places: Iterable[str], wish: JobRequest) -> Iterator[IntakeResult]:
    """Submit everything found at these places.

    Raises:
        Refused: the wish itself cannot be had.
    """
    named = {place if "://" in place else os.path.realpath(place): place for place in places}
    return take_in(home, find(map(home.source, named.values())), wish, named)


def take_in(
    home: Home, entries: Iterable[FoundFile | LeftOut], wish: JobRequest, named: Collection[str] = ()
) -> Iterator[IntakeResult]:
    """Submit what was found; what we wrote ourselves, and what was deleted, only if it was named."""
    stages = stages_of(wish.recipe or home.settings.recipe, home.cards, wish.only, wish.skip)
    models = _models(home, stages, wish)
    _check_language(wish.language)
    for entry in entries:
        if isinstance(entry, LeftOut):
            yield _left_out(entry)
            continue
        if entry.path not in named and (why := ours(home, entry)):
            yield IntakeResult(entry.path, skipped=why)
            continue
        try:
            yield _submit(home, entry, wish, stages, models, by_name=entry.path in named)
        except RushesError as e:
            yield IntakeResult(entry.path, error=e)


def missing_models(home: Home, wish: JobRequest) -> tuple[str, ...]:
    """The models that a wish needs and that are not on this machine."""
    stages = stages_of(wish.recipe or home.settings.recipe, home.cards, wish.only, wish.skip)
    lacks = missing(home, stages, wish.profile or home.settings.profile)
    return tuple(dict.fromkeys(id for ids in lacks.values() for id in ids))


def wake(home: Home, job: Job) -> Job:
    """Asking for a job again means wanting it: a stopped one goes on, and what may work now is tried again."""
    if job.paused:
        job = home.ledger.control(job.id, JobCommand.RESUME) or job
    if job.state is JobState.CANCELLED:
        home.ledger.revive(job.id)
    if job.state is JobState.FAILED:
        dead = [t.id for t in all_tasks(home.ledger, job.id, TaskState.DEAD)]
        home.ledger.revive(job.id, dead)
    return home.ledger.job(job.id) if job.state in FINAL - {JobState.COMPLETED} else job


def asked_of(home: Home, source: Fingerprint, wish: JobRequest) -> JobSpec:
    """What a job for this original asks.

    Raises:
        Refused: the wish itself cannot be had.
    """
    stages = stages_of(wish.recipe or home.settings.recipe, home.cards, wish.only, wish.skip)
    _check_language(wish.language)
    return _asked(home, source, wish, stages, _models(home, stages, wish))


def _asked(
    home: Home, source: Fingerprint, wish: JobRequest, stages: tuple[str, ...], models: Mapping[str, str]
) -> JobSpec:
    seconds, size = _chunk(home, wish)
    return JobSpec(
        owner=home.settings.owner,
        source=below(source, home.originals),
        stages=stages,
        options=_options(home, wish, stages),
        models=models,
        profile=wish.profile or home.settings.profile,
        chunk_seconds=seconds,
        chunk_bytes=size,
        take=wish.again,
        trial=wish.trial,
    )


def _submit(
    home: Home, found: FoundFile, wish: JobRequest, stages: tuple[str, ...], models: Mapping[str, str], *, by_name: bool
) -> IntakeResult:
    """What was deleted stays so, until somebody names it: then it is asked for anew."""
    recipe = TRIAL if wish.trial else wish.recipe or home.settings.recipe
    asked, name = _asked(home, found.fingerprint, wish, stages, models), display_name(found.name)
    request = request_of(asked, home.cards)
    while True:
        done = submit(home.ledger, home.transport, home.cards, asked, name, recipe, wish.priority, (), request)
        if done.created or not is_gone(home.records, done.job):
            return IntakeResult(found.path, done.job, done.created, size=found.size)
        if not by_name:
            return IntakeResult(found.path, skipped="it was deleted: name it to take it in")
        request = digest(["after", request])


def _models(home: Home, stages: tuple[str, ...], wish: JobRequest) -> dict[str, str]:
    profile = wish.profile or home.settings.profile
    wanted = sorted({capability for stage in stages for capability in home.cards[stage].models})
    return {capability: question(home, capability, profile) for capability in wanted}


def _options(home: Home, wish: JobRequest, stages: tuple[str, ...]) -> dict[str, dict[str, JSON]]:
    options = {stage: dict(values) for stage, values in wish.options.items()}
    options.setdefault("probe", {}).update(max_pixels=home.settings.max_pixels, max_hours=home.settings.max_hours)
    for stage in stages:
        if "profile" in home.cards[stage].options:
            options.setdefault(stage, {}).setdefault("profile", wish.profile or home.settings.profile)
    if wish.language:
        options.setdefault("transcribe", {})["language"] = wish.language
    return options


def _chunk(home: Home, wish: JobRequest) -> tuple[int, int]:
    if wish.chunk == "large":
        return LARGE
    return (int(wish.chunk) if wish.chunk else home.settings.chunk_seconds), 0


def _check_language(tag: str) -> None:
    if tag and not is_spoken(tag):
        some = "en, de, fr, es, it, pt, nl, pl, ru, ar, hi, zh, ja, ko"
        raise Refused(f"there is no language {tag!r} that can be heard", f"For example: {some}; none: it is found out.")


def _left_out(entry: LeftOut) -> IntakeResult:
    if not entry.fault:
        return IntakeResult(entry.path, skipped=entry.reason)
    no = Refused(f"{display_name(entry.path)}: {entry.reason}", "Name files or folders with footage.")
    return IntakeResult(entry.path, error=entry.cause or no)
