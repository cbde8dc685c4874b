"""Processing videos: run, add, watch, estimate."""

import signal
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import PurePath
from types import FrameType
from typing import Any, Self

import click

from rushes.domain.errors import RushesError
from rushes.domain.job import JobState
from rushes.library import Estimate, IntakeResult, JobRequest, Library, RunReport
from rushes.library.videos.files import WrittenFile
from rushes.library.work.progress import FilmsAdded, JobProgress, JobsProgress, ModelProgress, RunProgress
from rushes.surfaces.cli import errors
from rushes.surfaces.cli.command import command
from rushes.surfaces.cli.options import open_library, paths_argument, request_of, request_options, slots_option
from rushes.surfaces.cli.screen import DONE, NOW, Column
from rushes.surfaces.cli.session import Session
from rushes.surfaces.cli.views import summary
from rushes.surfaces.cli.views.model_download import DownloadView
from rushes.surfaces.cli.views.progress import watcher
from rushes.surfaces.cli.views.rows import next_step
from rushes.surfaces.cli.views.summary import Range, report_refused, report_skipped
from rushes.surfaces.words import plural, size, time_range, timecode


@command(
    "run",
    "rushes run holiday.mp4",
    "rushes run ~/Films --recipe subtitles --language en",
    "rushes run interview.mov --only transcript --no-beside",
)
@paths_argument
@request_options
@slots_option
@click.option(
    "--beside/--no-beside", default=None, help="Write subtitles and a sidecar file next to the video (default: yes)."
)
def run(session: Session, /, paths: Sequence[str], slots: int | None, beside: bool | None, **words: Any) -> int:
    """Process videos now: make them watchable, searchable and ready to cut.

    PATH is a file or a folder; originals are not copied, and no server is needed. Ctrl-C pauses and loses nothing
    (twice stops at once): the same command continues where it stopped, even after a crash. Finished work is not
    repeated.
    """
    library, wanted = open_library(session, create=True, places=paths), request_of(words)
    ran, estimated = run_shown(session, library, paths, wanted, slots)
    subtitles = library.settings.beside if beside is None else beside
    summary.report(session, library, ran, _beside(library, ran) if subtitles else [], estimated)
    return ran.exit_code


def _beside(library: Library, ran: RunReport) -> list[WrittenFile]:
    """Write the files next to every video; those of videos that were done before are not reported."""
    library.videos.write_beside(j for j in ran.jobs if j.id not in ran.before)
    return library.videos.write_beside(j for j in ran.jobs if j.id in ran.before)


def run_shown(
    session: Session, library: Library, paths: Sequence[str], request: JobRequest, slots: int | None
) -> tuple[RunReport, Range | None]:
    """Process the videos and show the progress; the report, and how long it was first said to take."""
    pulling, estimated = DownloadView(session), None
    watching = watcher(session, partial(_expected, library))
    try:
        for progress in library.running(paths, request, slots=slots, signals=True):
            match progress:
                case ModelProgress(model, done, total):
                    pulling.look(model, done, total)
                case FilmsAdded(results):
                    pulling.close()
                    watching.begin(sum(one.job is not None for one in results))
                case RunReport():
                    report = progress
                case _:
                    estimated = estimated or _whole(progress)
                    watching.show(progress)
    finally:
        pulling.close()
        watching.close()
    return report, estimated


def _whole(progress: RunProgress) -> Range | None:
    """The estimate for the whole run: what is left now and what it took so far."""
    if not isinstance(progress, JobsProgress) or not progress.remaining or not any(progress.remaining):
        return None
    elapsed = max(s.elapsed for s in progress.snapshots)
    return elapsed + progress.remaining[0], elapsed + progress.remaining[1]


def _expected(library: Library, snapshot: JobProgress) -> Range | None:
    with suppress(RushesError):  # a busy store: the work matters more than its estimate
        return library.jobs.expected(snapshot.job)
    return None


@command("add", "rushes add ~/Films", "rushes add urgent.mp4 --priority 10", "rushes worker --until-idle")
@paths_argument
@click.option("--upload", is_flag=True, help="Send the files to the home's bucket, for workers on other machines.")
@request_options
def add(session: Session, /, paths: Sequence[str], upload: bool, **words: Any) -> int:
    """Add videos as jobs and leave the work to a worker.

    Adding the same file with the same options again is the same job. In a fleet, a file of this machine waits for a
    worker that sees it: one on this machine, or on a machine with the same `site`.
    """
    library = open_library(session, create=True, places=paths)
    added = (library.upload if upload else library.add)(paths, request_of(words))
    for one in added:
        report_added(session, one)
    report_skipped(session, added)
    session.message("summary", jobs=sum(a.created for a in added), errors=sum(a.error is not None for a in added))
    if any(a.created for a in added):
        session.remark((next_step(library.jobs.workers()), DONE))
    return _code([one.error for one in added if not one.skipped])


