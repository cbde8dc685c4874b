"""What the verbs of a ledger in memory do to its rows; each is called under the lock."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from rushes.domain.errors import NotFound
from rushes.domain.event import Event, EventType
from rushes.domain.job import JobCommand
from rushes.domain.keys import JSON
from rushes.domain.result import Result
from rushes.domain.task import Draft, Finish, Lease, LeaseStatus, Need, TaskState, Verdict
from rushes.domain.worker import Incarnation, Worker
from rushes.ledger.clock import Millis, Seconds, boot_seconds, iso, wall_millis
from rushes.ledger.memory_rows import JobRow, TaskRow, WorkerRow, fresh
from rushes.ledger.settle import worn_out


class MemoryMoves:
    """The rows, and every move on them."""

    def __init__(
        self,
        clock: Seconds = boot_seconds,
        wall: Millis = wall_millis,
        is_gone: Callable[[Incarnation], bool] = lambda _: False,
    ) -> None:
        self._lock = threading.RLock()
        self._now, self._wall, self._is_gone = clock, wall, is_gone
        self._jobs: dict[str, JobRow] = {}
        self._tasks: dict[str, TaskRow] = {}
        self._workers: dict[str, WorkerRow] = {}
        self._results: dict[tuple[str, str], Result] = {}
        self._arrived: set[tuple[str, str]] = set()
        self._debts: set[tuple[str, str, str]] = set()
        self._logs: dict[tuple[str, int], dict[int, tuple[int, str]]] = {}
        self._changes = 0

    def _job(self, id: str) -> JobRow:
        if id not in self._jobs:
            raise NotFound(f"no job {id}")
        return self._jobs[id]

    def _in_plan(self) -> Iterator[TaskRow]:
        """Every task: jobs by age, then plan order."""
        return (task for job in self._jobs.values() for task in job.tasks.values())

    def _in_order(self) -> list[TaskRow]:
        """Every task in the order of claims."""
        return sorted(self._in_plan(), key=lambda task: -self._jobs[task.draft.job].priority)

    def _held(self, worker: str, task: str, fence: int) -> TaskRow | None:
        row = self._tasks.get(task)
        return row if row and row.held_by(worker, fence) else None

    def _said(self, task: str, fence: int, outcome: str) -> Verdict:
        row = self._tasks.get(task)
        return Verdict.LOST if row is None else row.said(fence, outcome, self._jobs[row.draft.job].cancelled)

    def _settle(self, job: JobRow) -> None:
        known = job.told
        job.settle(self._wall())
        if len(job.events) > known:
            self._changes += 1
            job.changed, job.told = self._changes, len(job.events)

    # Plans and needs
    def _plant(self, job: JobRow, drafts: Iterable[Draft]) -> tuple[str, ...]:
        """Drafts become tasks; those that are ready at once."""
        new = [d for d in sorted(drafts, key=lambda d: (d.order, d.id)) if d.id not in self._tasks]
        for d in new:
            job.tasks[d.id] = self._tasks[d.id] = fresh(d, set(d.needs), self._wall())
        for d in new:
            self._tasks[d.id].unmet -= {need for need in d.needs if self._is_met(need)}
        if job.opened and len(job.tasks) > len(new):
            adopted = sum(d.adopted for d in new)
            job.tell(EventType.PLANNED, self._wall(), {"tasks": len(new), "adopted": adopted})
        for d in new:
            if d.adopted:
                about = self._tasks[d.id].told(seconds=0.0)
                job.tell(EventType.ADOPTED, self._wall(), about, d.id)
        return tuple(d.id for d in new if self._ready(self._tasks[d.id]))

    def _is_met(self, need: Need) -> bool:
        if need.is_key:
            return any(key == need.ref for key, _ in self._arrived)
        row = self._tasks.get(need.ref)
        return row is not None and row.state is TaskState.DONE

    def _ready(self, row: TaskRow) -> bool:
        """A waiting task without unmet needs is ready; whether a claim can see it now."""
        if row.state is not TaskState.WAITING or row.unmet:
            return False
        row.state, row.parked = TaskState.READY, self._jobs[row.draft.job].stopped
        return not row.parked

    def _meet(self, *needs: Need) -> tuple[str, ...]:
        """These are there; the tasks that became ready."""
        ready = []
        for row in self._in_plan():
            if row.unmet.intersection(needs):
                row.unmet.difference_update(needs)
                if self._ready(row):
                    ready.append(row.draft.id)
                self._settle(self._jobs[row.draft.job])
        return tuple(ready)

    def _rearm(self, job: JobRow) -> None:
        """Whoever needs a task of this job that is done no more, and has not begun, waits for it."""
        undone = {t.draft.id for t in job.tasks.values() if t.state is not TaskState.DONE}
        for row in self._in_plan():
            if row.state in (TaskState.WAITING, TaskState.READY, TaskState.DEAD):
                again = {need for need in row.draft.needs if not need.is_key and need.ref in undone} - row.unmet
                row.unmet |= again
                if again and row.state is TaskState.READY:
                    row.state, row.parked, row.due = TaskState.WAITING, False, None

    # Leases
    def _lease(self, row: TaskRow, worker: str) -> Lease:
        d, job = row.draft, self._jobs[row.draft.job]
        row.state, row.worker, row.fence = TaskState.LEASED, worker, row.fence + 1
        row.started, row.outcome, row.progress = self._wall(), "", 0.0
        if row is job.first:
            job.started = job.started or self._wall()
            self._settle(job)
        return Lease(d.id, row.fence, d.job, d.stage, d.chunk, d.lane, d.spec, row.failures, row.losses)

    def _order(self, task: str, worker: str, fence: int) -> LeaseStatus:
        row = self._tasks.get(task)
        if row is None:
            return LeaseStatus.LOST
        job = self._jobs[row.draft.job]
        if row.held_by(worker, fence):
            return LeaseStatus.GIVE_BACK if job.paused > 1 else LeaseStatus.KEEP
        if row.state is TaskState.DONE and row.fence == fence:
            return LeaseStatus.KEEP
        return LeaseStatus.CANCELLED if job.cancelled else LeaseStatus.LOST

    def _finish(self, won: Mapping[str, Finish]) -> tuple[str, ...]:
        """These are done, job by job; the tasks that became ready."""
        about = {task: self._tasks[task].told(seconds=finish.seconds) for task, finish in won.items()}
        for task, finish in won.items():
            row = self._tasks[task]
            row.state, row.outcome, row.worker, row.finished = TaskState.DONE, "done", None, self._wall()
            row.adopted = finish.adopted
        opened: list[str] = []
        for job in dict.fromkeys(self._tasks[task].draft.job for task in won):
            mine = {task: finish for task, finish in won.items() if self._tasks[task].draft.job == job}
            opened += self._gain(self._jobs[job], mine, about)
        ready = self._meet(*(Need(task) for task in won))
        for job in dict.fromkeys(self._tasks[task].draft.job for task in won):
            self._settle(self._jobs[job])
        return (*opened, *ready)

    def _gain(self, job: JobRow, mine: Mapping[str, Finish], about: Mapping[str, dict[str, JSON]]) -> tuple[str, ...]:
        """What a job gains by some of its tasks being done; the tasks that an opened plan makes ready."""
        for adopted, type in ((False, EventType.DONE), (True, EventType.ADOPTED)):
            for task, finish in mine.items():
                if finish.adopted is adopted:
                    job.tell(type, self._wall(), about[task], task)
        for result in (r for finish in mine.values() for r in finish.results):
            self._results.setdefault((job.new.owner, result.key), result)
            if result.publishes:
                self._debts.add((job.new.owner, job.new.id, result.key))
        first = mine.get(job.first.draft.id)
        return () if first is None or job.opened else self._open(job, first.fence)

    def _open(self, job: JobRow, fence: int) -> tuple[str, ...]:
        job.opened = True
        drafts, job.drafts = job.drafts, {}
        if job.drafted[0] != fence:
            return ()
        job.facts = job.drafted[1]
        return self._plant(job, drafts.values()) if drafts else ()

    def _release(self, row: TaskRow, outcome: str, due: float | None = None) -> None:
        row.state, row.worker, row.outcome, row.due = TaskState.READY, None, outcome, due
        row.parked, row.progress = self._jobs[row.draft.job].stopped, 0.0

    def _bury(self, row: TaskRow, outcome: str, about: dict[str, JSON]) -> None:
        row.state, row.worker, row.outcome, row.finished = TaskState.DEAD, None, outcome, self._wall()
        self._jobs[row.draft.job].tell(EventType.DEAD, self._wall(), about, row.draft.id)

    def _lose(self, row: TaskRow) -> None:
        job = self._jobs[row.draft.job]
        row.losses, job.losses = row.losses + 1, job.losses + 1
        job.tell(EventType.LOST, self._wall(), row.told(losses=row.losses), row.draft.id)
        why = worn_out(row.losses)
        if why is None:
            self._release(row, "lost")
        else:
            row.failure = why
            about = row.told(kind=why.kind, message=why.message, verdict=why.verdict, delay=None)
            self._bury(row, "lost", about)

    def _revivable(self, row: TaskRow, again: bool) -> bool:
        return row.state is TaskState.DEAD or (row.state is TaskState.DONE if again else row.due is not None)

    def _refresh(self, job: JobRow, row: TaskRow) -> None:
        row.due = None
        if row.state is TaskState.READY:
            return
        job.tell(EventType.REVIVED, self._wall(), {"state": row.state.value}, row.draft.id)
        row.state, row.failures, row.losses = TaskState.WAITING, 0, 0
        row.adopted, row.finished, row.progress = False, None, 0.0

    # Commands
    def _tell_worker(self, id: str, command: JobCommand) -> None:
        row = self._workers.get(id)
        if row is None or (row.over and command is JobCommand.DRAIN):
            raise NotFound(f"no worker {id}")
        if command is JobCommand.DRAIN:
            row.draining = True
        elif any(task.worker == id for task in self._tasks.values()):
            row.until = min(row.until, self._now())
        else:
            row.over = True

    def _tell_job(self, job: JobRow, command: JobCommand, value: int) -> None:
        at = self._wall()
        if command is JobCommand.CANCEL:
            job.cancelled, job.paused = True, 0
            for row in job.tasks.values():
                if row.state is TaskState.LEASED:
                    row.state, row.worker, row.progress = TaskState.READY, None, 0.0
            job.tell(EventType.CANCELLED, at, {})
        elif command is JobCommand.PRIORITY and job.priority != value:
            job.priority = value
            job.tell(EventType.PRIORITY, at, {"priority": value})
        elif command is JobCommand.RESUME and job.paused:
            job.paused = 0
            job.tell(EventType.RESUMED, at, {})
        elif command in (JobCommand.PAUSE, JobCommand.PAUSE_NOW):
            self._pause(job, 2 if command is JobCommand.PAUSE_NOW else 1)
        self._park(job)

    def _pause(self, job: JobRow, how: int) -> None:
        if job.paused < how:
            job.paused = how
            job.tell(EventType.PAUSED, self._wall(), {"now": how > 1})

    def _park(self, job: JobRow) -> None:
        for row in job.tasks.values():
            row.parked = job.stopped and row.state is TaskState.READY

    # Answers
    def _announce(self, limit: int) -> tuple[str, ...]:
        """Tasks to announce, an equal share of each lane."""
        ready = [task for task in self._in_order() if task.claimable]
        lanes = sorted({task.draft.lane for task in ready})
        share = max(1, limit // max(1, len(lanes)))
        by_lane = {lane: [t.draft.id for t in ready if t.draft.lane == lane][:share] for lane in lanes}
        return tuple(task for lane in lanes for task in by_lane[lane])

    def _next_due(self) -> float | None:
        dues = [t.due for t in self._tasks.values() if t.due is not None and not t.parked]
        return min(dues) - self._now() if dues else None

    def _worker(self, row: WorkerRow) -> Worker:
        held = tuple(t.draft.id for t in self._in_plan() if t.worker == row.who.id)
        left = max(0.0, row.until - self._now())
        return Worker(row.who, left > 0, row.draining, row.note, held, left, iso(row.started))

    def _log_lines(self, job: str, task: str, after: int, limit: int) -> tuple[Event, ...]:
        fences = [fence for of, fence in self._logs if of == task]
        lines = self._logs[task, max(fences)] if fences else {}
        found: Sequence[tuple[int, tuple[int, str]]] = sorted((n, line) for n, line in lines.items() if n > after)
        return tuple(
            Event(job, n, EventType.LOG, iso(at), task, {"fence": max(fences), "line": text})
            for n, (at, text) in found[:limit]
        )
