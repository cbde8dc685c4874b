"""The ledger on DynamoDB: one table, every verb within 90 items of a transaction; what does not fit is owed.

Decisions are made here on rows as they were read; a transaction holds only if none of them has changed since.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

from rushes.aws.table import Table
from rushes.domain.event import Event, EventType
from rushes.domain.job import Job, JobCommand, JobState, NewJob
from rushes.domain.result import Result
from rushes.domain.task import Draft, Failure, Finish, Lease, Task, TaskState, Verdict
from rushes.domain.worker import Incarnation, Worker
from rushes.ledger.clock import Seconds, boot_seconds
from rushes.ledger.dynamodb import claims, control, intake, queries, results, sweep, work
from rushes.ledger.dynamodb.store import Heartbeats, Store
from rushes.ledger.port import Completed, Debt, Page, Renewed, Submitted, SweepResult


class DynamoLedger:
    """Jobs, tasks, leases, results, events and workers in one table."""

    batch = claims.STATEMENTS
    finds_next = False

    def __init__(
        self,
        table: Table,
        clock: Seconds = boot_seconds,
        is_gone: Callable[[Incarnation], bool] = lambda _: False,
        heartbeats: Heartbeats | None = None,
    ) -> None:
        """`heartbeats` are shared by the ledgers of one process."""
        self._store = Store(table, clock, heartbeats or Heartbeats(clock))
        self._is_gone = is_gone

    # Taking in
    def submit(self, new: NewJob, first: Draft) -> Submitted:
        return intake.submit(self._store, new, first)

    def draft(self, job: str, task: str, fence: int, tasks: Sequence[Draft], facts: str) -> Verdict:
        return intake.draft(self._store, job, task, fence, tasks, facts)

    def arrived(self, key: str, etag: str) -> tuple[str, ...]:
        return intake.arrived(self._store, key, etag)

    # Working
    def claim(self, worker: str, lanes: Sequence[str], n: int, hinted: Collection[str] = ()) -> tuple[Lease, ...]:
        return claims.claim(self._store, worker, lanes, n, hinted)

    def renew(
        self, worker: Incarnation, holding: Mapping[str, int], progress: Mapping[str, float], note: str = ""
    ) -> Renewed:
        return work.renew(self._store, worker, holding, progress, note)

    def complete(self, worker: str, finishes: Sequence[Finish]) -> Completed:
        return work.complete(self._store, worker, finishes)

    def fail(self, worker: str, task: str, fence: int, failure: Failure, delay: float | None) -> Verdict:
        return work.fail(self._store, worker, task, fence, failure, delay)

    def give_back(self, worker: str, held: Sequence[tuple[str, int]], reason: str) -> None:
        work.give_back(self._store, worker, held, reason)

    def sweep(self, limit: int = 500, paid: Sequence[Debt] = ()) -> SweepResult:
        return sweep.sweep(self._store, self._is_gone, limit, paid)

    # Steering
    def control(self, target: str, command: JobCommand, value: int = 0) -> Job | None:
        if command in (JobCommand.DRAIN, JobCommand.LEAVE):
            control.control_worker(self._store, target, command)
            return None
        return control.control_job(self._store, target, command, value)

    def revive(self, job: str, tasks: Collection[str] = (), stage: str = "", again: bool = False) -> tuple[str, ...]:
        return control.revive(self._store, job, tasks, stage, again)

    def known(self, owner: str, keys: Collection[str]) -> Mapping[str, Result]:
        return results.known(self._store, owner, keys)

    def set_aside(self, owner: str, keys: Collection[str], reason: str) -> int:  # noqa: ARG002 - nobody reads it here
        return results.set_aside(self._store, owner, keys)

    def log(self, task: str, fence: int, first: int, lines: Sequence[str]) -> None:
        results.log(self._store, task, fence, first, lines)

    # Looking
    def job(self, job: str) -> Job:
        return queries.job_of(self._store.begin(), job)

    def jobs(
        self,
        owner: str,
        state: JobState | None = None,
        oldest_first: bool = False,
        cursor: str = "",
        limit: int = 100,
        ids: Collection[str] = (),
    ) -> Page[Job]:
        if ids:
            return queries.named_jobs(self._store, owner, ids)
        return queries.jobs(self._store, owner, state, oldest_first, cursor, limit)

    def tasks(
        self,
        job: str = "",
        state: TaskState | None = None,
        stage: str = "",
        ids: Collection[str] = (),
        cursor: str = "",
        limit: int = 500,
    ) -> Page[Task]:
        return queries.tasks(self._store, job, state, stage, ids, cursor, limit)

    def events(
        self, job: str, after: int = 0, types: Collection[EventType] = (), task: str = "", limit: int = 500
    ) -> tuple[Event, ...]:
        if task and set(types) == {EventType.LOG}:
            return results.log_lines(self._store, job, task, after, limit)
        return queries.events(self._store, job, after, types, task, limit)

    def changed(self, cursor: str = "") -> tuple[tuple[str, ...], str]:
        return queries.changed(self._store, cursor)

    def workers(self) -> tuple[Worker, ...]:
        return queries.workers(self._store)

    def close(self) -> None:
        """Nothing is held open between requests."""
