"""Jobs: a live table of what is in work and what is over, with filters in the address that stay after an action."""

from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import Response

from rushes.domain.errors import Refused
from rushes.domain.job import FINAL, Job, JobCommand, JobState
from rushes.domain.keys import task_id
from rushes.domain.task import TaskState
from rushes.library import Library
from rushes.library.jobs import JobProgress, video_of
from rushes.library.videos import Video
from rushes.surfaces.api.fleet import GLANCE
from rushes.surfaces.http.deps import LibraryDep
from rushes.surfaces.http.pagination import seal, unseal
from rushes.surfaces.http.schemas import of_video
from rushes.surfaces.web.chunks import seconds
from rushes.surfaces.web.live_jobs import look
from rushes.surfaces.web.pages import job
from rushes.surfaces.web.view import back, render
from rushes.surfaces.words import UNFINISHED, ActiveJobs, active_jobs, plural

router = APIRouter(include_in_schema=False)
ROWS = 50
PAGES = 5  # of the ledger that are read for one of ours when a filter leaves rows out
TABS = {"work": UNFINISHED, "finished": (JobState.COMPLETED, JobState.CANCELLED), "failed": (JobState.FAILED,)}
Tab = Literal["work", "finished", "failed"]
Move = Literal["pause", "resume", "cancel", "retry"]
Name = Annotated[str, Query(max_length=40)]
TOLD = {"pause": "paused", "resume": "resumed", "cancel": "cancelled; finished results are kept", "retry": "retried"}


@dataclass(frozen=True, slots=True)
class Row:
    """A job as the table shows it."""

    job: Job
    word: str
    video: Video | None
    seen: JobProgress | None
    where: str

    @property
    def took(self) -> float | None:
        """Seconds from its first attempt to its end."""
        return seconds(self.job.started_at, self.job.finished_at)

    @property
    def active(self) -> int:
        """Tasks at work now."""
        return sum(s.active for s in self.seen.stages) if self.seen else 0


@router.get("/jobs")
def show_jobs(
    request: Request,
    library: LibraryDep,
    tab: Tab = "work",
    recipe: Name = "",
    state: Name = "",
    cursor: Annotated[str, Query(max_length=1000)] = "",
) -> Response:
    """The table."""
    busy = active_jobs(library.jobs.workers())
    found, more = _jobs(library, TABS[tab], unseal(cursor, f"tab {tab}"), recipe)
    rows = [row for row in _rows(request, library, found, busy) if state in ("", row.word)]
    return render(
        request,
        "jobs.html",
        tab=tab,
        rows=rows,
        recipes=tuple(library.recipes()),
        more=seal(more, f"tab {tab}") if more else "",
        counts=library.jobs.counts(GLANCE),
        workers=sum(w.alive for w in library.jobs.workers()),
    )


@router.post("/jobs/some")
def steer_jobs(
    request: Request,
    library: LibraryDep,
    do: Annotated[Move, Form()],
    job: Annotated[list[str] | None, Form(max_length=ROWS)] = None,
) -> Response:
    """The same for all that were chosen; one that cannot be steered so is passed over."""
    done = sum(steer(library, one, do) for one in job or ())
    return back(request, f"{plural(done, 'job')} {TOLD[do]}." if done else "No selected job could be changed.")


def steer(library: Library, job: str, do: Move) -> bool:
    """One job; False if it is over."""
    try:
        if do == "retry":
            library.jobs.retry(job)
        else:
            library.jobs.command(job, JobCommand(do))
    except Refused:
        return False
    return True


def _jobs(library: Library, states: tuple[JobState, ...], cursor: str, recipe: str) -> tuple[list[Job], str]:
    """Some jobs in these states, one state after the other, and where the next ones begin."""
    name, _, inner = cursor.partition(":")
    at = states.index(JobState(name)) if name in set(states) else 0
    found: list[Job] = []
    for _ in range(PAGES):
        page = library.jobs.page(states[at], inner, ROWS - len(found))
        found += [j for j in page.rows if recipe in ("", j.recipe)]
        at, inner = (at, page.cursor) if page.cursor else (at + 1, "")
        if at == len(states):
            return found, ""
        if len(found) >= ROWS:
            break
    return found, f"{states[at]}:{inner}"


def _rows(request: Request, library: Library, jobs: list[Job], busy: ActiveJobs) -> list[Row]:
    """The jobs as they are shown: as many questions however many there are, but for those somebody works on."""
    videos = {id: of_video(v) for id, v in library.videos.get_many(_videos(jobs)).items()}
    arriving = _awaiting_their_file(library, [job for job in jobs if not job.facts])
    return [_row(request, one, busy, videos.get(video_of(one)), one.id in arriving) for one in jobs]


def _row(request: Request, job: Job, busy: ActiveJobs, video: Video | None, arriving: bool) -> Row:
    word = busy.word(job)
    seen = look(request, job.id) if job.state not in FINAL and job.id in busy.hosts else None
    return Row(job, word, video, seen, _where(job, word, busy, arriving))


def _videos(jobs: list[Job]) -> set[str]:
    return {id for job in jobs if (id := video_of(job))}


def _awaiting_their_file(library: Library, unopened: list[Job]) -> set[str]:
    ids = [task_id(job.id, "probe", None) for job in unopened]
    return {task.job for task in library.jobs.get_tasks(ids).values() if task.state is TaskState.WAITING}


def _where(job: Job, word: str, busy: ActiveJobs, arriving: bool) -> str:
    parts = [", ".join(busy.hosts.get(job.id, ()))]
    if word == "waiting" and arriving:
        parts.append("waiting for its file")
    elif word == "waiting":
        parts.append("waiting for a free worker" if busy.workers else "no worker is running")
    if job.counts.dead:
        parts.append(f"{job.counts.dead} failed")
    return "; ".join(filter(None, parts))


router.include_router(job.router)
