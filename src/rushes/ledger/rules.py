"""Rules that all ledgers share: who holds a task, what a command changes, when a job ends, what is refused.

Pure: each function takes what a backend has read and answers what it must write.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from rushes.domain.errors import KillsItsWorker, LeaseLost, NotFound, OverLimit, Refused
from rushes.domain.event import Event, EventType
from rushes.domain.job import FINAL, Counts, JobCommand, JobState, job_state
from rushes.domain.keys import JSON
from rushes.domain.task import MAX_LOSSES, Failure, LeaseStatus, TaskState, Verdict

EventData = dict[str, JSON]
NewEvent = tuple[EventType, EventData]
MAX_TASKS = (1 << 20) - 1  # of one plan; SQL backends number a job's tasks with 20 bits
LOCK_SECONDS = 90 * 86_400  # how long it is remembered that a blob key arrived, and why a result was set aside
LOG_LINES = 1000  # kept per attempt
_PAUSED = {JobCommand.PAUSE: 1, JobCommand.PAUSE_NOW: 2}


# Refusals
def no_job(id: str) -> NotFound:
    """The error for a job id that nobody has submitted."""
    return NotFound(f"no job {id}", "List jobs with: rushes jobs ls")


def lease_over(worker: str) -> LeaseLost:
    """The error for a claim by a worker whose own lease is over."""
    return LeaseLost(f"the lease of worker {worker} has expired")


def check_worker(id: str, command: JobCommand, *, known: bool, over: bool) -> None:
    """Refuse a command to a worker that does not exist; one that is over can still leave.

    Raises:
        NotFound: no such worker.
    """
    if not known or (over and command is JobCommand.DRAIN):
        raise NotFound(f"no worker {id}", "List workers with: GET /api/v1/workers")


def check_plan_size(tasks: int) -> None:
    """Refuse a plan with more tasks than every backend can number.

    Raises:
        OverLimit: it is too large.
    """
    if tasks >= MAX_TASKS:
        raise OverLimit(f"a plan must have fewer than {MAX_TASKS} tasks", "Choose larger chunks with --chunk.")


# Jobs
class JobStatus(Protocol):
    """The fields of a job row that commands and the end of tasks change."""

    state: JobState
    priority: int
    paused: int  # 1: no new leases; 2: what runs is given back as well
    cancelled: bool
    cancelled_stages: list[str]
    finished: int | None

    @property
    def id(self) -> str:
        """The job's id."""

    @property
    def counts(self) -> Counts:
        """Its tasks by state."""

    @property
    def opened(self) -> bool:
        """Whether the plan is open."""

    @property
    def chunking(self) -> bool:
        """Whether its first task is leased."""


def apply_command(job: JobStatus, command: JobCommand, value: int = 0, stages: Collection[str] = ()) -> NewEvent | None:
    """Change a job as commanded; the event to record, None if nothing changed. Its tasks are to follow.

    Raises:
        Refused: the job is finished (except priority, or cancelling again: both change nothing).
    """
    if stages:
        new = sorted(set(stages) - set(job.cancelled_stages))
        job.cancelled_stages = sorted({*job.cancelled_stages, *new})
        return (EventType.CANCELLED, {"stages": new}) if new else None
    if job.state in FINAL:
        _check_finished(job, command)
        return None
    if command is JobCommand.CANCEL:
        job.cancelled, job.paused = True, 0
        return EventType.CANCELLED, {}
    if command is JobCommand.PRIORITY and job.priority != value:
        job.priority = value
        return EventType.PRIORITY, {"priority": value}
    if command is JobCommand.RESUME and job.paused:
        job.paused = 0
        return EventType.RESUMED, {}
    if job.paused < _PAUSED.get(command, 0):
        job.paused = _PAUSED[command]
        return EventType.PAUSED, {"now": command is JobCommand.PAUSE_NOW}
    return None


def _check_finished(job: JobStatus, command: JobCommand) -> None:
    harmless = command is JobCommand.PRIORITY or (command is JobCommand.CANCEL and job.cancelled)
    if not harmless:
        hint = "A finished job can only be retried: rushes jobs retry JOB"
        raise Refused(f"job {job.id} is {job.state.value}", hint)


def settle(job: JobStatus, at: int, *, owing: bool = False) -> NewEvent | None:
    """Set the state that the job's tasks mean now; the event to record when a final state is entered or left.

    A job with writes still `owing` is not finished yet, unless it is cancelled.
    """
    now = job_state(job.counts, opened=job.opened, chunking=job.chunking, cancelled=job.cancelled)
    if now is job.state or (owing and now in FINAL and not job.cancelled):
        return None
    before, job.state = job.state, now
    job.finished = at if now in FINAL else None
    if now in FINAL:
        job.paused = 0
        return EventType.FINISHED, {"state": now.value}
    return (EventType.REVIVED, {"state": before.value}) if before in FINAL else None


