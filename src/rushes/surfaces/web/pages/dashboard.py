"""The start page: totals, running jobs, problems, and how to add videos."""

from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from rushes.domain.job import Job, JobState
from rushes.files import copy_private, make_private
from rushes.library import Library
from rushes.library.jobs import video_of
from rushes.surfaces.api.fleet import GLANCE
from rushes.surfaces.http.deps import LibraryDep, expected_of
from rushes.surfaces.http.live_jobs import look
from rushes.surfaces.web.pages.library import index_counts, tiles
from rushes.surfaces.web.view import back, render
from rushes.surfaces.words import active_jobs

router = APIRouter(include_in_schema=False)
SHOWN = 3  # jobs whose stages are shown; looking at one reads its plan
WAITING = 50  # jobs that nobody has begun, counted up to that
SAMPLE = Path(__file__).parents[1] / "sample" / "rushes-sample.mp4"


@router.get("/")
def show_dashboard(request: Request, library: LibraryDep) -> Response:
    """The first page; before the first video it is a way in."""
    newest, _ = library.videos.page("", 6)
    running = library.jobs.page(JobState.RUNNING, limit=WAITING).rows
    waiting = library.jobs.page(JobState.CREATED, limit=WAITING).rows
    latest = tiles(library, newest)
    counts = library.jobs.counts(GLANCE)
    failures = counts[JobState.FAILED]
    return render(
        request,
        "dashboard.html",
        posters={tile.video.id: tile.poster for tile in latest},
        summary=index_counts(request),
        room=library.maintenance.free_bytes(),
        latest=latest,
        now=[_running(request, library, job) for job in running[:SHOWN]],
        open=sum(counts.values()) - failures,
        waiting=len(waiting),
        failures=failures,
        failed=library.jobs.page(JobState.FAILED, limit=5).rows,
        fleet=active_jobs(library.jobs.workers()),
    )


@router.post("/demo")
def try_sample(request: Request, library: LibraryDep) -> Response:
    """Take in the film that comes with the program; again it is the same video."""
    place = library.folder / "sample" / SAMPLE.name
    if not place.exists():
        make_private(place.parent)
        copy_private(SAMPLE, place)
    (added,) = library.add([place])
    if added.error:
        raise added.error
    return back(request, "The sample video was added.", to="/")


def _running(request: Request, library: Library, job: Job) -> dict[str, Any]:
    """A job at work, as the first page shows it."""
    seen, expected = look(request, job.id), expected_of(library, job)
    return {"job": job, "seen": seen, "video": video_of(job), "expected": expected}
