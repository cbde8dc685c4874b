"""Eioku: videos, their tasks (our steps) and artifacts, the places that are looked at."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel

from rushes.domain.errors import NotFound, Refused
from rushes.domain.job import Job
from rushes.domain.task_types import TASK_TYPES, task_type
from rushes.library import Library
from rushes.library.jobs import Step, join_steps, models_of, profile_of, video_of
from rushes.library.watching.paths import Record
from rushes.surfaces.api import artifacts, jobs, videos
from rushes.surfaces.api.documents.eioku_config import TaskConfigs, config_of, stored_configs
from rushes.surfaces.http.deps import Id, LibraryDep, Place
from rushes.surfaces.http.openapi import ProgramRoute
from rushes.surfaces.http.schemas import Cursor, Limit, Page, RecordShape, TaskShape, page, unseal

router = APIRouter()
for_programs = APIRouter(route_class=ProgramRoute)

Status = Literal["", "PENDING", "RUNNING", "COMPLETED", "FAILED", "CANCELLED"]
ABORTED = "Aborted by user"  # the error of a task that was cancelled after it had begun


@dataclass(frozen=True, slots=True)
class TaskOut(Step):
    """A step in the document's words, beside ours."""

    task_id: str = ""
    video_id: str = ""
    task_type: str = ""
    status: str = ""
    priority: int = 0
    dependencies: tuple[str, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)
    job_id: str = ""

    @staticmethod
    def of(step: Step, job: Job) -> "TaskOut":
        """From a step of a job."""
        was_running = step.state == "CANCELLED" and step.started_at
        return TaskOut(
            **asdict(replace(step, error=step.error or (ABORTED if was_running else None))),
            task_id=step.id,
            video_id=video_of(job),
            task_type=task_type(step.stage),
            status=step.state,
            priority=job.priority,
            dependencies=step.needs,
            config=config_of(step.stage, step.options, profile_of(job), models_of(job)),
            job_id=f"ml_{step.id}",
        )


class PathIn(BaseModel):
    """A place, and how each type of task is configured there."""

    path: Place
    config: TaskConfigs = TaskConfigs()


@dataclass(frozen=True, slots=True)
class PathOut(RecordShape):
    """A stored place, and its configuration as it was posted with the defaults filled in, beside the record."""

    path: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def of(record: Record) -> "PathOut":
        """From the records."""
        config = stored_configs(record.doc.get("options", {}), record.doc.get("profile", ""))
        return PathOut(record.id, record.version, record.doc, record.doc["path"], config)


@router.get("/paths")
def list_paths(library: LibraryDep) -> list[PathOut]:
    """The stored places."""
    return [PathOut.of(record) for record in library.paths.all()]


@router.post("/paths", status_code=201)
def add_path(request: Request, library: LibraryDep, body: PathIn) -> PathOut:
    """Store a place: the server looks there every few seconds, and each new film gets its six tasks."""
    videos.check_places(request, library, [body.path])
    return PathOut.of(library.paths.add(body.path, body.config.wanted()))


@router.get("/tasks")
def list_tasks(
    request: Request,
    library: LibraryDep,
    video_id: Annotated[str, Query(max_length=100, description="a video, or a job whose video is not known yet")] = "",
    status: Status = "",
    type: Annotated[str, Query(alias="task_type", max_length=40, description="one of the six, or any stage")] = "",
    cursor: Cursor = "",
    limit: Limit = 100,
) -> Page[TaskOut]:
    """The six tasks of each job, newest job first, or those of one type, status or video; pages are of jobs."""
    of = f"steps {video_id} {status} {type}"
    more = ""
    if video_id:
        rows = _jobs_of(library, video_id)
    else:
        found = library.jobs.page(None, unseal(request, cursor, of), max(1, limit // len(TASK_TYPES)))
        rows, more = list(found.rows), found.cursor
    tasks = [TaskOut.of(step, job) for job in rows for step in _steps(library, job, type)]
    return page(request, [task for task in tasks if status in ("", task.status)], more, of)


@router.get("/tasks/{task_id}")
def get_task(library: LibraryDep, task_id: Id) -> TaskOut | TaskShape:
    """One task: a step, or the part of one that works on a chunk."""
    if task_id.count(".") > 1:
        return TaskShape.of(library.jobs.task(task_id))
    return _task(library, task_id)


@router.post("/tasks/{task_id}/enqueue")
def enqueue_task(library: LibraryDep, task_id: Id) -> jobs.Enqueued:
    """Announce a task that waits, or what it waits for."""
    task = _task(library, task_id)
    _require("enqueue", task, "PENDING")
    library.jobs.announce(task.job)
    return jobs.Enqueued(task.id, task.job_id, "enqueued")


@router.post("/tasks/{task_id}/cancel")
def cancel_task(library: LibraryDep, task_id: Id) -> TaskOut:
    """Stop a task that has not finished, and what needs it; its siblings go on."""
    step = _task(library, task_id)
    _require("cancel", step, "PENDING", "RUNNING")
    library.jobs.cancel_step(step)
    return _task(library, task_id)


@router.post("/tasks/{task_id}/retry")
def retry_task(library: LibraryDep, task_id: Id) -> TaskOut:
    """Try a task again that failed or was cancelled, and what needs it; its siblings stay as they are."""
    step = _task(library, task_id)
    _require("retry", step, "FAILED", "CANCELLED")
    library.jobs.retry_step(step)
    return _task(library, task_id)


def _require(move: str, task: TaskOut, *statuses: str) -> None:
    if task.status not in statuses:
        raise Refused(f"Cannot {move} task in status {task.status}", f"Possible from {' or '.join(statuses)}.")


def _task(library: Library, id: str) -> TaskOut:
    try:
        step = library.jobs.step(id)
    except NotFound as e:
        raise NotFound("Task not found", f"List tasks: GET /tasks ({e})") from e
    job = library.jobs.get(step.job)
    return TaskOut.of(next(_steps(library, job, task_type(step.stage))), job)


def _steps(library: Library, job: Job, type: str) -> Iterator[Step]:
    """Those of a job that are tasks of the document, or of one type."""
    steps = {step.stage: step for step in library.jobs.steps(job.id)}
    for stages in [TASK_TYPES.get(type, (type,))] if type else TASK_TYPES.values():
        if stages[0] in steps:
            yield join_steps(*(steps[stage] for stage in stages if stage in steps))


def _jobs_of(library: Library, id: str) -> list[Job]:
    if id.startswith("job_"):
        return [library.jobs.get(id)]
    return library.jobs.of_video(library.videos.get(id), videos.MOST_RUNS)


for _one in (artifacts.router, videos.paths, jobs.tasks, jobs.steps):
    router.include_router(_one)
router.add_api_route("/videos", videos.list_videos)
for_programs.add_api_route("/videos/{video_id}", videos.get_video)
