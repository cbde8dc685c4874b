"""The ledger in memory: the model that other backends are compared with, plain and obviously right."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

from rushes.domain.errors import LeaseLost, Refused
from rushes.domain.event import Event, EventType
from rushes.domain.job import FINAL, Job, JobCommand, JobState, NewJob
from rushes.domain.result import Result
from rushes.domain.task import LEASE_SECONDS, Draft, Failure, Finish, Lease, LeaseStatus, Need, Task, TaskState, Verdict
from rushes.domain.worker import Incarnation, Worker
from rushes.ledger.memory_moves import MemoryMoves
from rushes.ledger.memory_rows import JobRow, WorkerRow
from rushes.ledger.port import Completed, Debt, Page, Renewed, Submitted, SweepResult

LOG_LINES = 1000
T = TypeVar("T")


class MemoryLedger(MemoryMoves):
    """Jobs, tasks, leases, results, events and workers in dicts, under one lock."""

    batch = 500
    finds_next = True

    # Taking in
    def submit(self, new: NewJob, first: Draft) -> Submitted:
        """A job with its first task and first event; the same id again changes nothing."""
        with self._lock:
            created = new.id not in self._jobs
            if created:
                job = self._jobs[new.id] = JobRow(new, len(self._jobs) + 1, self._wall(), new.priority)
                job.tell(EventType.SUBMITTED, self._wall(), {"name": new.name, "recipe": new.recipe})
                job.opened = first.adopted
                self._plant(job, [first])
                self._settle(job)
            return Submitted(self._jobs[new.id].seen(), created)

    def draft(self, job: str, task: str, fence: int, tasks: Sequence[Draft], facts: str) -> Verdict:
        """Write a page of the plan, unseen by claims."""
        with self._lock:
            row = self._tasks.get(task)
            if row is None or not row.held_by(None, fence):
                return self._said(task, fence, "done")
            mine = self._jobs[job]
            if mine.drafted[0] != fence:
                mine.drafts = {}
            mine.drafted = (fence, facts)
            mine.drafts |= {d.id: d for d in tasks}
            return Verdict.OK

    def arrived(self, key: str, etag: str) -> tuple[str, ...]:
        """A blob key is there: meets every need of it once; answers the tasks that became ready."""
        with self._lock:
            if (key, etag) in self._arrived:
                return ()
            self._arrived.add((key, etag))
            return self._meet(Need(key, is_key=True))

    # Working
    def claim(self, worker: str, lanes: Sequence[str], n: int, hinted: Collection[str] = ()) -> tuple[Lease, ...]:
        """Up to n ready tasks in those lanes, by priority, age of the job and plan order."""
        with self._lock:
            row = self._workers.get(worker)
            if row is None or row.over or row.until <= self._now():
                raise LeaseLost(f"the lease of worker {worker} has expired")
            tasks = [t for t in self._in_order() if t.claimable and t.draft.lane in lanes]
            if hinted:
                tasks = [t for t in tasks if t.draft.id in hinted]
            return () if row.draining else tuple(self._lease(t, worker) for t in tasks[:n])

    def renew(
        self, worker: Incarnation, holding: Mapping[str, int], progress: Mapping[str, float], note: str = ""
    ) -> Renewed:
        """Enter or keep the worker's row for a lease."""
        with self._lock:
            row = self._workers.setdefault(worker.id, WorkerRow(worker, 0.0, self._wall()))
            if row.over:
                return Renewed(dict.fromkeys(holding, LeaseStatus.LOST), gone=True)
            row.until, row.note = self._now() + LEASE_SECONDS, note
            for task, fraction in progress.items():
                held = self._tasks.get(task)
                if held and task in holding and held.held_by(worker.id, holding[task]):
                    held.progress = fraction
            return Renewed({t: self._order(t, worker.id, f) for t, f in holding.items()}, row.draining)

    def complete(self, worker: str, finishes: Sequence[Finish]) -> Completed:
        """Done: results, count-down of dependants, events, job counters, debts."""
        with self._lock:
            won: dict[str, Finish] = {}
            for finish in finishes:
                if self._held(worker, finish.task, finish.fence):
                    won.setdefault(finish.task, finish)
            ready = self._finish(won)
            return Completed(tuple(self._said(f.task, f.fence, "done") for f in finishes), ready)

    def fail(self, worker: str, task: str, fence: int, failure: Failure, delay: float | None) -> Verdict:
        """The attempt failed: ready again after `delay` seconds, or dead when it is None."""
        with self._lock:
            row = self._held(worker, task, fence)
            if row is None:
                return self._said(task, fence, "failed")
            job, at = self._jobs[row.draft.job], self._wall()
            about = row.told(kind=failure.kind, message=failure.message, verdict=failure.verdict, delay=delay)
            job.tell(EventType.FAILED, at, about, task)
            row.failures, job.failures, row.failure = row.failures + 1, job.failures + 1, failure
            if delay is None:
                self._bury(row, "failed", about)
            else:
                self._release(row, "failed", self._now() + delay if delay > 0 else None)
            self._settle(job)
            return Verdict.OK

    def give_back(self, worker: str, held: Sequence[tuple[str, int]], reason: str) -> None:
        """Hand tasks back, claimable at once, counted as nothing."""
        with self._lock:
            for task, fence in held:
                row = self._held(worker, task, fence)
                if row:
                    job = self._jobs[row.draft.job]
                    job.tell(EventType.GIVEN_BACK, self._wall(), row.told(reason=reason), task)
                    self._release(row, "given_back")
                    self._settle(job)

    def sweep(self, limit: int = 500, paid: Sequence[Debt] = ()) -> SweepResult:
        """Release what dead workers held, flip due tasks, strike out paid debts; answer what is owed."""
        with self._lock:
            for worker in self._workers.values():
                worker.over = worker.over or worker.until <= self._now() or self._is_gone(worker.who)
            orphans = [t for t in self._in_plan() if t.worker and self._workers[t.worker].over][:limit]
            for task in orphans:
                self._lose(task)
            for job in {task.draft.job for task in orphans}:
                self._settle(self._jobs[job])
            for task in self._tasks.values():
                task.due = None if task.due is not None and task.due <= self._now() else task.due
            self._debts -= {(d.owner, d.job, d.key) for d in paid}
            debts = tuple(Debt(*debt) for debt in sorted(self._debts)[:limit])
            return SweepResult(self._announce(limit), debts, len(orphans), self._next_due())

    # Steering
    def control(self, target: str, command: JobCommand, value: int = 0) -> Job | None:
        """Tell a job or a worker."""
        with self._lock:
            if command in (JobCommand.DRAIN, JobCommand.LEAVE):
                self._tell_worker(target, command)
                return None
            job = self._job(target)
            cancelled = command is JobCommand.CANCEL and job.cancelled
            if job.state in FINAL and command is not JobCommand.PRIORITY and not cancelled:
                raise Refused(f"job {target} is {job.state.value}")
            if job.state not in FINAL:
                self._tell_job(job, command, value)
                self._settle(job)
            return job.seen()

    def revive(self, job: str, tasks: Collection[str] = (), stage: str = "", again: bool = False) -> tuple[str, ...]:
        """Make dead tasks ready with fresh tries, and end back-offs; a cancelled job goes on."""
        with self._lock:
            mine = self._job(job)
            if again and mine.cancelled:
                return ()
            mine.cancelled = False
            self._park(mine)
            rows = [t for t in mine.tasks.values() if self._revivable(t, again) and stage in ("", t.draft.stage)]
            rows = [t for t in rows if not tasks or t.draft.id in tasks]
            for row in rows:
                self._refresh(mine, row)
            self._rearm(mine)
            for row in rows:
                self._ready(row)
            self._settle(mine)
            return tuple(t.draft.id for t in rows)

    def known(self, owner: str, keys: Collection[str]) -> Mapping[str, Result]:
        """Which of these results exist."""
        with self._lock:
            return {key: self._results[owner, key] for key in keys if (owner, key) in self._results}

    def set_aside(self, owner: str, keys: Collection[str], reason: str) -> int:  # noqa: ARG002 - nobody reads it here
        """Take results out of the ledger; answers how many there were."""
        with self._lock:
            return sum(self._results.pop((owner, key), None) is not None for key in set(keys))

    def log(self, task: str, fence: int, first: int, lines: Sequence[str]) -> None:
        """Keep log lines of an attempt; repeats change nothing."""
        with self._lock:
            if task not in self._tasks or not lines:
                return
            kept = self._logs.setdefault((task, fence), {})
            for number, line in enumerate(lines, first):
                kept.setdefault(number, (self._wall(), line))
            last = max(kept)
            for number in [n for n in kept if n <= last - LOG_LINES]:
                del kept[number]

    # Looking
    def job(self, job: str) -> Job:
        """One job.

        Raises:
            NotFound: no such job.
        """
        with self._lock:
            return self._job(job).seen()

    def jobs(
        self,
        owner: str,
        state: JobState | None = None,
        oldest_first: bool = False,
        cursor: str = "",
        limit: int = 100,
        ids: Collection[str] = (),
    ) -> Page[Job]:
        """An owner's jobs by time of creation, finished states by time of finish."""
        with self._lock:
            if ids:
                return Page(tuple(j.seen() for j in self._jobs.values() if j.new.owner == owner and j.new.id in ids))
            rows = [j for j in self._jobs.values() if j.new.owner == owner and state in (None, j.state)]
            finished = state in FINAL
            rows.sort(key=lambda j: ((j.finished or 0) if finished else 0, j.number), reverse=not oldest_first)
            return _page([job.seen() for job in rows], cursor, limit, lambda job: job.id)

    def tasks(
        self,
        job: str = "",
        state: TaskState | None = None,
        stage: str = "",
        ids: Collection[str] = (),
        cursor: str = "",
        limit: int = 500,
    ) -> Page[Task]:
        """Tasks of a job in plan order; without a job, of all jobs or those named."""
        with self._lock:
            rows = [t.seen(self._jobs[t.draft.job].cancelled, self._now()) for t in self._in_plan()]
        rows = [t for t in rows if (not job or t.job == job) and (not ids or t.id in ids)]
        rows = [t for t in rows if state in (None, t.state) and stage in ("", t.stage)]
        return _page(rows, cursor, limit, lambda task: task.id)

    def events(
        self, job: str, after: int = 0, types: Collection[EventType] = (), task: str = "", limit: int = 500
    ) -> tuple[Event, ...]:
        """Numbered events after a number, or the log lines of a task."""
        with self._lock:
            if task and set(types) == {EventType.LOG}:
                return self._log_lines(job, task, after, limit)
            told = self._jobs[job].events[after:] if job in self._jobs else []
            told = [e for e in told if (not types or e.type in types) and task in ("", e.task)]
            return tuple(told[:limit])

    def changed(self, cursor: str = "") -> tuple[tuple[str, ...], str]:
        """Jobs whose event number moved since the cursor; call again until there are none."""
        with self._lock:
            rows = sorted((j.changed, j.new.id) for j in self._jobs.values() if j.changed > int(cursor or 0))
            return tuple(id for _, id in rows), str(rows[-1][0]) if rows else cursor

    def workers(self) -> tuple[Worker, ...]:
        """Every worker that has a row."""
        with self._lock:
            return tuple(self._worker(w) for w in self._workers.values() if not w.over)

    def close(self) -> None:
        """Nothing to let go of."""


def _page(rows: Sequence[T], cursor: str, limit: int, name: Callable[[T], str]) -> Page[T]:
    """Rows after the one that the cursor names."""
    begin = next((n + 1 for n, row in enumerate(rows) if name(row) == cursor), 0)
    some = tuple(rows[begin : begin + limit])
    return Page(some, name(some[-1]) if len(some) == limit else "")
