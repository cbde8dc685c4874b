"""Steps: one stage of one job, with a state that is derived from its tasks."""

from collections.abc import Iterable
from dataclasses import dataclass

from rushes.domain.errors import Refused
from rushes.domain.task import Task, TaskState


@dataclass(frozen=True, slots=True)
class Step:
    """One stage of one job."""

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

    def require(self, move: str, *states: str) -> None:
        """Raises Refused: the step cannot be moved so from the state it is in."""
        if self.state not in states:
            raise Refused(f"{self.id} is {self.state}: it cannot be {move}", f"Possible from {' or '.join(states)}.")


def steps_of(tasks: Iterable[Task]) -> tuple[Step, ...]:
    """The steps of a job in the order of its tasks."""
    by_stage: dict[str, list[Task]] = {}
    for task in tasks:
        by_stage.setdefault(task.stage, []).append(task)
    return tuple(_step(stage, some) for stage, some in by_stage.items())


def _step(stage: str, tasks: list[Task]) -> Step:
    states = {t.state for t in tasks}
    finished = [t.finished_at for t in tasks if t.finished_at]
    dead = next((t.failure for t in tasks if t.state is TaskState.DEAD and t.failure), None)
    return Step(
        id=f"{tasks[0].job}.{stage}",
        job=tasks[0].job,
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
