"""Steps: one stage of one job, its state derived from its tasks; a step is cancelled or retried alone."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rushes.domain.errors import NeverWorks, Refused
from rushes.domain.grouping import grouped
from rushes.domain.job import Job, JobCommand, JobState
from rushes.domain.keys import JSON
from rushes.domain.stage import StageSpec
from rushes.domain.task import Task, TaskState
from rushes.home import Home
from rushes.jobs.control import command, retry
from rushes.ledger.pages import all_tasks
from rushes.plan.planner import JobSpec
from rushes.plan.recipes import dependants_of, requirements_of

_WORDS = {TaskState.DONE: "COMPLETED", TaskState.LEASED: "RUNNING", TaskState.DEAD: "FAILED"}
_WORDS |= {TaskState.CANCELLED: "CANCELLED", TaskState.READY: "PENDING", TaskState.WAITING: "PENDING"}


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
    started_at: str | None = None
    completed_at: str | None = None
    error: str | None = None
    needs: tuple[str, ...] = ()  # the steps that it needs
    options: Mapping[str, JSON] = field(default_factory=dict)

    def require(self, move: str, *states: str) -> None:
        """Raises Refused: the step cannot be moved so from the state it is in."""
        if self.state not in states:
            raise Refused(f"{self.id} is {self.state}: it cannot be {move}", f"Possible from {' or '.join(states)}.")


def steps_of(home: Home, job: Job, stage: str = "") -> tuple[Step, ...]:
    """The steps of a job in plan order, or one; those that probe has yet to plan are there already."""
    tasks = all_tasks(home.ledger, job.id, stage=stage)
    found = {name: _step(name, some) for name, some in grouped(tasks, lambda task: task.stage).items()}
    try:
        asked = JobSpec.from_text(job.payload)
    except NeverWorks:  # a job of another kind: its tasks are all there is
        return tuple(found.values())
    names = dict.fromkeys(asked.stages if stage in ("", *asked.stages) else found)
    steps = [found.get(name) or _unplanned(home, job, name) for name in names if stage in ("", name)]
    return tuple(_described(step, home.specs.get(step.stage), asked) for step in steps)


def join_steps(first: Step, *others: Step) -> Step:
    """One step for several, under the name of the first: complete when all are."""
    steps = (first, *others)
    ends = [s.completed_at for s in steps if s.completed_at]
    return replace(
        first,
        state=_combined({s.state for s in steps}),
        done=sum(s.done for s in steps),
        total=sum(s.total for s in steps),
        started_at=min((s.started_at for s in steps if s.started_at), default=None),
        completed_at=max(ends) if len(ends) == len(steps) else None,
        error=next((s.error for s in steps if s.error), None),
    )


def cancel_step(home: Home, job: Job, stage: str) -> None:
    """Cancel a step and what needs it. Without its first step nothing of a job can be done.

    Raises:
        Refused: its stage is not installed here.
    """
    if _is_whole_job(home, job, stage) or home.specs[stage].opens_plan:
        command(home, job.id, JobCommand.CANCEL)
    else:
        home.ledger.control(job.id, JobCommand.CANCEL, stages=dependants_of([stage], _stages(job), home.specs))


def retry_step(home: Home, job: Job, stage: str) -> tuple[str, ...]:
    """Try a step again, with what needs it, and with what it needs where that is not done; the tasks that are tried.

    If the whole job is cancelled, its other steps stay so.
    Raises:
        Refused: its stage is not installed here.
    """
    if _is_whole_job(home, job, stage):
        return retry(home, job.id)
    wanted = {*requirements_of([stage], home.specs), *dependants_of([stage], _stages(job), home.specs)}
    others = [name for name in _stages(job) if name not in wanted]
    if job.state is JobState.CANCELLED and others:
        home.ledger.control(job.id, JobCommand.CANCEL, stages=others)
    return retry(home, job.id, stages=wanted)


def _is_whole_job(home: Home, job: Job, stage: str) -> bool:
    """Whether there is no other step, as in a queue of one's own, whose stage is none of ours."""
    is_alone = list(_stages(job)) == [stage]
    if not is_alone and stage not in home.specs:
        raise Refused(f"the stage {stage!r} is not installed here", f"Retry or cancel the whole job: {job.id}")
    return is_alone


def _stages(job: Job) -> Sequence[str]:
    return JobSpec.from_text(job.payload).stages


def _unplanned(home: Home, job: Job, stage: str) -> Step:
    ended = dependants_of(job.cancelled_stages, _stages(job), home.specs)
    over = job.state is JobState.CANCELLED or stage in ended
    return Step(f"{job.id}.{stage}", job.id, stage, "CANCELLED" if over else "PENDING", 0, 0, job.created_at)


def _described(step: Step, spec: StageSpec | None, asked: JobSpec) -> Step:
    needs = requirements_of([step.stage], {step.stage: spec}, deep=False) if spec else ()
    options = {**(spec.options if spec else {}), **asked.options.get(step.stage, {})}
    steps = tuple(f"{step.job}.{name}" for name in needs if name in asked.stages)  # a clip is cut without a probe
    return replace(step, needs=steps, options=options)


def _step(stage: str, tasks: Sequence[Task]) -> Step:
    ends = [t.finished_at for t in tasks if t.state is TaskState.DONE and t.finished_at]
    dead = next((t.failure for t in tasks if t.state is TaskState.DEAD and t.failure), None)
    return Step(
        id=f"{tasks[0].job}.{stage}",
        job=tasks[0].job,
        stage=stage,
        state=_state(tasks),
        done=sum(t.state is TaskState.DONE for t in tasks),
        total=len(tasks),
        created_at=min(t.created_at for t in tasks),
        started_at=min((t.started_at for t in tasks if t.started_at), default=None),
        completed_at=max(ends) if ends and len(ends) == len(tasks) else None,
        error=f"{dead.kind}: {dead.message}" if dead else None,
    )


def _state(tasks: Iterable[Task]) -> str:
    states = {t.state for t in tasks}
    if {TaskState.DONE, TaskState.READY} <= states:
        return "RUNNING"
    return _combined({_WORDS[state] for state in states})


def _combined(states: Collection[str]) -> str:
    """The state that some states have together: complete only if all are; begun if some are."""
    if set(states) == {"COMPLETED"}:
        return "COMPLETED"
    found = next((word for word in ("RUNNING", "FAILED", "CANCELLED") if word in states), "")
    return found or ("RUNNING" if "COMPLETED" in states else "PENDING")
