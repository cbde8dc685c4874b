"""The first page: what there is, what is being worked on, what needs somebody, and a way in."""

import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import Response

from rushes.blobs.local_disk import free_bytes
from rushes.domain.errors import RushesError
from rushes.domain.job import Job, JobState
from rushes.home import Home
from rushes.jobs.progress import Snapshot, Watch
from rushes.library import Library
from rushes.library.desk import video_of
from rushes.surfaces.http.deps import ADesk, ALibrary
from rushes.surfaces.web.index_counts import figures
from rushes.surfaces.web.tiles import tiles
from rushes.surfaces.web.view import back, render

router = APIRouter(include_in_schema=False)
SHOWN = 3  # jobs whose stages are shown; looking at one reads its plan
WAITING = 50  # jobs that nobody has begun, counted up to that
SAMPLE = Path(__file__).parent / "sample" / "rushes-sample.mp4"


@dataclass(frozen=True, slots=True)
class Running:
    """A job at work, as the first page shows it."""

    job: Job
    seen: Snapshot
    video: str
    expected: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Fleet:
    """Who works."""

    workers: int
    slots: int
    busy: int


@router.get("/")
def show_dashboard(request: Request, library: ALibrary) -> Response:
    """The first page; before the first video it is a way in."""
    home, owner = library.home, library.home.settings.owner
    newest, _ = library.videos("", 6)
    running = home.ledger.jobs(owner, JobState.RUNNING, limit=WAITING).rows
    waiting = home.ledger.jobs(owner, JobState.CREATED, limit=WAITING).rows
    latest = tiles(home, newest)
    return render(
        request,
        "dashboard.html",
        posters={tile.video.id: tile.poster for tile in latest},
        summary=figures(request, newest),
        room=free_bytes(home.blobs),
        latest=latest,
        now=[_running(library, job) for job in running[:SHOWN]],
        more=len(running) - SHOWN,
        waiting=len(waiting),
        failed=home.ledger.jobs(owner, JobState.FAILED, limit=5).rows,
        fleet=_fleet(home),
    )


@router.post("/demo")
def try_sample(request: Request, library: ALibrary, desk: ADesk) -> Response:
    """Take in the film that comes with the program; again it is the same video."""
    place = desk.home.folder / "sample" / SAMPLE.name
    if not place.exists():
        place.parent.mkdir(exist_ok=True)
        part = place.with_suffix(".part")
        shutil.copyfile(SAMPLE, part)
        part.rename(place)
    (added,) = library.add([place])
    if added.error:
        raise added.error
    return back(request, "The sample film is taken in.", to="/")


def _running(library: Library, job: Job) -> Running:
    seen = Watch(library.home.ledger, job.id, library.home.slots).look()
    expected = None
    with suppress(RushesError):  # what probe found was cleared away
        expected = library.expected(job) if job.facts else None
    return Running(job, seen, video_of(job), expected)


def _fleet(home: Home) -> Fleet:
    alive = [w for w in home.ledger.workers() if w.alive]
    return Fleet(len(alive), sum(w.incarnation.slots for w in alive), sum(len(w.held) for w in alive))
