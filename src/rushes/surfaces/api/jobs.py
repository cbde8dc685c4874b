"""Jobs: list and details, steps, tasks and history; pause, cancel, retry; failed tasks."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from rushes.domain.event import Event, EventType
from rushes.domain.job import JobCommand, JobState
from rushes.domain.task import TaskState
from rushes.library.created_range import CreatedRange, parse_time
from rushes.library.jobs import FailureFilter, FailureGroup, StageProgress, StageRates, Step, WaitReason
from rushes.library.jobs import Page as LedgerPage
from rushes.surfaces.http.audit import note_target
from rushes.surfaces.http.deps import MOST, ActiveDep, Id, LibraryDep, Name, expected_of
from rushes.surfaces.http.live_jobs import look
from rushes.surfaces.http.schemas import Cursor, JobShape, Limit, Page, TaskShape, page, seal, unseal

router = APIRouter(tags=["jobs"])
tasks = APIRouter(tags=["tasks"])
steps = APIRouter(tags=["steps"])  # by `job.stage`, as seed B's programs call them, with that document's status codes
FAILED = "failed"  # the list that cursors of dead letters belong to

After = Annotated[int, Query(ge=0, le=MOST, description="the number of the last event that was seen")]
Types = Annotated[list[EventType] | None, Query(max_length=len(EventType), description="only these; all without it")]
Since = Annotated[str, Query(max_length=40, description="only from this time on, in ISO 8601")]
Stage = Annotated[str, Query(pattern=r"^[a-z0-9_]{0,40}$")]


class PriorityIn(BaseModel):
    """Jobs with a higher priority run first."""

    priority: int = Field(ge=-1000, le=1000)


class RetryIn(BaseModel):
    """One stage, or all ("")."""

    stage: Name = ""


@dataclass(frozen=True, slots=True)
class ActionPageOut:
    """The tasks that were retried or dismissed, and the cursor of the next page ("" when all are done)."""

    tasks: tuple[str, ...]
    cursor: str


class FailureFilterIn(BaseModel):
    """Failed tasks of one error class, or all (""): how many, and from which cursor on."""

    kind: Name = ""
    cursor: str = Field(default="", max_length=1000, description="`cursor` of the previous page")
    limit: int = Field(default=500, ge=1, le=500)

    def act(self, request: Request, act: Callable[[FailureFilter, str, int], LedgerPage[str]]) -> ActionPageOut:
        """Do it to some of them."""
        note_target(request, f"failed tasks {self.kind}".strip())
        acted = act(FailureFilter.of(self.kind), unseal(request, self.cursor, FAILED), self.limit)
        return ActionPageOut(acted.rows, seal(request, acted.cursor, FAILED))


@dataclass(frozen=True, slots=True)
class Retried:
    """The tasks that will be retried."""

    tasks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a job; seconds as (p50, p90), null if not known yet."""

    job: JobShape
    stages: tuple[StageProgress, ...]
    remaining: tuple[float, float] | None
    expected: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class CauseShape:
    """Failed tasks with the same message."""

    message: str
    hint: str
    verdict: str
    tasks: list[TaskShape]


@dataclass(frozen=True, slots=True)
class FailedShape:
    """Failed tasks of one error class."""

    kind: str
    count: int
    causes: list[CauseShape]

    @staticmethod
    def of(group: FailureGroup) -> "FailedShape":
        """From the library."""
        causes = [CauseShape(c.message, c.hint, c.verdict, [TaskShape.of(t) for t in c.tasks]) for c in group.causes]
        return FailedShape(group.kind, len(group.tasks), causes)


@router.get("/jobs")
def list_jobs(
    request: Request,
    library: LibraryDep,
    active: ActiveDep,
    state: JobState | None = None,
    queue: Name = "",
    created_from: Name = "",
    created_to: Name = "",
    cursor: Cursor = "",
    limit: Limit = 50,
) -> Page[JobShape]:
    """List jobs, newest first; in a final state by the time they ended; of a queue always by creation.

    `created_from` and `created_to` are dates or times in ISO 8601, both inclusive; a page may then be short, and the
    cursor says whether there are more.
    """
    of = f"jobs {state} {queue} {created_from} {created_to}"
    created = CreatedRange.parse(created_from, created_to)
    found = library.jobs.page(state, unseal(request, cursor, of), limit, queue, created)
    return page(request, [JobShape.of(j, active) for j in found.rows], found.cursor, of)


@router.get("/jobs/{job_id}")
def get_job(library: LibraryDep, active: ActiveDep, job_id: Id) -> JobShape:
    """Get a job."""
    return JobShape.of(library.jobs.get(job_id), active)


@router.get("/jobs/{job_id}/steps")
def list_steps(library: LibraryDep, job_id: Id) -> list[Step]:
    """List the steps of a job with their states."""
    return list(library.jobs.steps(job_id))


@router.get("/jobs/{job_id}/tasks")
def list_tasks(
    request: Request,
    library: LibraryDep,
    job_id: Id,
    state: TaskState | None = None,
    stage: Stage = "",
    cursor: Cursor = "",
    limit: Limit = 200,
) -> Page[TaskShape]:
    """List the tasks of a job in plan order."""
    of = f"tasks {job_id} {state} {stage}"
    found = library.jobs.task_page(job_id, state, stage, unseal(request, cursor, of), limit)
    return page(request, [TaskShape.of(t) for t in found.rows], found.cursor, of)


