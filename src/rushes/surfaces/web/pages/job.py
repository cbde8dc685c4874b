"""One job: its steps and chunks, its estimate against what it took, why it waits, its history from any number."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import Response

from rushes.domain.errors import RushesError
from rushes.domain.event import Event
from rushes.domain.job import FINAL, Job, JobCommand
from rushes.domain.task import Task
from rushes.library import Library
from rushes.library.jobs import JobProgress, video_of
from rushes.surfaces.http.deps import Id, LibraryDep
from rushes.surfaces.http.schemas import of_video
from rushes.surfaces.web.chunks import CELLS, SIGNS, rows, seconds, span_of, ticks
from rushes.surfaces.web.live_jobs import look
from rushes.surfaces.web.view import back, render
from rushes.surfaces.words import TASK_WORDS, active_jobs, plural, task_word

router = APIRouter(include_in_schema=False)
EVENTS = 40
LINES = 30
Order = Literal["pause", "resume", "cancel", "retry", "priority"]


@dataclass(frozen=True, slots=True)
class Times:
    """An estimate beside what it came to, in seconds."""

    expected: tuple[float, float] | None
    elapsed: float
    remaining: tuple[float, float] | None
    over: bool

    @property
    def most(self) -> float:
        """Where both bars end."""
        left = self.remaining[1] if self.remaining and not self.over else 0.0
        return max(self.expected[1] if self.expected else 0.0, self.elapsed + left, 1.0)


@dataclass(frozen=True, slots=True)
class Chosen:
    """One task that somebody looks at."""

    task: Task
    word: str
    span: tuple[int, int] | None
    lines: list[str]
    took: float | None


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
        steps=sorted({t.stage for t in tasks}),
        counts=job.counts,
    )


@router.post("/jobs/{job_id}")
def steer_job(
    request: Request,
    library: LibraryDep,
    job_id: Id,
    do: Annotated[Order, Form()],
    stage: Annotated[str, Form(max_length=40)] = "",
    value: Annotated[int, Form(ge=-1000, le=1000)] = 0,
) -> Response:
    """Pause, resume, cancel, retry or reorder it."""
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
    expected = None
    with suppress(RushesError):  # what probe found was cleared away
        expected = library.expected(job) if job.facts else None
    over = job.state in FINAL
    elapsed = seconds(job.started_at, job.finished_at if over else datetime.now(UTC).isoformat())
    return Times(expected, elapsed or 0.0, seen.remaining, over)


def _chosen(library: Library, id: str) -> Chosen:
    task = library.jobs.task(id)
    lines = [str(e.data.get("line", "")) for e in library.jobs.log(id, 0, 500)][-LINES:]
    kept = list(task.failure.lines) if task.failure and not lines else lines
    return Chosen(task, task_word(task), span_of(task), kept, seconds(task.started_at, task.finished_at))


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
    said = [str(data[name]) for name in ("kind", "message", "reason", "to", "state") if data.get(name)]
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
