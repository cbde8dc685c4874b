"""Processing videos now: run."""

from collections.abc import Callable, Sequence
from typing import Any

import click

from rushes.domain.errors import RushesError
from rushes.library import JobRequest, Library, RunReport
from rushes.library.videos.beside import WrittenFile
from rushes.library.work.progress import FilmsAdded, JobProgress, ModelProgress
from rushes.surfaces.cli.command import command
from rushes.surfaces.cli.options import open_library, paths_argument, request_of, request_options, slots_option
from rushes.surfaces.cli.session import Session
from rushes.surfaces.cli.views import summary
from rushes.surfaces.cli.views.model_download import DownloadView
from rushes.surfaces.cli.views.progress import watcher
from rushes.surfaces.cli.views.summary import Estimates


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
    library, wanted = open_library(session, create=True), request_of(words)
    estimates: Estimates = {}
    ran = run_shown(session, library, paths, wanted, slots, estimates)
    subtitles = library.settings.beside if beside is None else beside
    summary.report(session, library, ran, _beside(library, ran) if subtitles else [], estimates)
    return ran.exit_code


def _beside(library: Library, ran: RunReport) -> list[WrittenFile]:
    """Write the files next to every video; those of videos that were done before are not reported."""
    library.videos.write_beside(j for j in ran.jobs if j.id not in ran.before)
    return library.videos.write_beside(j for j in ran.jobs if j.id in ran.before)


def run_shown(
    session: Session, library: Library, paths: Sequence[str], request: JobRequest, slots: int | None, notes: Estimates
) -> RunReport:
    """Process the videos and show the progress."""
    pulling = DownloadView(session)
    watching = watcher(session, _expecting(library, notes))
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
                    watching.show(progress)
    finally:
        pulling.close()
        watching.close()
    return report


def _expecting(library: Library, estimates: Estimates) -> Callable[[JobProgress], tuple[float, float] | None]:
    def expect(snapshot: JobProgress) -> tuple[float, float] | None:
        try:
            found = library.expected(snapshot.job)
        except RushesError:  # a busy store: the work matters more than its estimate
            return None
        if found:
            low, high = found
            estimates[snapshot.job.id] = low + snapshot.elapsed, high + snapshot.elapsed
        return found

    return expect
