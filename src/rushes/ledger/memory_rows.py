"""The rows of a ledger in memory: plain values that change under its lock."""

from dataclasses import dataclass, field

from rushes.domain.event import Event, EventType
from rushes.domain.job import FINAL, Counts, Job, JobState, NewJob
from rushes.domain.keys import JSON
from rushes.domain.task import Draft, Failure, Need, Task, TaskState, Verdict
from rushes.domain.worker import Incarnation
from rushes.ledger.clock import iso, iso_or_none
from rushes.ledger.settle import settled


@dataclass(slots=True)
class TaskRow:
    """A task; `state` knows nothing of its job being cancelled."""

    draft: Draft
    unmet: set[Need]
    created: int
    state: TaskState = TaskState.WAITING
    parked: bool = False
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

    @property
    def claimable(self) -> bool:
        """Whether a claim may take it."""
        return self.state is TaskState.READY and not self.parked and self.due is None

    def held_by(self, worker: str | None, fence: int) -> bool:
        """Whether that lease is the one that counts."""
        return self.state is TaskState.LEASED and self.fence == fence and worker in (None, self.worker)

    def said(self, fence: int, outcome: str, cancelled: bool) -> Verdict:
        """The answer to a lease that holds no more."""
        if self.fence == fence and self.state is not TaskState.LEASED and self.outcome == outcome:
            return Verdict.OK
        return Verdict.CANCELLED if cancelled else Verdict.LOST

    def told(self, **more: JSON) -> dict[str, JSON]:
        """What an event about its attempt says."""
        about = {"stage": self.draft.stage, "chunk": self.draft.chunk, "fence": self.fence, "worker": self.worker}
        return {**about, **more}

    def seen(self, cancelled: bool, now: float) -> Task:
        """The task as readers see it."""
        d, gone = self.draft, cancelled and self.state not in (TaskState.DONE, TaskState.DEAD)
        return Task(
            d.id, d.job, d.stage, d.chunk, d.lane, d.order, TaskState.CANCELLED if gone else self.state, self.fence,
            self.failures, self.losses, len(self.unmet), d.spec, self.worker,
            self.state is TaskState.READY and self.parked and not cancelled,
            None if self.due is None else max(0.0, self.due - now), self.progress, iso(self.created),
            iso_or_none(self.started), iso_or_none(self.finished),
            None if self.state is TaskState.DONE else self.failure, self.adopted,
        )  # fmt: skip


@dataclass(slots=True)
class JobRow:
    """A job with its tasks in plan order, its drafts and its events."""

    new: NewJob
    number: int
    created: int
    priority: int
    state: JobState = JobState.CREATED
    paused: int = 0  # 2: what runs is given back
    cancelled: bool = False
    opened: bool = False
    facts: str = ""
    losses: int = 0
    failures: int = 0
    changed: int = 0
    told: int = 0  # events that `changed` speaks of
    started: int | None = None
    finished: int | None = None
    tasks: dict[str, TaskRow] = field(default_factory=dict)
    drafts: dict[str, Draft] = field(default_factory=dict)
    drafted: tuple[int, str] = (0, "")  # fence and facts
    events: list[Event] = field(default_factory=list)

    @property
    def stopped(self) -> bool:
        """Whether its ready tasks are parked."""
        return bool(self.paused or self.cancelled)

    @property
    def first(self) -> TaskRow:
        """The task that opens the plan."""
        return next(iter(self.tasks.values()))

    @property
    def counts(self) -> Counts:
        """Counted anew each time: nothing can drift."""
        states = [task.state for task in self.tasks.values()]
        live = states.count(TaskState.READY) + states.count(TaskState.LEASED)
        dead, done = states.count(TaskState.DEAD), states.count(TaskState.DONE)
        return Counts(len(states), done, dead, live, self.losses, self.failures)

    def tell(self, type: EventType, at: int, data: dict[str, JSON], task: str | None = None) -> None:
        """One event."""
        self.events.append(Event(self.new.id, len(self.events) + 1, type, iso(at), task, data))

    def settle(self, at: int) -> None:
        """State, and what a change of state owes, from the tasks."""
        chunking = self.first.state is TaskState.LEASED
        before = self.state
        self.state, told = settled(before, self.counts, opened=self.opened, chunking=chunking, cancelled=self.cancelled)
        if told:
            self.tell(told[0], at, told[1])
        if self.state is not before and self.state in FINAL:
            self.finished, self.paused = at, 0
        elif self.state not in FINAL:
            self.finished = None

    def seen(self) -> Job:
        """The job as readers see it."""
        n = self.new
        return Job(
            n.id, n.owner, n.team, n.request_id, n.name, n.recipe, n.payload, self.facts, self.state,
            bool(self.paused), self.priority, self.counts, len(self.events), iso(self.created),
            iso_or_none(self.started), iso_or_none(self.finished),
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


def fresh(draft: Draft, unmet: set[Need], wall: int) -> TaskRow:
    """A task as a plan opens it: adopted ones done, the others waiting for what is unmet."""
    row = TaskRow(draft, unmet, wall, adopted=draft.adopted)
    if draft.adopted:
        row.state, row.finished, row.unmet = TaskState.DONE, wall, set()
    return row
