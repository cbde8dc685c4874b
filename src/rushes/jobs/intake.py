"""Intake: paths become requests, requests become jobs; one bad path never stops the rest."""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from rushes.domain.errors import Refused, RushesError
from rushes.domain.job import FINAL, TRIAL, Job, JobCommand, JobState
from rushes.domain.keys import JSON, digest
from rushes.domain.task import TaskState
from rushes.domain.text import clean_text
from rushes.domain.video import Fingerprint
from rushes.domain.worker import site_of
from rushes.engines.models.languages import is_supported
from rushes.engines.models.speech import speech_model_of_size
from rushes.home import Home
from rushes.index.deleted_jobs import is_deleted
from rushes.jobs import control
from rushes.jobs.needed_models import missing_by_stage, model_question
from rushes.jobs.own_outputs import own_output_reason
from rushes.jobs.submit import request_id_of, submit
from rushes.ledger.pages import all_tasks
from rushes.model_settings import PICTURES, STUB, inference_of
from rushes.plan.options import StageOptions, check_options, merge_options, parse_options
from rushes.plan.planner import JobSpec
from rushes.plan.recipes import stages_of
from rushes.sources.folder import below
from rushes.sources.port import FoundFile, SkippedFile
from rushes.sources.roots import bounded
from rushes.sources.watch import find

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
    again: int = 0  # a take number: recomputes although the results are there
    trial: bool = False  # only a few seconds from the middle, to learn how fast this machine is
    options: StageOptions = field(default_factory=dict)
    stage_options: StageOptions = field(default_factory=dict)  # as people wrote them, not checked yet


@dataclass(frozen=True, slots=True)
class IntakeResult:
    """One path: its job, or the reason why there is none."""

    path: str  # absolute, or s3://bucket/key
    job: Job | None = None
    created: bool = False
    error: RushesError | None = None
    skipped: str = ""  # why it was passed over, which is no fault
    size: int = 0


def add(
    home: Home,
    places: Iterable[str],
    wanted: JobRequest,
    roots: Sequence[str] = (),
    most: int = 0,
    refusal: RushesError | None = None,
) -> Iterator[IntakeResult]:
    """Submit everything found at these places, only below these roots (none: anywhere), and no more files than that.

    With a `refusal`, that is the answer for files that only machines of this site see.

    Raises:
        Refused: the request is invalid.
    """
    named = {place if "://" in place else os.path.realpath(place): place for place in places}
    return take_in(home, bounded(find(map(home.source, named.values())), roots, most), wanted, named, refusal)


def unseen_by_workers(home: Home) -> RushesError | None:
    """Why files of this machine would wait in vain: workers run, and none of them sees them. None if one may."""
    running = [w for w in home.ledger.workers() if w.takes_tasks and w.alive and not w.draining] if home.site else []
    if not running or any(site_of(lane) == home.site for w in running for lane in w.incarnation.lanes):
        return None
    hint = (
        "Choose: send the files to the bucket (rushes add --upload), start a worker on this machine (rushes worker), "
        "or set the same site on all machines that see these files under the same paths."
    )
    return Refused(f"no running worker can read the files of {home.site}", hint)


def take_in(
    home: Home,
    entries: Iterable[FoundFile | SkippedFile],
    wanted: JobRequest,
    named: Collection[str] = (),
    refusal: RushesError | None = None,
) -> Iterator[IntakeResult]:
    """Submit what was found; what we wrote ourselves, and what was deleted, only if it was named."""
    question = job_spec(home, Fingerprint("", 0, 0), wanted)
    for entry in entries:
        if isinstance(entry, SkippedFile):
            yield left_out(entry)
            continue
        if refusal and home.seen_by(below(entry.fingerprint, home.originals)).site:
            yield IntakeResult(entry.path, error=refusal)
            continue
        if entry.path not in named and (why := own_output_reason(home, entry)):
            yield IntakeResult(entry.path, skipped=why)
            continue
        try:
            yield _submit(home, entry, wanted, question, by_name=entry.path in named)
        except RushesError as e:
            yield IntakeResult(entry.path, error=e)


def missing_models(home: Home, wanted: JobRequest) -> tuple[str, ...]:
    """The models that a request needs and that are not on this machine."""
    stages = _stages(home, wanted)
    models = _models(home, stages, wanted, _options(home, wanted, stages))
    lacks = missing_by_stage(home, stages, wanted.profile or home.settings.profile, models)
    return tuple(dict.fromkeys(id for ids in lacks.values() for id in ids))


def wake(home: Home, job: Job) -> Job:
    """Asking for a job again means wanting it: a stopped one goes on, and what may work now is tried again."""
    if job.paused:
        job = control.command(home, job.id, JobCommand.RESUME)
    if job.state is JobState.CANCELLED:
        control.retry(home, job.id)
    if job.state is JobState.FAILED:
        control.retry(home, job.id, [t.id for t in all_tasks(home.ledger, job.id, TaskState.DEAD)])
    return home.ledger.job(job.id) if job.state in FINAL - {JobState.COMPLETED} else job


