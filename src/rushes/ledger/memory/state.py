"""The state of the ledger in memory, and its changes; each method is called under the lock."""

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from rushes.domain.event import Event, EventType
from rushes.domain.job import Counts, Job, JobState, NewJob
from rushes.domain.keys import JSON
from rushes.domain.result import Result
from rushes.domain.task import Draft, Failure, Finish, Lease, Need, Task, TaskState, Verdict
from rushes.domain.worker import Incarnation, Worker
from rushes.ledger import rules
from rushes.ledger.clock import Millis, Seconds, boot_seconds, iso, iso_or_none, wall_millis
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
    cancelled_stages: list[str] = field(default_factory=list)
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
        total = len(states) - states.count(TaskState.CANCELLED)
        return Counts(total, done, dead, live, self.losses, self.failures)

    def trim(self, before: int) -> None:
        """Drop events and log lines up to a moment, but for the last event."""
        last = max((e.number for e in self.events if e.at <= iso(before)), default=0)
        self.events = [e for e in self.events if e.number > last or e is self.events[-1]]
        for task in self.tasks.values():
            task.logs = {f: {n: one for n, one in lines.items() if one[0] > before} for f, lines in task.logs.items()}
            task.logs = {fence: lines for fence, lines in task.logs.items() if lines}

    def job(self) -> Job:
        """The job as readers see it."""
        n = self.new
        return Job(
            n.id, n.owner, n.team, n.request_id, n.name, n.recipe, n.payload, self.facts, self.state,
            bool(self.paused), self.priority, self.counts, self.events[-1].number, iso(self.created),
            iso_or_none(self.started), iso_or_none(self.finished), tuple(self.cancelled_stages), n.queue,
        )  # fmt: skip


@dataclass(slots=True, eq=False)
class TaskRow:
    """A task; `state` knows nothing of its whole job being cancelled."""

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


_NOT_BEGUN = (TaskState.WAITING, TaskState.READY, TaskState.DEAD, TaskState.CANCELLED)


_UNFINISHED = (TaskState.WAITING, TaskState.READY, TaskState.LEASED)


