"""The rows of a ledger in memory: plain values that change under its lock."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from rushes.domain.event import Event, EventType
from rushes.domain.job import Counts, Job, JobState, NewJob
from rushes.domain.task import Draft, Failure, Lease, Need, Task, TaskState
from rushes.domain.worker import Incarnation, Worker
from rushes.ledger.clock import iso, iso_or_none
from rushes.ledger.rules import LOG_LINES, TaskStatus, visible_state


@dataclass(slots=True, eq=False)
class JobRow:
    """A job with its tasks in plan order, its drafts and its events."""

    new: NewJob
    number: int
    created: int
    priority: int
    opened: bool
    state: JobState = JobState.CREATED
    paused: int = 0
    cancelled: bool = False
    facts: str = ""
    losses: int = 0
    failures: int = 0
    changed: int = 0  # the number of its last event among those of all jobs
    started: int | None = None
    finished: int | None = None
    tasks: "dict[str, TaskRow]" = field(default_factory=dict)
    drafts: dict[str, Draft] = field(default_factory=dict)
    drafted: tuple[int, str] = (0, "")  # fence and facts
    events: list[Event] = field(default_factory=list)

    @property
    def id(self) -> str:
        return self.new.id

    @property
    def stopped(self) -> bool:
        """Whether its ready tasks are parked."""
        return bool(self.paused or self.cancelled)

    @property
    def first(self) -> "TaskRow":
        """The task that opens the plan."""
        return next(iter(self.tasks.values()))

    @property
    def chunking(self) -> bool:
        return self.first.state is TaskState.LEASED

    @property
    def counts(self) -> Counts:
        """Counted each time: nothing can drift."""
        states = [task.state for task in self.tasks.values()]
        live = states.count(TaskState.READY) + states.count(TaskState.LEASED)
        dead, done = states.count(TaskState.DEAD), states.count(TaskState.DONE)
        return Counts(len(states), done, dead, live, self.losses, self.failures)

    def job(self) -> Job:
        """The job as readers see it."""
        n = self.new
        return Job(
            n.id, n.owner, n.team, n.request_id, n.name, n.recipe, n.payload, self.facts, self.state,
            bool(self.paused), self.priority, self.counts, len(self.events), iso(self.created),
            iso_or_none(self.started), iso_or_none(self.finished),
        )  # fmt: skip


@dataclass(slots=True, eq=False)
class TaskRow:
    """A task; `state` knows nothing of its job being cancelled."""

    job: JobRow
    draft: Draft
    unmet: set[Need]
    created: int
    state: TaskState = TaskState.WAITING
    due: float | None = None
    fence: int = 0
    worker: str | None = None
    outcome: str = ""  # of the last attempt: done, failed, lost, given_back
    failures: int = 0
    losses: int = 0
    progress: float = 0.0
    adopted: bool = False
    failure: Failure | None = None
    started: int | None = None
    finished: int | None = None
    logs: dict[int, dict[int, tuple[int, str]]] = field(default_factory=dict)  # fence -> number -> when, line

    @property
    def id(self) -> str:
        return self.draft.id

    @property
    def claimable(self) -> bool:
        """Whether a claim may take it."""
        return self.state is TaskState.READY and not self.job.stopped and self.due is None

    @property
    def status(self) -> TaskStatus:
        """Where it and its job stand."""
        d, job = self.draft, self.job
        return TaskStatus(
            d.id, d.stage, d.chunk, self.state, self.fence, self.worker, self.outcome, self.losses, job.cancelled,
            job.paused,
        )  # fmt: skip

    def lease(self, worker: str, at: int) -> Lease:
        """Give it to a worker."""
        self.state, self.worker, self.fence = TaskState.LEASED, worker, self.fence + 1
        self.started, self.outcome, self.progress = at, "", 0.0
        d = self.draft
        return Lease(d.id, self.fence, d.job, d.stage, d.chunk, d.lane, d.spec, self.failures, self.losses)

    def end(self, state: TaskState, outcome: str, at: int | None = None) -> None:
        """Its lease is over; `at` is when it finished, None if it is ready again."""
        self.state, self.worker, self.outcome, self.finished = state, None, outcome, at
        self.progress = 0.0 if at is None else self.progress

    def keep_log(self, fence: int, first: int, lines: Sequence[str], at: int) -> None:
        """Keep the last lines of an attempt, each as it came first."""
        kept = self.logs.get(fence, {})
        kept = {n: (at, line) for n, line in enumerate(lines, first)} | kept
        self.logs[fence] = {n: line for n, line in kept.items() if n > max(kept) - LOG_LINES}

    def log_lines(self, after: int, limit: int) -> tuple[Event, ...]:
        """Lines of the latest attempt after a number."""
        fence = max(self.logs, default=0)
        lines = sorted((n, line) for n, line in self.logs.get(fence, {}).items() if n > after)
        return tuple(
            Event(self.job.id, n, EventType.LOG, iso(at), self.id, {"fence": fence, "line": text})
            for n, (at, text) in lines[:limit]
        )

    def task(self, now: float) -> Task:
        """The task as readers see it."""
        d, job = self.draft, self.job
        return Task(
            d.id, d.job, d.stage, d.chunk, d.lane, d.order, visible_state(self.state, cancelled=job.cancelled),
            self.fence, self.failures, self.losses, len(self.unmet), d.spec, self.worker,
            self.state is TaskState.READY and job.stopped and not job.cancelled,
            None if self.due is None else max(0.0, self.due - now), self.progress, iso(self.created),
            iso_or_none(self.started), iso_or_none(self.finished),
            None if self.state is TaskState.DONE else self.failure, self.adopted,
        )  # fmt: skip


@dataclass(slots=True)
class WorkerRow:
    """A worker incarnation and its lease."""

    who: Incarnation
    until: float
    started: int
    note: str = ""
    draining: bool = False
    over: bool = False

    def worker(self, held: tuple[str, ...], now: float) -> Worker:
        """The worker as others see it."""
        left = max(0.0, self.until - now)
        return Worker(self.who, left > 0, self.draining, self.note, held, left, iso(self.started))