def check_forget(id: str, state: JobState) -> None:
    """Refuse to forget a job that is not finished.

    Raises:
        Refused: it is not.
    """
    if state not in FINAL:
        raise Refused(f"job {id} is not finished", "Cancel it first: rushes jobs cancel JOB")


def with_truncation(events: Sequence[Event], after: int, limit: int) -> tuple[Event, ...]:
    """Events after a number, told first if there were others before them that are no longer kept.

    The last event of a job is always kept, so that a job whose events are all gone needs no thought.
    """
    if not events or events[0].number == after + 1:
        return tuple(events)
    first = events[0]
    told = Event(first.job, first.number - 1, EventType.TRUNCATED, first.at, None, {"before": first.number})
    return (told, *events)[:limit]


# Tasks
@dataclass(frozen=True, slots=True)
class TaskStatus:
    """Where a task and its job stand: what the answer to a fence rests on."""

    id: str
    stage: str
    chunk: int | None
    state: str
    fence: int
    worker: str | None
    outcome: str | None  # of the last attempt: done, failed, lost, given_back
    losses: int
    cancelled: bool  # the job
    paused: int  # the job
    key: int = 0  # where tasks are numbered

    def holds(self, fence: int, worker: str | None = None) -> bool:
        """Whether that lease is the one that counts."""
        return self.state == TaskState.LEASED and self.fence == fence and worker in (None, self.worker)

    def verdict(self, fence: int, *outcomes: str) -> Verdict:
        """The answer to a lease that holds no more; OK if that very fence had one of these outcomes."""
        if self.fence == fence and self.state != TaskState.LEASED and self.outcome in outcomes:
            return Verdict.OK
        return Verdict.CANCELLED if self._is_cancelled else Verdict.LOST

    def lease_status(self, fence: int, worker: str) -> LeaseStatus:
        """What a renewal says of that lease."""
        if self.holds(fence, worker):
            return LeaseStatus.GIVE_BACK if self.paused > 1 else LeaseStatus.KEEP
        if self.state == TaskState.DONE and self.fence == fence:
            return LeaseStatus.KEEP
        return LeaseStatus.CANCELLED if self._is_cancelled else LeaseStatus.LOST

    @property
    def _is_cancelled(self) -> bool:
        return self.cancelled or self.state == TaskState.CANCELLED

    def attempt(self, **more: JSON) -> EventData:
        """The data of an event about its last attempt."""
        return {"stage": self.stage, "chunk": self.chunk, "fence": self.fence, "worker": self.worker, **more}

    def failed_attempt(self, failure: Failure, delay: float | None) -> EventData:
        """The same when it failed: again after `delay` seconds, never if that is None."""
        return self.attempt(kind=failure.kind, message=failure.message, verdict=failure.verdict, delay=delay)


def lease_statuses(tasks: Mapping[str, TaskStatus], worker: str, holding: Mapping[str, int]) -> dict[str, LeaseStatus]:
    """What a renewal says of each task held; one that does not exist is lost."""
    return {
        task: tasks[task].lease_status(fence, worker) if task in tasks else LeaseStatus.LOST
        for task, fence in holding.items()
    }


def worn_out(losses: int) -> Failure | None:
    """Why a task that lost its worker that many times is dead; None while it may be tried again."""
    if losses < MAX_LOSSES:
        return None
    message = f"it lost its worker {losses} times"
    return Failure(KillsItsWorker.__name__, message, KillsItsWorker.hint, KillsItsWorker.verdict)


def is_revivable(state: TaskState, *, backs_off: bool, again: bool, named: bool) -> bool:
    """Whether `revive` takes a task: dead, backing off, cancelled if its stage is named; with `again` dead or done."""
    if state is TaskState.DEAD or again:
        return state in (TaskState.DEAD, TaskState.DONE)
    return backs_off or (named and state is TaskState.CANCELLED)


def visible_state(state: TaskState, *, cancelled: bool) -> TaskState:
    """A task's state for readers: a cancelled job's unfinished tasks are cancelled."""
    return TaskState.CANCELLED if cancelled and state not in (TaskState.DONE, TaskState.DEAD) else state


def lane_share(limit: int, lanes: int) -> int:
    """How many tasks of each lane a sweep announces, so that no lane keeps the others out."""
    return max(1, limit // max(1, lanes))
