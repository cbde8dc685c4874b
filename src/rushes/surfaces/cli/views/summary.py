"""What a run came to: what was made and where, how long against real time, what failed, and one next command."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rushes.domain.errors import NotFound, TryAgain
from rushes.domain.job import FINAL, Job, JobState
from rushes.domain.span import Span, clock
from rushes.domain.task import Task, TaskState
from rushes.jobs.why import Reason
from rushes.library import IntakeResult, Library, RunReport
from rushes.library.beside import Beside
from rushes.surfaces.cli import errors
from rushes.surfaces.cli.screen import DONE, NOW
from rushes.surfaces.cli.session import Session
from rushes.surfaces.cli.text import between, lasted, many, nearby, times
from rushes.surfaces.cli.views.made_counts import Made, made_of
from rushes.surfaces.cli.views.video_line import facts_of

FEW = 5  # films (and failures) that are told one by one


@dataclass(frozen=True, slots=True)
class Notes:
    """What was seen while the work ran: the estimate of each job."""

    estimates: dict[str, tuple[float, float]] = field(default_factory=dict)


def tell_skipped(session: Session, added: Sequence[IntakeResult]) -> None:
    """Say what was passed over and why; it is no fault."""
    skipped = [one for one in added if one.skipped]
    if session.json:
        session.rows("skipped", [{"path": one.path, "reason": one.skipped} for one in skipped])
        return
    for one in skipped[:FEW]:
        session.remark((f"passed over in {nearby(one.path)}: {one.skipped}", DONE))
    if len(skipped) > FEW:
        session.remark((f"and {len(skipped) - FEW} more were passed over: --json names them", DONE))


def tell(session: Session, library: Library, ran: RunReport, written: Sequence[Beside], notes: Notes) -> None:
    """Say how a run ended, to a person or to a program."""
    tell_skipped(session, ran.skipped)
    for one in ran.refused:
        _refused(session, one.path, str(one.error), one.error.advice if one.error else "")
    for job in ran.jobs:
        if job.state is JobState.FAILED:
            _failures(session, job, [t for t in library.tasks(job.id) if t.state is TaskState.DEAD])
    for job in _cancelled(ran) if session.json else ():
        hint = f"Bring it back with: rushes jobs retry {job.id}"
        session.message("error", job=job.id, name=job.name, kind="JobCancelled", message=_stopped(job), hint=hint)
    if session.json:
        _line(session, library, ran, written, notes)
    else:
        _lines(session, library, ran, written, notes)


def _lines(session: Session, library: Library, ran: RunReport, written: Sequence[Beside], notes: Notes) -> None:
    if ran.signal:
        session.remark((f"paused: {_progress(ran.jobs)} done and kept; the same command goes on", NOW))
        return
    good = _good(ran)
    if good:
        _headline(session, ran, good, notes)
    if new := _new(ran):
        _all_made(session, library, new, written)
    for job in _cancelled(ran)[:FEW]:
        session.remark((f"{_stopped(job)}; bring it back with: rushes jobs retry {job.id}", NOW))
    for job in ran.paused[:FEW]:
        session.remark((f"{_stopped(job)}; go on with the same command, or: rushes jobs resume {job.id}", NOW))
    if ran.due_in is not None:
        session.remark((f"waiting: the next try is due in {lasted(ran.due_in)}; the same command goes on then", NOW))
        session.remark((f"why: rushes jobs why {ran.due_job}", DONE))
    if ran.lacks:
        _lacking(session, library, ran)
    elif good and ran.exit_code != TryAgain.exit_code:
        session.remark(f"next: {next_command(library, new or good)}")


def _good(ran: RunReport) -> list[Job]:
    return [j for j in ran.jobs if j.state is JobState.COMPLETED]


def _new(ran: RunReport) -> list[Job]:
    """What this run finished, and no earlier one."""
    return [j for j in _good(ran) if j.id in ran.before]


def _cancelled(ran: RunReport) -> list[Job]:
    return [j for j in ran.jobs if j.state is JobState.CANCELLED]


def _stopped(job: Job) -> str:
    """What somebody did to a job while it was worked on."""
    return f"{job.name}: {'cancelled' if job.state in FINAL else 'paused'}, {_progress([job])} done"


def _lacking(session: Session, library: Library, ran: RunReport) -> None:
    jobs = [j for j in ran.jobs if j.state not in FINAL]
    waiting = {b.stage for j in jobs for b in library.why(j.id) if b.reason is Reason.NO_MODEL}
    names = " ".join(ran.lacks)
    session.remark((f"waiting: {_progress(jobs)} done; the rest needs {names}, which cannot be fetched now", NOW))
    session.remark(f"fetch: rushes models pull {names}, then run the same command again")
    session.remark((f"or leave it out: --skip {','.join(sorted(waiting))}", DONE))


def _all_made(session: Session, library: Library, good: Sequence[Job], written: Sequence[Beside]) -> None:
    for job in good if len(good) <= FEW else ():
        _film(session, library, job, several=len(good) > 1)
    there = [file.path.name for file in written if not file.kept]
    more = f" and {len(there) - 2 * FEW} more" if len(there) > 2 * FEW else ""
    if there:
        session.remark(f"  beside it: {' '.join(there[: 2 * FEW])}{more}")
    for file in [file for file in written if file.kept][:FEW]:
        session.remark((f"  not written: {file.kept}", NOW))


def _headline(session: Session, ran: RunReport, good: Sequence[Job], notes: Notes) -> None:
    new = _new(ran)
    if not new:
        names = good[0].name if len(good) == 1 else many(len(good), "film")
        session.remark(f"{names}: finished already, nothing was done again")
        return
    old = len(good) - len(new)
    also = f"; {many(old, 'film was', 'films were')} finished already" if old else ""
    before, speed = _before(ran), _speed(ran)
    if speed is None:
        session.remark(f"done in {lasted(ran.seconds)}; {many(before, 'task was', 'tasks were')} done before{also}")
        return
    known = [notes.estimates[j.id] for j in new if j.id in notes.estimates]
    total = (sum(low for low, _ in known), sum(high for _, high in known))
    said = f"estimated {between(total)}" if known else "not estimated: the first of its kind here"
    session.remark(f"done in {lasted(ran.seconds)} ({said}), {times(speed)} real time{also}")


def _before(ran: RunReport) -> int:
    """Tasks of what was finished now that an earlier run had done."""
    return sum(ran.before[j.id] for j in _new(ran))


def _speed(ran: RunReport) -> float | None:
    """Film time finished per second; None for a run that went on, for it did not do all of it."""
    new = _new(ran)
    if not new or _before(ran):
        return None
    return float(sum(facts_of(j).get("duration_us", 0) for j in new)) / 1e6 / max(0.001, ran.seconds)


def _film(session: Session, library: Library, job: Job, *, several: bool) -> None:
    made = _made(library, job)
    if made is None:
        return
    listened = "transcribe" in json.loads(job.payload).get("stages", ())
    words = made.counts or ("nothing is said in it" if listened else "")
    if words:
        session.remark(f"  {job.name}: {words}" if several else f"  {words}")
    if made.proxy:
        session.remark((f"  watch it: {nearby(made.proxy)}", DONE))


def _made(library: Library, job: Job) -> Made | None:
    """What this job made of its film, not what others made of it before."""
    try:
        video = library.video(facts_of(job)["video"])
    except (KeyError, NotFound):  # not probed, or the index has not met it
        return None
    stages = json.loads(job.payload).get("stages", ())
    made = made_of(library, video, library.lines(video.id) if "transcribe" in stages else ())
    by = {"shots": "shots", "texts": "segments", "objects": "objects", "places": "places"}
    others: dict[str, Any] = {count: 0 for count, stage in by.items() if stage not in stages}
    return replace(made, proxy=made.proxy if "playlist" in stages else "", **others)


def next_command(library: Library, jobs: Sequence[Job]) -> str:
    """The one command to try next: a search for a word that is there, else a look at the film."""
    for job in jobs[:FEW]:
        try:
            lines = library.lines(str(facts_of(job).get("video", "")))
        except NotFound:
            continue
        words = re.findall(r"[^\W\d_]{4,16}", " ".join(line.text for line in lines[:20]))
        if words:
            return f"rushes search {max(words, key=len).lower()}"
    return f"rushes show {facts_of(jobs[0]).get('video', jobs[0].id)}"


def _failures(session: Session, job: Job, dead: Sequence[Task]) -> None:
    groups: dict[tuple[str, str], list[Task]] = {}
    for task in dead:
        groups.setdefault((task.stage, task.failure.kind if task.failure else ""), []).append(task)
    for (stage, kind), tasks in list(groups.items())[:FEW]:
        last = tasks[-1].failure
        message, hint = (last.message, last.hint) if last else ("", "")
        if session.json:
            chunks = [t.chunk for t in tasks if t.chunk is not None]
            session.message(
                "error", job=job.id, name=job.name, stage=stage, chunks=chunks, kind=kind, message=message, hint=hint
            )
            continue
        if stage == "probe":  # the file itself is refused
            errors.show(session.err, errors.about(job.name, message), means="nothing could be made of it", do=hint)
            continue
        means = "what needs it is missing; all else is kept"
        errors.show(session.err, f"{job.name}: {stage}{_where(tasks)}", f"{kind}: {message}", means, hint)


def _where(tasks: Sequence[Task]) -> str:
    first = tasks[0]
    if first.chunk is None:
        return ""
    if len(tasks) > 1:
        return f", {len(tasks)} chunks"
    span = _span(first)
    time = f" ({clock(span.start_us, 0)}-{clock(span.end_us, 0)})" if span else ""
    return f", chunk {first.chunk}{time}"


def _span(task: Task) -> Span | None:
    doc = json.loads(task.spec).get("span")
    return Span.from_json(doc) if doc else None


def _refused(session: Session, path: str, message: str, hint: str) -> None:
    if session.json:
        session.message("error", path=path, message=message, hint=hint)
    else:
        errors.show(session.err, message, do=hint)


def _line(session: Session, library: Library, ran: RunReport, written: Sequence[Beside], notes: Notes) -> None:
    speed = _speed(ran)
    session.message(
        "summary",
        jobs=[_job(library, ran, j) for j in ran.jobs],
        jobs_done=len(_good(ran)),
        errors=len(ran.refused) + sum(j.state in (JobState.FAILED, JobState.CANCELLED) for j in ran.jobs),
        worked=ran.worked,
        seconds_elapsed=round(ran.seconds, 2),
        seconds_estimated=[notes.estimates[j.id] for j in ran.jobs if j.id in notes.estimates],
        speed_x=None if speed is None else round(speed, 2),
        beside=[file.path for file in written if not file.kept],
        kept=[file for file in written if file.kept],
        due_in=ran.due_in,
        lacks=ran.lacks,
        code=ran.exit_code,
        resumable=bool(ran.signal) or any(j.state not in FINAL for j in ran.jobs),
    )


def _job(library: Library, ran: RunReport, job: Job) -> dict[str, object]:
    told = {"id": job.id, "name": job.name, "state": job.state, "paused": job.paused}
    return told | {"worked": job.id in ran.before, "made": _made(library, job)}


def _progress(jobs: Sequence[Job]) -> str:
    return f"{sum(j.counts.done for j in jobs)} of {sum(j.counts.total for j in jobs)} tasks are"
