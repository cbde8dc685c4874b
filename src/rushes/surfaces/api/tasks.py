"""Tasks, and steps as seed B's programs call them: enqueue, cancel, retry, each with that document's status codes."""

from dataclasses import dataclass

from fastapi import APIRouter

from rushes.domain.job import JobCommand
from rushes.domain.task import TaskState
from rushes.library.desk import Step, allowed
from rushes.surfaces.api.jobs import After
from rushes.surfaces.http.deps import ADesk, Id
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
def read_log(desk: ADesk, task_id: Id, after: After = 0, limit: Limit = 200) -> list[LogLine]:
    """What the last attempt printed."""
    return [LogLine(e.number, e.at, str(e.data.get("line", ""))) for e in desk.log(task_id, after, limit)]


@router.get("/tasks/{task_id}")
def get_task(desk: ADesk, task_id: Id) -> TaskShape:
    """One task."""
    return TaskShape.of(desk.task(task_id))


@steps.get("/steps/{task_id}")
def get_step(desk: ADesk, task_id: Id) -> Step:
    """One step, by `job.stage`."""
    return desk.step(task_id)


@steps.post("/tasks/{task_id}/enqueue")
def enqueue_step(desk: ADesk, task_id: Id) -> Enqueued:
    """Announce a step that waits to be run."""
    step = allowed(desk.step(task_id), "enqueued", "PENDING")
    ready = desk.tasks(step.job, TaskState.READY, step.stage, "", 500).rows
    desk.announce(tuple(task.id for task in ready))
    return Enqueued(step.id, f"ml_{step.id}", "enqueued")


@steps.post("/tasks/{task_id}/cancel")
def cancel_step(desk: ADesk, task_id: Id) -> Step:
    """Stop a step that has not finished; its job is cancelled with it, what is done stays."""
    step = allowed(desk.step(task_id), "cancelled", "PENDING", "RUNNING")
    desk.command(step.job, JobCommand.CANCEL)
    return desk.step(task_id)


@steps.post("/tasks/{task_id}/retry")
def retry_step(desk: ADesk, task_id: Id) -> Step:
    """Try a step again that failed or was cancelled."""
    step = allowed(desk.step(task_id), "retried", "FAILED", "CANCELLED")
    desk.revive(step.job, step.stage)
    return desk.step(task_id)
