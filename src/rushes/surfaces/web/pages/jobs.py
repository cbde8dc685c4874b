"""Jobs: a live table with filters in the URL; and one job with its chunks, times, reasons and history."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import JSONResponse, Response

from rushes.domain.errors import Refused
from rushes.domain.event import Event, EventType
from rushes.domain.job import FINAL, Job, JobCommand, JobState
from rushes.domain.keys import task_id
from rushes.domain.task import TaskState
from rushes.library import Library
from rushes.library.jobs import JobProgress, video_of
from rushes.library.videos import Video
from rushes.library.videos.stereo import film_of
from rushes.surfaces.api.documents.stereo_spot import upload_url
from rushes.surfaces.api.fleet import GLANCE
from rushes.surfaces.http.audit import note_target
from rushes.surfaces.http.deps import Id, LibraryDep, expected_of
from rushes.surfaces.http.live_jobs import look
from rushes.surfaces.http.schemas import of_video, seal, unseal
from rushes.surfaces.web.chunks import CELLS, SIGNS, rows, ticks
from rushes.surfaces.web.view import back, render
from rushes.surfaces.words import (
    TASK_WORDS,
    UNFINISHED,
    ActiveJobs,
    active_jobs,
    final_word,
    many,
    plural,
    recipe_name,
    seconds_between,
    stage_name,
    task_word,
)

router = APIRouter(include_in_schema=False)
ROWS = 50
LATELY = 10  # finished jobs below those in progress
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
        """Seconds in which it was worked on."""
        return self.seen.worked if self.seen else None

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
    found, more = _jobs(library, TABS[tab], unseal(request, cursor, f"tab {tab}"), recipe)
    rows = [row for row in _rows(request, library, found, busy) if state in ("", row.word)]
    lately = library.jobs.page(JobState.COMPLETED, limit=LATELY).rows if tab == "work" and not cursor else ()
    return render(
        request,
        "jobs.html",
        tab=tab,
        rows=rows,
        lately=lately,
        recipes=[(name, recipe_name(name)) for name in library.recipes()],
        more=seal(request, more, f"tab {tab}"),
        counts=library.jobs.counts(GLANCE),
        workers=busy.workers,
    )


@router.get("/jobs/open")
def count_open(library: LibraryDep) -> JSONResponse:
    """How many jobs are in progress, as every page counts them."""
    return JSONResponse(many(library.jobs.open_count()))


@router.post("/jobs/some")
def control_jobs(
    request: Request,
    library: LibraryDep,
    do: Annotated[Move, Form()],
    job: Annotated[list[str] | None, Form(max_length=ROWS)] = None,
) -> Response:
    """The same for all that were chosen; one that cannot be steered so is passed over."""
    note_target(request, f"{do} {' '.join(job or ())}")
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
    """Some jobs in these states, the latest to begin (or to end) first, and where the next ones begin."""
    found: list[Job] = []
    for _ in range(PAGES):
        page = library.jobs.page_of(states, cursor, ROWS - len(found))
        found, cursor = [*found, *(j for j in page.rows if recipe in ("", j.recipe))], page.cursor
        if not cursor or len(found) >= ROWS:
            break
    return found, cursor


def _rows(request: Request, library: Library, jobs: list[Job], busy: ActiveJobs) -> list[Row]:
    """The jobs as they are shown: as many questions however many there are, but for those somebody works on."""
    known = library.videos.get_many({video_of(job) for job in jobs} - {""})
    videos = {id: of_video(video) for id, video in known.items()}
    arriving = _awaiting_their_file(library, [job for job in jobs if not job.facts])
    return [_row(request, one, busy, videos.get(video_of(one)), one.id in arriving) for one in jobs]


def _row(request: Request, job: Job, busy: ActiveJobs, video: Video | None, arriving: bool) -> Row:
    word = busy.word(job)
    seen = look(request, job.id) if job.state in FINAL or job.id in busy.hosts else None
    return Row(job, word, video, seen, _where(job, word, busy, arriving))


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


EVENTS = 40
LINES = 30
Order = Literal["pause", "resume", "cancel", "retry", "priority"]


@dataclass(frozen=True, slots=True)
class Times:
    """An estimate beside what it came to, in seconds."""

    expected: tuple[float, float] | None
    worked: float
    waited: float  # between its first start and its end, while nothing of it ran
    remaining: tuple[float, float] | None
    over: bool

    @property
    def most(self) -> float:
        """Where both bars end."""
        left = self.remaining[1] if self.remaining and not self.over else 0.0
        return max(self.expected[1] if self.expected else 0.0, self.worked + left, 1.0)


@router.get("/jobs/{job_id}")
def show_job(
    request: Request,
    library: LibraryDep,
    job_id: Id,
    task: Annotated[str, Query(max_length=200)] = "",
    after: Annotated[str, Query(pattern=r"^[0-9]{0,15}$")] = "",
    step: Annotated[str, Query(max_length=40)] = "",
) -> Response:
    """Its page."""
    job = library.jobs.get(job_id)
    tasks, seen = library.jobs.tasks(job.id), look(request, job.id)
    video = library.videos.get_many([video_of(job)]).get(video_of(job)) if job.facts else None
    return render(
        request,
        "job.html",
        job=job,
        word=active_jobs(library.jobs.workers()).word(job),
        over=job.state in FINAL,
        video=of_video(video) if video else None,
        map=rows(tasks, seen),
        ticks=ticks(job),
        most_cells=CELLS,
        legend=[(word, SIGNS.get(word, "2" if word == "backing off" else "")) for word in TASK_WORDS],
        times=_times(library, job, seen),
        why=() if job.state in FINAL else library.jobs.why(job.id),
        chosen=_chosen(library, task) if task else None,
        events=_events(library, job, int(after) if after else None, step),
        steps=[(stage, stage_name(stage)) for stage in sorted({t.stage for t in tasks})],
        counts=job.counts,
        film=film_of(library.home, job),
        awaited=_awaited(request, library, job),
    )


def _awaited(request: Request, library: Library, job: Job) -> dict[str, Any] | None:
    """What the form that sends the film of a job needs to know; None if none is awaited."""
    if not (address := upload_url(request, library, job)):
        return None
    upload = library.uploads.of_job(job)
    return {
        "upload": upload,
        "address": address,
        "most": library.puts.most if upload and upload.put else 0,
        "eta": library.estimates.conversion_seconds_per_mb() if job.recipe == "3d" else 0,
    }


@router.post("/jobs/{job_id}")
def control_job(
    request: Request,
    library: LibraryDep,
    job_id: Id,
    do: Annotated[Order, Form()],
    stage: Annotated[str, Form(max_length=40)] = "",
    value: Annotated[int, Form(ge=-1000, le=1000)] = 0,
) -> Response:
    """Pause, resume, cancel, retry or reorder it."""
    note_target(request, f"{do} {job_id}")
    return back(request, _steer(library, job_id, do, stage, value), f"/jobs/{job_id}" if do == "retry" else "")


def _steer(library: Library, job: str, do: Order, stage: str, value: int) -> str:
    if do == "retry":
        return f"{plural(len(library.jobs.retry(job, stage)), 'task')} will be retried."
    library.jobs.command(job, JobCommand(do), value)
    return {
        "pause": "Paused. Running chunks finish first; nothing is lost.",
        "resume": "Resumed.",
        "cancel": "Cancelled. Finished results are kept; Retry continues the job.",
        "priority": f"Priority {value}. Higher priorities run first.",
    }[do]


def _times(library: Library, job: Job, seen: JobProgress) -> Times:
    over = job.state in FINAL
    elapsed = seconds_between(job.started_at, job.finished_at if over else datetime.now(UTC).isoformat())
    waited = max(0.0, (elapsed or 0.0) - seen.worked)
    return Times(expected_of(library, job), seen.worked, waited, seen.remaining, over)


def _chosen(library: Library, id: str) -> dict[str, Any]:
    """One task that somebody looks at."""
    task = library.jobs.task(id)
    lines = [str(e.data.get("line", "")) for e in library.jobs.log(id, 0, 500)][-LINES:]
    kept = list(task.failure.lines) if task.failure and not lines else lines
    took = seconds_between(task.started_at, task.finished_at)
    return {"task": task, "word": task_word(task), "lines": kept, "took": took}


def _events(library: Library, job: Job, after: int | None, step: str) -> list[dict[str, Any]]:
    """From a number on in order, or the latest ones, newest first."""
    begin = max(0, job.last_event - EVENTS) if after is None else after
    found = library.jobs.events(job.id, begin, EVENTS)
    shown = [_told(e) for e in (found if after is not None else reversed(found))]
    return [e for e in shown if step in ("", e["stage"])]


def _told(event: Event) -> dict[str, Any]:
    """An event in one line."""
    data = event.data
    stage, chunk = str(data.get("stage", "")), data.get("chunk")
    said = [str(data[name]) for name in ("kind", "message", "reason", "to") if data.get(name)]
    said += [final_word(data["state"])] if data.get("state") else []
    said += [f"events before {data['before']} are no longer kept"] if event.type is EventType.TRUNCATED else []
    if took := float(data.get("seconds") or 0):
        said.insert(0, f"in {took:.1f} s")
    return {
        "number": event.number,
        "at": event.at,
        "type": event.type.value.replace("_", " "),
        "stage": stage,
        "chunk": chunk,
        "task": event.task or "",
        "words": ", ".join(said),
        "worker": str(data.get("worker", "")),
    }