@command("estimate", "rushes estimate ~/Films", "rushes estimate long.mkv --profile high_quality --json")
@paths_argument
@request_options
def estimate(session: Session, /, paths: Sequence[str], **words: Any) -> int:
    """Estimate how long a run would take on this machine.

    Uses earlier measurements; stages that never ran here are tried on a few seconds of the video first.
    """
    found = open_library(session, create=True, places=paths).estimates.of_run(paths, request_of(words), signals=True)
    session.rows("estimate", [_estimate_doc(e) for e in found])
    _estimate_table(session, found)
    return _code([e.error for e in found])


def report_added(session: Session, one: IntakeResult) -> None:
    """Print one path: its job, or the error."""
    if one.error:
        report_refused(session, one.path, one.error)
    elif one.job:
        session.message("job", path=one.path, job=one.job.id, created=one.created, state=one.job.state)
        finished = one.job.state is JobState.COMPLETED
        word = "added" if one.created else "already done" if finished else "already added"
        session.line(f"{one.job.id}  {one.job.name}", (f"  {word}", DONE))


def _code(errors: Sequence[RushesError | None]) -> int:
    """0 if all are well, 3 if some failed, 1 if all did; for a single path its own code."""
    bad = [e for e in errors if e]
    if len(errors) == len(bad) == 1:
        return bad[0].exit_code
    return 0 if not bad else 3 if len(bad) < len(errors) else 1


def _estimate_doc(e: Estimate) -> dict[str, object]:
    known = {"chunks": e.chunks, "duration": e.duration, "measured": e.measured}
    cost = {name: getattr(e.cost, name) for name in ("stages", "size", "unknown")}
    seconds = [round(each, 1) for each in e.cost.seconds]
    return {"path": e.path, "seconds": seconds, **known, **cost, "error": str(e.error) if e.error else None}


def _estimate_table(session: Session, found: Sequence[Estimate]) -> None:
    good = [e for e in found if not e.error]
    rows = [_estimate_row(PurePath(e.path).name, [e]) for e in good]
    rows += [_estimate_row("total", good)] if len(good) > 1 else []
    columns = [Column("video", wide=True), Column("length", right=True), Column(""), Column("takes"), Column("stores")]
    session.table(columns, rows)
    if good:
        measured = "measured just now" if any(e.measured for e in good) else "from earlier runs on this machine"
        session.remark((f"9 of 10 runs, {measured}", DONE))
    unknown = sorted({stage for e in good for stage in e.cost.unknown})
    if unknown:
        session.remark((f"not included: {', '.join(unknown)} (no measurements on this machine yet)", NOW))
    for e in found:
        if e.error:
            errors.show(session, errors.about(PurePath(e.path).name, str(e.error)), do=e.error.advice)


def _estimate_row(name: str, some: Sequence[Estimate]) -> list[str]:
    film = timecode(int(sum(e.duration for e in some) * 1e6))
    takes = time_range((sum(e.cost.seconds[0] for e in some), sum(e.cost.seconds[1] for e in some)))
    return [name, film, plural(sum(e.chunks for e in some), "chunk"), takes, size(sum(e.cost.size for e in some))]


@command(
    "watch",
    "rushes watch ~/Films",
    "rushes watch ~/Films --once && rushes worker --until-idle",
    "rushes watch s3://bucket/day1",
)
@click.argument("places", nargs=-1, metavar="[DIR|s3://BUCKET/PREFIX]...")
@request_options
@click.option("--once", is_flag=True, help="Add what is there now and stop.")
def watch(session: Session, /, places: Sequence[str], once: bool, **words: Any) -> int:
    """Add new videos in folders and buckets automatically.

    A file is added when its size and time are the same in two scans, so downloads in progress are left alone. A moved
    file is recognised by its content. The videos are processed by: rushes worker
    """
    library, wanted = open_library(session, create=True), request_of(words)
    added = []
    with _Stop() as stop:
        session.remark(("scanning twice" if once else "watching; Ctrl-C stops", DONE))
        for one in library.watch(places, wanted, once=once, pause=lambda s: session.out.heard and stop.wait(s)):
            if one.created or one.error:
                report_added(session, one)
                added.append(one)
    new = sum(one.created for one in added)
    session.message("summary", jobs=new, errors=sum(one.error is not None for one in added))
    session.remark((f"{plural(new, 'video')} added", DONE))
    return 128 + stop.number if stop.number else 3 if any(one.error for one in added) else 0


class _Stop:
    """Ctrl-C or SIGTERM ends the pause; a scan that has started is finished."""

    def __init__(self) -> None:
        self.number = 0
        self._over = threading.Event()

    def __enter__(self) -> Self:
        self._before = {s: signal.signal(s, self._stop) for s in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_why: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def wait(self, seconds: float) -> bool:
        """Wait; False if it is time to stop."""
        return not self._over.wait(seconds)

    def _stop(self, number: int, _frame: FrameType | None) -> None:
        self.number = number
        self._over.set()
