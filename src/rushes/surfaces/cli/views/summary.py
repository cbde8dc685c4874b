"""The summary of a run: what was made and where, how long it took, what failed, and one next command."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rushes.domain.errors import NotFound, RushesError, TryAgain
from rushes.domain.grouping import grouped
from rushes.domain.job import FINAL, Job, JobState
from rushes.domain.span import clock
from rushes.domain.task import Task, TaskState
from rushes.library import IntakeResult, Library, RunReport
from rushes.library.jobs import Reason
from rushes.library.videos.files import WrittenFile
from rushes.surfaces.cli import errors
from rushes.surfaces.cli.screen import DONE, NOW, relative_path
from rushes.surfaces.cli.session import Session
from rushes.surfaces.cli.views.rows import MadeCounts, count_made, facts_of
from rushes.surfaces.words import duration, plural, speed_factor, time_range

FEW = 5  # videos (and failures) that get a line each


Range = tuple[float, float]
Written = Sequence[WrittenFile]  # files next to the videos


def report_skipped(session: Session, added: Sequence[IntakeResult]) -> None:
    """Print which files were skipped and why; that is no error."""
    skipped = [one for one in added if one.skipped]
    session.rows("skipped", [{"path": one.path, "reason": one.skipped} for one in skipped])
    for one in skipped[:FEW]:
        session.remark((f"skipped {relative_path(one.path)}: {one.skipped}", DONE))
    if len(skipped) > FEW:
        session.remark((f"and {len(skipped) - FEW} more were skipped: --json lists them", DONE))


def report(
    session: Session, library: Library, ran: RunReport, written: Sequence[WrittenFile], estimated: Range | None
) -> None:
    """Print how a run ended, for people or for programs."""
    report_skipped(session, ran.skipped)
    for one in ran.refused:
        report_refused(session, one.path, one.error)
    for job in ran.jobs:
        if job.state is JobState.FAILED:
            _failures(session, job, library.jobs.tasks(job.id, TaskState.DEAD))
    for job in _cancelled(ran):
        hint = f"Undo with: rushes jobs retry {job.id}"
        session.message("error", job=job.id, name=job.name, kind="JobCancelled", message=_stopped(job), hint=hint)
    if session.json:
        _line(session, library, ran, written, estimated)
    else:
        _lines(session, library, ran, written, estimated)


def _lines(
    session: Session, library: Library, ran: RunReport, written: Sequence[WrittenFile], estimated: Range | None
) -> None:
    if ran.signal:
        session.remark((f"paused: {_progress(ran.jobs)} done and kept. Run the same command to continue", NOW))
        return
    good = _good(ran)
    if good:
        _headline(session, ran, good, estimated)
    if new := _new(ran):
        _all_made(session, library, new, written)
    for job in _cancelled(ran)[:FEW]:
        session.remark((f"{_stopped(job)}. Undo with: rushes jobs retry {job.id}", NOW))
    for job in ran.paused[:FEW]:
        session.remark((f"{_stopped(job)}. Continue with the same command, or: rushes jobs resume {job.id}", NOW))
    if ran.due_in is not None:
        session.remark((f"waiting: the next attempt is in {duration(ran.due_in)}. Run the same command then", NOW))
        session.remark((f"see why: rushes jobs why {ran.due_job}", DONE))
    if ran.lacks:
        _lacking(session, library, ran)
    elif good and ran.exit_code != TryAgain.exit_code:
        session.remark(f"next: {next_command(library, new or good)}")


def _good(ran: RunReport) -> list[Job]:
    return [j for j in ran.jobs if j.state is JobState.COMPLETED]


def _new(ran: RunReport) -> list[Job]:
    """The jobs that this run finished."""
    return [j for j in _good(ran) if j.id in ran.before]


def _cancelled(ran: RunReport) -> list[Job]:
    return [j for j in ran.jobs if j.state is JobState.CANCELLED]


def _stopped(job: Job) -> str:
    """A job that someone paused or cancelled during the run."""
    return f"{job.name}: {'cancelled' if job.state in FINAL else 'paused'}, {_progress([job])} done"


def _lacking(session: Session, library: Library, ran: RunReport) -> None:
    jobs = [j for j in ran.jobs if j.state not in FINAL]
    waiting = {b.stage for j in jobs for b in library.jobs.why(j.id) if b.reason is Reason.NO_MODEL}
    names = " ".join(ran.lacks)
    session.remark((f"waiting: {_progress(jobs)} done; the rest needs {names}, which could not be downloaded", NOW))
    session.remark(f"download with: rushes models pull {names}, then run the same command again")
    session.remark((f"or leave these stages out: --skip {','.join(sorted(waiting))}", DONE))


def _all_made(session: Session, library: Library, good: Sequence[Job], written: Written) -> None:
    for job in good if len(good) <= FEW else ():
        _report_video(session, library, job, several=len(good) > 1)
    names = [file.path.name for file in written if not file.kept]
    more = f" and {len(names) - 2 * FEW} more" if len(names) > 2 * FEW else ""
    if names:
        session.remark(f"  written next to it: {' '.join(names[: 2 * FEW])}{more}")
    for file in [file for file in written if file.kept][:FEW]:
        session.remark((f"  not written: {file.kept}", NOW))


def _headline(session: Session, ran: RunReport, good: Sequence[Job], estimated: Range | None) -> None:
    new = _new(ran)
    if not new:
        names = good[0].name if len(good) == 1 else plural(len(good), "video")
        session.remark(f"{names}: already done, nothing to do")
        return
    old = len(good) - len(new)
    also = f"; {plural(old, 'video was', 'videos were')} already done" if old else ""
    before, speed = _before(ran), _speed(ran)
    if speed is None:
        done = f"{plural(before, 'task was', 'tasks were')} already done{also}"
        session.remark(f"done in {duration(ran.seconds)}; {done}")
        return
    estimate = f"estimated {time_range(estimated)}" if estimated else "no estimate: too short"
    session.remark(f"done in {duration(ran.seconds)} ({estimate}), {speed_factor(speed)} real time{also}")


def _before(ran: RunReport) -> int:
    """Tasks of the finished jobs that an earlier run had done."""
    return sum(ran.before[j.id] for j in _new(ran))


def _speed(ran: RunReport) -> float | None:
    """Video time finished per second; None if an earlier run had done a part."""
    new = _new(ran)
    if not new or _before(ran):
        return None
    return float(sum(facts_of(j).get("duration_us", 0) for j in new)) / 1e6 / max(0.001, ran.seconds)


def _report_video(session: Session, library: Library, job: Job, *, several: bool) -> None:
    made = _made(library, job)
    if made is None:
        return
    transcribed = "transcribe" in json.loads(job.payload).get("stages", ())
    words = made.counts or ("no speech was found" if transcribed else "")
    if words:
        session.remark(f"  {job.name}: {words}" if several else f"  {words}")
    if made.proxy:
        session.remark((f"  proxy: {relative_path(made.proxy)}", DONE))


def _made(library: Library, job: Job) -> MadeCounts | None:
    """What this job made, not what others made of the video before."""
    try:
        video = library.videos.get(facts_of(job)["video"])
    except (KeyError, NotFound):  # not probed, or not in the index yet
        return None
    stages = json.loads(job.payload).get("stages", ())
    made = count_made(library, video, library.videos.lines(video.id) if "transcribe" in stages else ())
    by = {"shots": "shots", "texts": "segments", "objects": "objects", "places": "places"}
    others: dict[str, Any] = {count: 0 for count, stage in by.items() if stage not in stages}
    return replace(made, proxy=made.proxy if "playlist" in stages else "", **others)


def next_command(library: Library, jobs: Sequence[Job]) -> str:
    """The one command to try next: a search for a word that occurs, else `show`."""
    for job in jobs[:FEW]:
        lines = library.videos.lines(str(facts_of(job).get("video", "")))
        words = re.findall(r"[^\W\d_]{4,16}", " ".join(line.text for line in lines[:20]))
        if words:
            return f"rushes search {max(words, key=len).lower()}"
    return f"rushes show {facts_of(jobs[0]).get('video', jobs[0].id)}"


def _failures(session: Session, job: Job, dead: Sequence[Task]) -> None:
    groups = grouped(dead, lambda task: (task.stage, task.failure.kind if task.failure else ""))
    for (stage, kind), tasks in list(groups.items())[:FEW]:
        last = tasks[-1].failure
        message, hint = (last.message, last.hint) if last else ("", "")
        chunks = [t.chunk for t in tasks if t.chunk is not None]
        about = {"job": job.id, "name": job.name, "stage": stage, "chunks": chunks, "kind": kind}
        session.message("error", **about, message=message, hint=hint)
        if stage == "probe":  # the file itself is refused
            errors.show(session, errors.about(job.name, message), means="the file could not be processed", do=hint)
            continue
        means = "stages that need it were not run; all other results are kept"
        errors.show(session, f"{job.name}: {stage}{_where(tasks)}", f"{kind}: {message}", means, hint)


def _where(tasks: Sequence[Task]) -> str:
    first = tasks[0]
    if first.chunk is None:
        return ""
    if len(tasks) > 1:
        return f", {len(tasks)} chunks"
    span = first.span
    time = f" ({clock(span.start_us, 0)}-{clock(span.end_us, 0)})" if span else ""
    return f", chunk {first.chunk}{time}"


def report_refused(session: Session, path: str, error: RushesError | None) -> None:
    """Print why a file was not taken in."""
    hint = error.advice if error else ""
    session.message("error", path=path, message=str(error), hint=hint)
    errors.show(session, str(error), do=hint)


def _line(
    session: Session, library: Library, ran: RunReport, written: Sequence[WrittenFile], estimated: Range | None
) -> None:
    speed = _speed(ran)
    session.message(
        "summary",
        jobs=[_job(library, ran, j) for j in ran.jobs],
        jobs_done=len(_good(ran)),
        errors=len(ran.refused) + sum(j.state in (JobState.FAILED, JobState.CANCELLED) for j in ran.jobs),
        worked=ran.worked,
        seconds_elapsed=round(ran.seconds, 2),
        seconds_estimated=estimated,
        speed_x=None if speed is None else round(speed, 2),
        beside=[file.path for file in written if not file.kept],
        kept=[file for file in written if file.kept],
        due_in=ran.due_in,
        lacks=ran.lacks,
        code=ran.exit_code,
        resumable=bool(ran.signal) or any(j.state not in FINAL for j in ran.jobs),
    )


def _job(library: Library, ran: RunReport, job: Job) -> dict[str, object]:
    doc = {"id": job.id, "name": job.name, "state": job.state, "paused": job.paused}
    return doc | {"worked": job.id in ran.before, "made": _made(library, job)}


def _progress(jobs: Sequence[Job]) -> str:
    return f"{sum(j.counts.done for j in jobs)} of {sum(j.counts.total for j in jobs)} tasks are"