class MemoryState:
    """The rows, and every change of them."""

    def __init__(
        self,
        clock: Seconds = boot_seconds,
        wall: Millis = wall_millis,
        is_gone: Callable[[Incarnation], bool] = lambda _: False,
    ) -> None:
        self._lock = threading.RLock()
        self._now, self._wall, self._is_gone = clock, wall, is_gone
        self._jobs: dict[str, JobRow] = {}
        self._workers: dict[str, WorkerRow] = {}
        self._results: dict[tuple[str, str], Result] = {}
        self._arrived: dict[tuple[str, str], int] = {}  # when
        self._debts: set[tuple[str, str, str]] = set()
        self._changes = 0

    # Rows
    def _job(self, id: str) -> JobRow:
        if id not in self._jobs:
            raise rules.no_job(id)
        return self._jobs[id]

    def _task(self, id: str) -> TaskRow | None:
        job = self._jobs.get(id.partition(".")[0])
        return job.tasks.get(id) if job else None

    def _held(self, worker: str, task: str, fence: int) -> TaskRow | None:
        row = self._task(task)
        return row if row and row.status.holds(fence, worker) else None

    def _verdict(self, task: str, fence: int, outcome: str) -> Verdict:
        row = self._task(task)
        return row.status.verdict(fence, outcome) if row else Verdict.LOST

    def _in_plan_order(self) -> list[TaskRow]:
        """Every task: jobs by age, then plan order."""
        return [task for job in self._jobs.values() for task in job.tasks.values()]

    def _in_claim_order(self) -> list[TaskRow]:
        return sorted(self._in_plan_order(), key=lambda task: -task.job.priority)

    def _add_event(self, job: JobRow, type: EventType, data: dict[str, JSON], task: str | None = None) -> None:
        self._changes += 1
        job.changed = self._changes
        number = job.events[-1].number + 1 if job.events else 1
        job.events.append(Event(job.id, number, type, iso(self._wall()), task, data))

    def _settle(self, job: JobRow) -> None:
        event = rules.settle(job, self._wall())
        if event:
            self._add_event(job, *event)

    # Plans and needs
    def _insert(self, job: JobRow, drafts: Collection[Draft]) -> tuple[str, ...]:
        """Drafts become tasks; those that are ready at once."""
        new = [d for d in sorted(drafts, key=lambda d: (d.order, d.id)) if d.id not in job.tasks]
        rows = [TaskRow(job, d, set() if d.adopted else set(d.needs), self._wall(), adopted=d.adopted) for d in new]
        for row in rows:
            job.tasks[row.id] = row
            if row.adopted:
                row.state, row.finished = TaskState.DONE, self._wall()
        if len(job.tasks) > len(rows):
            adopted = sum(row.adopted for row in rows)
            self._add_event(job, EventType.PLANNED, {"tasks": len(rows), "adopted": adopted})
        for row in rows:
            row.unmet = {need for need in row.unmet if not self._is_met(need)}
            if row.adopted:
                self._add_event(job, EventType.ADOPTED, row.status.attempt(seconds=0.0), row.id)
        self._cancel_stages(job)
        return tuple(row.id for row in rows if self._make_ready(row))

    def _is_met(self, need: Need) -> bool:
        if need.is_key:
            return any(key == need.ref for key, _ in self._arrived)
        row = self._task(need.ref)
        return row is not None and row.state is TaskState.DONE

    def _jobs_begun_by(self, need: Need) -> tuple[str, ...]:
        firsts = [job.first for job in self._jobs.values()]
        return tuple(sorted(row.job.id for row in firsts if need in row.draft.needs and not row.draft.adopted))

    def _make_ready(self, row: TaskRow) -> bool:
        """A waiting task without unmet needs is ready; whether a claim can see it now."""
        if row.state is not TaskState.WAITING or row.unmet:
            return False
        row.state = TaskState.READY
        return row.claimable

    def _meet_needs(self, *needs: Need) -> tuple[str, ...]:
        """These are there; the tasks that became ready."""
        ready = []
        for row in self._in_plan_order():
            if row.unmet.intersection(needs):
                row.unmet.difference_update(needs)
                ready += [row.id] if self._make_ready(row) else []
                self._settle(row.job)
        return tuple(ready)

    def _reset_needs(self, job: JobRow) -> None:
        """Whoever needs a task of this job that is done no more, and has not begun, waits for it."""
        undone = {Need(t.id) for t in job.tasks.values() if t.state is not TaskState.DONE}
        for row in self._in_plan_order():
            again = undone.intersection(row.draft.needs) - row.unmet
            if again and row.state in _NOT_BEGUN:
                row.unmet |= again
                if row.state is TaskState.READY:
                    row.state, row.due = TaskState.WAITING, None

    def _cancel_stages(self, job: JobRow) -> None:
        """What is not finished of the stages that are not wanted is cancelled."""
        for row in job.tasks.values():
            if row.draft.stage in job.cancelled_stages and row.state in _UNFINISHED:
                row.end(TaskState.CANCELLED, row.outcome, self._wall())
                row.due, row.progress = None, 0.0

    # Leases
    def _lease(self, row: TaskRow, worker: str) -> Lease:
        lease = row.lease(worker, self._wall())
        if row is row.job.first:
            row.job.started = row.job.started or self._wall()
            self._settle(row.job)
        return lease

    def _finish(self, won: Mapping[str, Finish]) -> tuple[str, ...]:
        """These are done, job by job; the tasks that became ready."""
        rows = {row.id: row for task in won if (row := self._task(task))}
        attempts = {task: row.status.attempt(seconds=won[task].seconds) for task, row in rows.items()}
        for task, row in rows.items():
            row.end(TaskState.DONE, "done", self._wall())
            row.adopted = won[task].adopted
        jobs = dict.fromkeys(row.job for row in rows.values())
        opened: list[str] = []
        for job in jobs:
            mine = {task: finish for task, finish in won.items() if rows[task].job is job}
            for task, finish in sorted(mine.items(), key=lambda item: item[1].adopted):
                type = EventType.ADOPTED if finish.adopted else EventType.DONE
                self._add_event(job, type, attempts[task], task)
            opened += self._keep_results(job, mine)
        ready = self._meet_needs(*map(Need, won))
        for job in jobs:
            self._settle(job)
        return (*opened, *ready)

    def _keep_results(self, job: JobRow, finishes: Mapping[str, Finish]) -> tuple[str, ...]:
        """What some tasks made; the tasks that an opened plan makes ready."""
        for result in (r for finish in finishes.values() for r in finish.results):
            self._results.setdefault((job.new.owner, result.key), result)
            if result.publishes:
                self._debts.add((job.new.owner, job.id, result.key))
        first = finishes.get(job.first.id)
        return () if first is None or job.opened else self._open_plan(job, first.fence)

    def _open_plan(self, job: JobRow, fence: int) -> tuple[str, ...]:
        job.opened = True
        drafts, job.drafts = job.drafts, {}
        if job.drafted[0] != fence:
            return ()
        job.facts = job.drafted[1]
        return self._insert(job, drafts.values()) if drafts else ()

    def _lose(self, row: TaskRow) -> None:
        row.losses, row.job.losses = row.losses + 1, row.job.losses + 1
        self._add_event(row.job, EventType.LOST, row.status.attempt(losses=row.losses), row.id)
        self._fail(row, "lost", rules.worn_out(row.losses), None)

    def _fail(self, row: TaskRow, outcome: str, failure: Failure | None, delay: float | None) -> None:
        """Ready again, perhaps after a delay; dead if there is a failure without one."""
        row.failure = failure or row.failure
        if failure and delay is None:
            self._add_event(row.job, EventType.DEAD, row.status.failed_attempt(failure, None), row.id)
            row.end(TaskState.DEAD, outcome, self._wall())
        else:
            row.end(TaskState.READY, outcome)
            row.due = self._now() + delay if delay else None

    def _refresh(self, row: TaskRow) -> None:
        row.due = None
        if row.state is not TaskState.READY:
            self._add_event(row.job, EventType.REVIVED, {"state": row.state.value}, row.id)
            row.state, row.failures, row.losses = TaskState.WAITING, 0, 0
            row.adopted, row.finished, row.progress = False, None, 0.0
