"""What a program asks by exact ids: every question goes through the owner, and none reads the whole library."""

import json
import re
from dataclasses import dataclass

from rushes.annotations.sidecars import catch_up
from rushes.domain.errors import NotFound, Refused
from rushes.domain.event import Event, EventType
from rushes.domain.job import Job, JobCommand
from rushes.domain.keys import is_id
from rushes.domain.task import Task, TaskState
from rushes.home import Home
from rushes.index.port import Video, find_video
from rushes.jobs.models import explained
from rushes.jobs.originals import at_home
from rushes.jobs.why import WaitReason, why
from rushes.ledger.pages import all_tasks
from rushes.ledger.port import Page

_TASK_ID = re.compile(r"([A-Za-z0-9][A-Za-z0-9_-]{0,99})\.([a-z][a-z0-9_]{0,39})(\.\d{5,7})?\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class Step:
    """One stage of one job; its state is derived from its tasks."""

    id: str
    job: str
    stage: str
    state: str  # PENDING, RUNNING, COMPLETED, FAILED or CANCELLED
    done: int
    total: int
    created_at: str
    started_at: str | None
    completed_at: str | None
    error: str | None


@dataclass(frozen=True, slots=True)
class Desk:
    """One owner's questions to a home; whatever is somebody else's is not there."""

    home: Home

    @property
    def owner(self) -> str:
        """Whose."""
        return self.home.settings.owner

    def video(self, id: str) -> Video:
        """One video.

        Raises:
            NotFound: this owner has none of that id.
        """
        catch_up(self.home)
        found = find_video(self.home.index, self.owner, id) if is_id(id) else None
        if found is None:
            raise NotFound(f"there is no video {id[:60]!r}", "List what there is: GET /api/v1/videos")
        return at_home(self.home, found)

    def job(self, id: str) -> Job:
        """One job.

        Raises:
            NotFound: this owner has none of that id.
        """
        try:
            job = self.home.ledger.job(id) if is_id(id) else None
        except NotFound:
            job = None
        if job is None or job.owner != self.owner:
            raise NotFound(f"there is no job {id[:60]!r}", "List what there is: GET /api/v1/jobs")
        return job

    def task(self, id: str) -> Task:
        """One task.

        Raises:
            NotFound: this owner has none of that id.
        """
        named = _TASK_ID.match(id)
        found = self.home.ledger.tasks(ids=[id], limit=1).rows if named and self.job(named[1]) else ()
        if not found:
            raise NotFound(f"there is no task {id[:60]!r}", "List a job's: GET /api/v1/jobs/{id}/tasks")
        return found[0]

    def tasks(self, job: str, state: TaskState | None, stage: str, cursor: str, limit: int) -> Page[Task]:
        """Tasks of a job in plan order."""
        return self.home.ledger.tasks(self.job(job).id, state, stage, cursor=cursor, limit=limit)

    def events(self, job: str, after: int, limit: int) -> tuple[Event, ...]:
        """Numbered events of a job after a number."""
        return self.home.ledger.events(self.job(job).id, after, limit=limit)

    def log(self, task: str, after: int, limit: int) -> tuple[Event, ...]:
        """Log lines of a task's last attempt after a number."""
        row = self.task(task)
        return self.home.ledger.events(row.job, after, types={EventType.LOG}, task=row.id, limit=limit)

    def why(self, job: str) -> tuple[WaitReason, ...]:
        """Why each task of a job that is not running does not run."""
        row = self.job(job)
        return explained(self.home, row, why(self.home.ledger, row))

    def steps(self, job: str) -> tuple[Step, ...]:
        """The steps of a job in plan order."""
        row, by_stage = self.job(job), dict[str, list[Task]]()
        for task in all_tasks(self.home.ledger, row.id):
            by_stage.setdefault(task.stage, []).append(task)
        return tuple(_step(row, stage, tasks) for stage, tasks in by_stage.items())

    def step(self, id: str) -> Step:
        """One step, by `job.stage`.

        Raises:
            NotFound: there is none.
        """
        named = _TASK_ID.match(id)
        tasks = all_tasks(self.home.ledger, self.job(named[1]).id, stage=named[2]) if named and not named[3] else ()
        if not named or not tasks:
            raise NotFound(f"there is no step {id[:60]!r}", "List a job's: GET /api/v1/jobs/{id}/steps")
        return _step(self.job(named[1]), named[2], list(tasks))

    def command(self, job: str, command: JobCommand, value: int = 0) -> Job:
        """Steer a job.

        Raises:
            Refused: it is finished.
        """
        return self.home.ledger.control(self.job(job).id, command, value) or self.job(job)

    def revive(self, job: str, stage: str = "") -> tuple[str, ...]:
        """Try dead tasks again, of one stage or all; a cancelled job goes on."""
        ready = self.home.ledger.revive(self.job(job).id, stage=stage)
        self.announce(ready)
        return ready

    def announce(self, tasks: tuple[str, ...]) -> None:
        """Say that these tasks may be ready."""
        lanes: dict[str | None, list[str]] = {}
        for task in tasks:
            lanes.setdefault(self.home.lane_of(task), []).append(task)
        for lane, some in lanes.items():
            if lane:
                self.home.transport.announce(lane, some)

    def drain(self, worker: str) -> None:
        """Tell a worker to stop claiming and hand back.

        Raises:
            NotFound: there is none.
        """
        if worker not in {w.incarnation.id for w in self.home.ledger.workers()}:
            raise NotFound(f"there is no worker {worker[:80]!r}", "List them: GET /api/v1/workers")
        self.home.ledger.control(worker, JobCommand.DRAIN)


def video_of(job: Job) -> str:
    """The id of a job's video, "" until probe has found it."""
    return str(json.loads(job.facts).get("video", "")) if job.facts else ""


def _step(job: Job, stage: str, tasks: list[Task]) -> Step:
    states = {t.state for t in tasks}
    finished = [t.finished_at for t in tasks if t.finished_at]
    dead = next((t.failure for t in tasks if t.state is TaskState.DEAD and t.failure), None)
    return Step(
        id=f"{job.id}.{stage}",
        job=job.id,
        stage=stage,
        state=step_state(states),
        done=sum(t.state is TaskState.DONE for t in tasks),
        total=len(tasks),
        created_at=min(t.created_at for t in tasks),
        started_at=min((t.started_at for t in tasks if t.started_at), default=None),
        completed_at=max(finished) if states == {TaskState.DONE} and finished else None,
        error=f"{dead.kind}: {dead.message}" if dead else None,
    )


def step_state(states: set[TaskState]) -> str:
    """The state of a step, in the document's words."""
    if states == {TaskState.DONE}:
        return "COMPLETED"
    if TaskState.LEASED in states or (TaskState.DONE in states and TaskState.READY in states):
        return "RUNNING"
    if TaskState.DEAD in states:
        return "FAILED"
    return "CANCELLED" if TaskState.CANCELLED in states else "PENDING"


def allowed(step: Step, move: str, *states: str) -> Step:
    """The step, if it may be moved so.

    Raises:
        Refused: not from the state it is in.
    """
    if step.state not in states:
        raise Refused(f"{step.id} is {step.state}: it cannot be {move}", f"Possible from {' or '.join(states)}.")
    return step