@router.get("/jobs/{job_id}/history")
def list_events(
    library: LibraryDep, job_id: Id, after: After = 0, types: Types = None, since: Since = "", limit: Limit = 200
) -> list[Event]:
    """List the numbered events of a job, by number, type and time; live at `/api/v1/jobs/{id}/events`."""
    return list(library.jobs.events(job_id, after, limit, types or (), parse_time(since)))


@router.get("/jobs/{job_id}/progress")
def get_progress(request: Request, library: LibraryDep, active: ActiveDep, job_id: Id) -> Progress:
    """Get the progress of each stage, the time worked and left, and the estimate (the range of nine of ten runs)."""
    job = library.jobs.get(job_id)
    seen = look(request, job.id)
    return Progress(JobShape.of(seen.job, active), seen.stages, seen.remaining, expected_of(library, job))


@router.get("/jobs/{job_id}/why")
def explain_job(library: LibraryDep, job_id: Id) -> list[WaitReason]:
    """Explain why tasks of a job are not running."""
    return list(library.jobs.why(job_id))


Move = Literal["pause", "pause_now", "resume", "cancel"]


@router.post("/jobs/{job_id}/priority")
def set_priority(library: LibraryDep, active: ActiveDep, job_id: Id, body: PriorityIn) -> JobShape:
    """Set the priority; jobs with a higher one run first."""
    return JobShape.of(library.jobs.command(job_id, JobCommand.PRIORITY, body.priority), active)


@router.post("/jobs/{job_id}/retry")
def retry_job(library: LibraryDep, job_id: Id, body: RetryIn | None = None) -> Retried:
    """Retry failed tasks, of one stage or all; a cancelled job continues."""
    return Retried(library.jobs.retry(job_id, body.stage if body else ""))


@router.post("/jobs/{job_id}/{move}")
def control_job(library: LibraryDep, active: ActiveDep, job_id: Id, move: Move) -> JobShape:
    """Pause (now), resume or cancel a job."""
    return JobShape.of(library.jobs.command(job_id, JobCommand(move)), active)


@router.get("/failed")
def list_failed(
    request: Request,
    library: LibraryDep,
    kind: Annotated[str, Query(max_length=100)] = "",
    cursor: Cursor = "",
    limit: Limit = 200,
) -> Page[FailedShape]:
    """List failed tasks by error class; the limit is the number of tasks."""
    found = library.jobs.failed.page(unseal(request, cursor, FAILED), limit)
    return page(request, [FailedShape.of(g) for g in found.groups if kind in ("", g.kind)], found.cursor, FAILED)


@router.get("/failed/rates")
def list_rates(library: LibraryDep) -> list[StageRates]:
    """List how often each stage failed and was retried in the newest jobs, and how long an attempt takes."""
    return list(library.jobs.stage_rates())


@router.post("/failed/retry")
def retry_failed(request: Request, library: LibraryDep, body: FailureFilterIn | None = None) -> ActionPageOut:
    """Retry failed tasks, of one class or all; repeat with the cursor until it is empty."""
    return (body or FailureFilterIn()).act(request, library.jobs.failed.retry)


@router.post("/failed/discard")
def discard_failed(request: Request, library: LibraryDep, body: FailureFilterIn | None = None) -> ActionPageOut:
    """Dismiss failed tasks, of one class or all; repeat with the cursor until it is empty."""
    return (body or FailureFilterIn()).act(request, library.jobs.failed.dismiss)


@dataclass(frozen=True, slots=True)
class Enqueued:
    """A step whose tasks were announced to workers."""

    task_id: str
    job_id: str
    status: str


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of an attempt's output."""

    number: int
    at: str
    line: str


@tasks.get("/tasks/{task_id}/log")
def read_log(library: LibraryDep, task_id: Id, after: After = 0, limit: Limit = 200) -> list[LogLine]:
    """Get the output of the last attempt."""
    return [LogLine(e.number, e.at, str(e.data.get("line", ""))) for e in library.jobs.log(task_id, after, limit)]


@tasks.get("/tasks/{task_id}")
def get_task(library: LibraryDep, task_id: Id) -> TaskShape:
    """Get a task."""
    return TaskShape.of(library.jobs.task(task_id))


@steps.get("/steps/{task_id}")
def get_step(library: LibraryDep, task_id: Id) -> Step:
    """Get a step, by `job.stage`."""
    return library.jobs.step(task_id)


@steps.post("/tasks/{task_id}/enqueue")
def enqueue_step(library: LibraryDep, task_id: Id) -> Enqueued:
    """Announce a waiting step, or the steps it waits for, to workers."""
    step = library.jobs.step(task_id)
    step.require("enqueued", "PENDING")
    library.jobs.announce(step.job)
    return Enqueued(step.id, f"ml_{step.id}", "enqueued")


@steps.post("/tasks/{task_id}/cancel")
def cancel_step(library: LibraryDep, task_id: Id) -> Step:
    """Cancel an unfinished step and the steps that need it; other steps of the job continue."""
    step = library.jobs.step(task_id)
    step.require("cancelled", "PENDING", "RUNNING")
    library.jobs.cancel_step(step)
    return library.jobs.step(task_id)


@steps.post("/tasks/{task_id}/retry")
def retry_step(library: LibraryDep, task_id: Id) -> Step:
    """Retry a failed or cancelled step and the steps that need it; other steps of the job stay as they are."""
    step = library.jobs.step(task_id)
    step.require("retried", "FAILED", "CANCELLED")
    library.jobs.retry_step(step)
    return library.jobs.step(task_id)
