"""The ledger in memory: the reference that other backends are compared with, simple and obviously right."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

from rushes.domain.event import Event, EventType
from rushes.domain.job import FINAL, Job, JobCommand, JobState, NewJob
from rushes.domain.result import Result
from rushes.domain.task import Draft, Failure, Finish, Lease, LeaseStatus, Need, Task, TaskState, Verdict
from rushes.domain.worker import Incarnation, Worker
from rushes.ledger import rules
from rushes.ledger.counts import count_tasks, only_ready
from rushes.ledger.memory.state import JobRow, MemoryState, TaskRow, WorkerRow
from rushes.ledger.port import Arrival, Completed, Debt, Page, Renewed, StageCount, Submitted, SweepResult

T = TypeVar("T")


class MemoryLedger(MemoryState):
    """Jobs, tasks, leases, results, events and workers in dicts, under one lock."""

    batch = 500
    finds_next = True

    # Taking in
    def submit(self, new: NewJob, first: Draft) -> Submitted:
        with self._lock:
            created = new.id not in self._jobs
            if created:
                number = max((job.number for job in self._jobs.values()), default=0) + 1
                job = self._jobs[new.id] = JobRow(new, number, self._wall(), new.priority, opened=first.adopted)
                self._add_event(job, EventType.SUBMITTED, {"name": new.name, "recipe": new.recipe})
                self._insert(job, [first])
                self._settle(job)
            return Submitted(self._jobs[new.id].job(), created)

    def draft(self, job: str, task: str, fence: int, tasks: Sequence[Draft], facts: str) -> Verdict:
        with self._lock:
            row = self._task(task)
            if row is None or not row.status.holds(fence):
                return self._verdict(task, fence, "done")
            mine = self._jobs[job]
            if mine.drafted[0] != fence:
                mine.drafts = {}
            mine.drafted = (fence, facts)
            mine.drafts |= {d.id: d for d in tasks}
            rules.check_plan_size(len(mine.drafts))
            return Verdict.OK

    def arrived(self, key: str, etag: str) -> Arrival:
        with self._lock:
            oldest = self._wall() - 1000 * rules.LOCK_SECONDS
            self._arrived = {one: at for one, at in self._arrived.items() if at > oldest}
            new, need = (key, etag) not in self._arrived, Need(key, is_key=True)
            self._arrived.setdefault((key, etag), self._wall())
            first = next(known for name, known in self._arrived if name == key)
            again = () if etag == first else self._jobs_begun_by(need)
            return Arrival(self._meet_needs(need) if new else (), again)

    # Working
    def claim(self, worker: str, lanes: Sequence[str], n: int, hinted: Collection[str] = ()) -> tuple[Lease, ...]:
        with self._lock:
            row = self._workers.get(worker)
            if row is None or row.over or row.until <= self._now():
                raise rules.lease_over(worker)
            tasks = [t for t in self._in_claim_order() if t.claimable and t.draft.lane in lanes]
            tasks = [t for t in tasks if not hinted or t.id in hinted]
            return () if row.draining else tuple(self._lease(task, worker) for task in tasks[:n])

    def renew(
        self, worker: Incarnation, holding: Mapping[str, int], progress: Mapping[str, float], note: str = ""
    ) -> Renewed:
        with self._lock:
            row = self._workers.setdefault(worker.id, WorkerRow(worker, 0.0, self._wall()))
            if row.over:
                return Renewed(dict.fromkeys(holding, LeaseStatus.LOST), gone=True)
            row.until, row.note = self._now() + worker.lease_seconds, note
            for task, fraction in progress.items():
                held = self._held(worker.id, task, holding.get(task, 0))
                if held:
                    held.progress = fraction
            tasks = {task.id: task.status for task in self._in_plan_order() if task.id in holding}
            return Renewed(rules.lease_statuses(tasks, worker.id, holding), row.draining)

    def complete(self, worker: str, finishes: Sequence[Finish]) -> Completed:
        with self._lock:
            won: dict[str, Finish] = {}
            for finish in finishes:
                if self._held(worker, finish.task, finish.fence):
                    won.setdefault(finish.task, finish)
            ready = self._finish(won)
            return Completed(tuple(self._verdict(f.task, f.fence, "done") for f in finishes), ready)

    def fail(self, worker: str, task: str, fence: int, failure: Failure, delay: float | None) -> Verdict:
        with self._lock:
            row = self._held(worker, task, fence)
            if row is None:
                return self._verdict(task, fence, "failed")
            row.failures, row.job.failures = row.failures + 1, row.job.failures + 1
            self._add_event(row.job, EventType.FAILED, row.status.failed_attempt(failure, delay), task)
            self._fail(row, "failed", failure, delay)
            self._settle(row.job)
            return Verdict.OK

    def give_back(self, worker: str, held: Sequence[tuple[str, int]], reason: str, delay: float = 0.0) -> None:
        with self._lock:
            for task, fence in held:
                row = self._held(worker, task, fence)
                if row:
                    self._add_event(row.job, EventType.GIVEN_BACK, row.status.attempt(reason=reason), task)
                    row.end(TaskState.READY, "given_back")
                    if delay:
                        row.due, row.failure = self._now() + delay, None
                    self._settle(row.job)

    def sweep(self, limit: int = 500, paid: Sequence[Debt] = ()) -> SweepResult:
        with self._lock:
            for worker in self._workers.values():
                worker.over = worker.over or worker.until <= self._now() or self._is_gone(worker.who)
            orphans = [t for t in self._in_plan_order() if t.worker and self._workers[t.worker].over][:limit]
            for task in orphans:
                self._lose(task)
            for job in {task.job for task in orphans}:
                self._settle(job)
            for task in self._in_plan_order():
                task.due = None if task.due is not None and task.due <= self._now() else task.due
            self._debts -= {(d.owner, d.job, d.key) for d in paid}
            debts = tuple(Debt(*debt) for debt in sorted(self._debts)[:limit])
            ready, due = self._announce(limit), self._next_due()
            quiet = not (ready or debts or orphans or due is not None or any(t.worker for t in self._in_plan_order()))
            return SweepResult(ready, debts, len(orphans), due, quiet)

    # Steering
    def control(self, target: str, command: JobCommand, value: int = 0, stages: Collection[str] = ()) -> Job | None:
        with self._lock:
            if command in (JobCommand.DRAIN, JobCommand.LEAVE):
                self._control_worker(target, command)
                return None
            job = self._job(target)
            if command is JobCommand.FORGET:
                self._forget(job)
                return None
            if command is JobCommand.TRIM:
                job.trim(self._wall() - 1000 * value)
                return job.job()
            event = rules.apply_command(job, command, value, stages)
            if event:
                self._add_event(job, *event)
            if event and stages:
                self._cancel_stages(job)
            for row in job.tasks.values():
                if job.cancelled and row.state is TaskState.LEASED:
                    row.state, row.worker, row.progress = TaskState.READY, None, 0.0
            self._settle(job)
            return job.job()

    def revive(
        self,
        job: str,
        tasks: Collection[str] = (),
        stages: Collection[str] = (),
        again: bool = False,
        delayed: bool = False,
    ) -> tuple[str, ...]:
        with self._lock:
            mine = self._job(job)
            if delayed:
                return self._end_delays(mine, tasks)
            if again and mine.cancelled:
                return ()
            mine.cancelled = False
            if not again:
                mine.cancelled_stages = [stage for stage in mine.cancelled_stages if stage not in stages]
            rows = [t for t in mine.tasks.values() if not stages or t.draft.stage in stages]
            rows = [t for t in rows if not tasks or t.id in tasks]
            rows = [t for t in rows if self._is_revivable(t, again=again, named=bool(stages))]
            for row in rows:
                self._refresh(row)
            self._reset_needs(mine)
            for row in rows:
                self._make_ready(row)
            self._settle(mine)
            return tuple(t.id for t in rows)

    def known(self, owner: str, keys: Collection[str]) -> Mapping[str, Result]:
        with self._lock:
            return {key: self._results[owner, key] for key in keys if (owner, key) in self._results}

    def set_aside(self, owner: str, keys: Collection[str], reason: str, note_only: bool = False) -> int:  # noqa: ARG002 - nobody reads the reason here
        with self._lock:
            if note_only:
                return len(self.known(owner, keys))
            return sum(self._results.pop((owner, key), None) is not None for key in set(keys))

    def log(self, task: str, fence: int, first: int, lines: Sequence[str]) -> None:
        with self._lock:
            row = self._task(task)
            if row and lines:
                row.keep_log(fence, first, lines, self._wall())

    # Looking
    def job(self, job: str) -> Job:
        with self._lock:
            return self._job(job).job()

    def jobs(
        self,
        owner: str,
        state: JobState | None = None,
        oldest_first: bool = False,
        cursor: str = "",
        limit: int = 100,
        ids: Collection[str] = (),
        queue: str = "",
    ) -> Page[Job]:
        with self._lock:
            rows = [j for j in self._jobs.values() if j.new.owner == owner]
            if ids:
                return Page(tuple(j.job() for j in rows if j.id in ids))
            rows = [j for j in rows if state in (None, j.state) and queue in ("", j.new.queue)]
            finished = state in FINAL and not queue
            rows.sort(key=lambda j: ((j.finished or 0) if finished else 0, j.number), reverse=not oldest_first)
            return _page([job.job() for job in rows], cursor, limit, lambda job: job.id)

    def tasks(
        self,
        job: str = "",
        state: TaskState | None = None,
        stage: str = "",
        ids: Collection[str] = (),
        cursor: str = "",
        limit: int = 500,
    ) -> Page[Task]:
        with self._lock:
            rows = [t.task(self._now()) for t in self._in_plan_order()]
        rows = [t for t in rows if job in ("", t.job) and (not ids or t.id in ids)]
        rows = [t for t in rows if state in (None, t.state) and stage in ("", t.stage)]
        return _page(rows, cursor, limit, lambda task: task.id)

    def events(
        self, job: str, after: int = 0, types: Collection[EventType] = (), task: str = "", limit: int = 500
    ) -> tuple[Event, ...]:
        with self._lock:
            if task and set(types) == {EventType.LOG}:
                row = self._task(task)
                return row.log_lines(after, limit) if row else ()
            events = [e for e in self._jobs[job].events if e.number > after] if job in self._jobs else []
            if not types and not task:
                return rules.with_truncation(events[:limit], after, limit)
            return tuple([e for e in events if (not types or e.type in types) and task in ("", e.task)][:limit])

    def changed(self, cursor: str = "") -> tuple[tuple[str, ...], str]:
        with self._lock:
            rows = sorted((j.changed, j.id) for j in self._jobs.values() if j.changed > int(cursor or 0))
            return tuple(id for _, id in rows), str(rows[-1][0]) if rows else cursor

    def workers(self) -> tuple[Worker, ...]:
        with self._lock:
            held = {id: tuple(t.id for t in self._in_plan_order() if t.worker == id) for id in self._workers}
            return tuple(w.worker(held[id], self._now()) for id, w in self._workers.items() if not w.over)

    def counts(self, jobs: Collection[str] = ()) -> tuple[StageCount, ...]:
        with self._lock:
            rows = [t for t in self._in_plan_order() if (t.job.id in jobs if jobs else t.claimable)]
            found = count_tasks([t.task(self._now()) for t in rows], self._wall())
        return found if jobs else only_ready(found)

    def close(self) -> None:
        """Nothing to close."""

    # Parts of verbs
    def _control_worker(self, id: str, command: JobCommand) -> None:
        row = self._workers.get(id)
        rules.check_worker(id, command, known=row is not None, over=bool(row and row.over))
        if row is None:
            return
        if command is JobCommand.DRAIN:
            row.draining = True
        elif any(task.worker == id for task in self._in_plan_order()):
            row.until = min(row.until, self._now())
        else:
            row.over = True

    def _end_delays(self, job: JobRow, tasks: Collection[str]) -> tuple[str, ...]:
        rows = [t for t in job.tasks.values() if t.id in tasks and t.due is not None]
        for row in rows:
            row.due = None
        return tuple(t.id for t in rows)

    def _is_revivable(self, row: TaskRow, *, again: bool, named: bool) -> bool:
        return rules.is_revivable(row.state, backs_off=row.due is not None, again=again, named=named)

    def _forget(self, job: JobRow) -> None:
        rules.check_forget(job.id, job.state)
        del self._jobs[job.id]
        self._debts = {debt for debt in self._debts if debt[1] != job.id}

    def _announce(self, limit: int) -> tuple[str, ...]:
        """Tasks to announce, an equal share of each lane."""
        lanes: dict[str, list[str]] = {}
        for task in self._in_claim_order():
            if task.claimable:
                lanes.setdefault(task.draft.lane, []).append(task.id)
        share = rules.lane_share(limit, len(lanes))
        return tuple(task for lane in sorted(lanes) for task in lanes[lane][:share])

    def _next_due(self) -> float | None:
        dues = [t.due for t in self._in_plan_order() if t.due is not None and not t.job.stopped]
        return min(dues) - self._now() if dues else None


def _page(rows: Sequence[T], cursor: str, limit: int, name: Callable[[T], str]) -> Page[T]:
    """Rows after the one that the cursor names."""
    begin = next((n + 1 for n, row in enumerate(rows) if name(row) == cursor), 0)
    some = tuple(rows[begin : begin + limit])
    return Page(some, name(some[-1]) if len(some) == limit else "")