def job_spec(home: Home, source: Fingerprint, wanted: JobRequest) -> JobSpec:
    """What a job for this original asks.

    Raises:
        Refused: the request is invalid.
    """
    stages = _stages(home, wanted)
    seconds, size = _chunk(home, wanted)
    options = _options(home, wanted, stages)
    _check_language(wanted.language or str(options.get("transcribe", {}).get("language", "")))
    return JobSpec(
        owner=home.owner,
        source=home.seen_by(below(source, home.originals)),
        stages=stages,
        options=options,
        models=_models(home, stages, wanted, options),
        profile=wanted.profile or home.settings.profile,
        chunk_seconds=seconds,
        chunk_bytes=size,
        take=wanted.again,
        stub=_stub(home, stages),
        trial=wanted.trial,
    )


def _submit(home: Home, found: FoundFile, wanted: JobRequest, question: JobSpec, *, by_name: bool) -> IntakeResult:
    """What was deleted stays so, until somebody names it: then it is a new request."""
    recipe = TRIAL if wanted.trial else wanted.recipe or home.settings.recipe
    spec = replace(question, source=home.seen_by(below(found.fingerprint, home.originals)))
    request = request_id_of(spec, home.specs)
    while True:
        done = submit(home, spec, request, found.name, recipe, wanted.priority)
        if done.created or not is_deleted(home.records, done.job):
            return IntakeResult(found.path, done.job, done.created, size=found.size)
        if not by_name:
            return IntakeResult(found.path, skipped="it was deleted: name it to add it again")
        request = digest(["after", request])


def _stages(home: Home, wanted: JobRequest) -> tuple[str, ...]:
    if PICTURES in wanted.only and PICTURES not in home.offered_specs:
        raise Refused("pictures needs a model of your own", "Set pictures_model: see docs/guides/search.md.")
    return stages_of(wanted.recipe or home.settings.recipe, home.offered_specs, wanted.only, wanted.skip)


def _stub(home: Home, stages: tuple[str, ...]) -> tuple[str, ...]:
    """The stages that the stub plays, and those that build on them."""
    found: list[str] = []
    made_up: set[str] = set()  # needs that they meet
    for stage, spec in ((stage, home.specs[stage]) for stage in stages):
        asks_stub = spec.asks_engine and inference_of(home.settings, stage)[0] == STUB
        if asks_stub or made_up.intersection(spec.needs):
            found.append(stage)
            outputs = (asks_stub and spec.infers) or spec.outputs
            made_up |= {stage, *(f"{stage}.{output}" for output in outputs)}
    return tuple(found)


def _models(home: Home, stages: tuple[str, ...], wanted: JobRequest, options: StageOptions) -> dict[str, str]:
    profile = wanted.profile or home.settings.profile
    capabilities = sorted({capability for stage in stages for capability in home.specs[stage].models})
    size = str(options.get("transcribe", {}).get("model_name", ""))
    engine = str(options.get("read_text", {}).get("engine", ""))
    named = {"text": engine, "speech": speech_model_of_size(size, home.models)}
    return {c: named.get(c) or model_question(home, c, profile) for c in capabilities}


def _options(home: Home, wanted: JobRequest, stages: tuple[str, ...]) -> dict[str, dict[str, JSON]]:
    asked = merge_options(parse_options(home.settings.options.split()), wanted.stage_options)
    options = merge_options(wanted.options, check_options(asked, home.specs))
    options.setdefault("probe", {}).update(max_pixels=home.settings.max_pixels, max_hours=home.settings.max_hours)
    for stage in stages:
        if "profile" in home.specs[stage].options:
            options.setdefault(stage, {}).setdefault("profile", wanted.profile or home.settings.profile)
    if wanted.language:
        options.setdefault("transcribe", {})["language"] = wanted.language
    return options


def _chunk(home: Home, wanted: JobRequest) -> tuple[int, int]:
    if wanted.chunk == "large":
        return LARGE
    if wanted.chunk and not re.fullmatch(r"0*[1-9][0-9]{0,5}", wanted.chunk):
        raise Refused(f"invalid chunk {wanted.chunk[:20]!r}: use seconds or 'large'", "For example: --chunk 30")
    return (int(wanted.chunk) if wanted.chunk else home.settings.chunk_seconds), 0


def _check_language(tag: str) -> None:
    if tag and not is_supported(tag):
        some = "en, de, fr, es, it, pt, nl, pl, ru, ar, hi, zh, ja, ko"
        hint = f"Use a code such as {some}, or leave it out to detect the language."
        raise Refused(f"unsupported language {tag!r}", hint)


def left_out(entry: SkippedFile) -> IntakeResult:
    """The result of a path that is not taken in."""
    if not entry.fault:
        return IntakeResult(entry.path, skipped=entry.reason)
    no = Refused(f"{clean_text(entry.path)}: {entry.reason}", "Give files or folders with videos.")
    return IntakeResult(entry.path, error=entry.cause or no)
