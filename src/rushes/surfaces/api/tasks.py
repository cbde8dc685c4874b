"""Tasks, and steps as seed B's programs call them: enqueue, cancel, retry, each with that document's status codes."""

from dataclasses import dataclass

from fastapi import APIRouter

from rushes.library.jobs import Step
from rushes.surfaces.api.jobs import After
from rushes.surfaces.http.deps import Id, LibraryDep
from rushes.surfaces.http.pagination import Limit
from rushes.surfaces.http.schemas import TaskShape

router = APIRouter(tags=["tasks"])
steps = APIRouter(tags=["steps"])


@dataclass(frozen=True, slots=True)
class Enqueued:
    """A step whose tasks were announced."""

    task_id: str
    job_id: str
    status: str


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of an attempt's output."""

    number: int
    at: str
    line: str


@router.get("/tasks/{task_id}/log")
def read_log(library: LibraryDep, task_id: Id, after: After = 0, limit: Limit = 200) -> list[LogLine]:
    """What the last attempt printed."""
    return [LogLine(e.number, e.at, str(e.data.get("line", ""))) for e in library.jobs.log(task_id, after, limit)]


@router.get("/tasks/{task_id}")
def get_task(library: LibraryDep, task_id: Id) -> TaskShape:
    """One task."""
    return TaskShape.of(library.jobs.task(task_id))


@steps.get("/steps/{task_id}")
def get_step(library: LibraryDep, task_id: Id) -> Step:
    """One step, by `job.stage`."""
    return library.jobs.step(task_id)


@steps.post("/tasks/{task_id}/enqueue")
def enqueue_step(library: LibraryDep, task_id: Id) -> Enqueued:
    """Announce a step that waits to be run."""
    step = library.jobs.step(task_id)
    step.require("enqueued", "PENDING")
    library.jobs.announce(step.job, step.stage)
    return Enqueued(step.id, f"ml_{step.id}", "enqueued")


@steps.post("/tasks/{task_id}/cancel")
def cancel_step(library: LibraryDep, task_id: Id) -> Step:
    """Stop a step that has not finished; its job is cancelled with it, what is done stays."""
    step = library.jobs.step(task_id)
    step.require("cancelled", "PENDING", "RUNNING")
    library.jobs.cancel(step.job)
    return library.jobs.step(task_id)


@steps.post("/tasks/{task_id}/retry")
def retry_step(library: LibraryDep, task_id: Id) -> Step:
    """Try a step again that failed or was cancelled."""
    step = library.jobs.step(task_id)
    step.require("retried", "FAILED", "CANCELLED")
    library.jobs.retry(step.job, step.stage)
    return library.jobs.step(task_id)
