"""The ledger on SQL: its verbs, written once over named statements; `sqlite` and `postgres` have dialects."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from rushes.domain.event import Event, EventType
from rushes.domain.job import Job, JobCommand, JobState, NewJob
from rushes.domain.result import Result
from rushes.domain.task import Draft, Failure, Finish, Lease, Task, TaskState, Verdict
from rushes.domain.worker import Incarnation, Worker
from rushes.ledger.port import Arrival, Completed, Debt, Page, Renewed, StageCount, Submitted, SweepResult
from rushes.ledger.sql import control, intake, queries, results, sweep, work
from rushes.ledger.sql.transaction import Reader, Row, Transaction

T = TypeVar("T")
STATEMENTS = sorted(Path(__file__).parent.glob("*.sql"))


class SqlLedger(ABC):
    """Jobs, tasks, leases, results, events and workers as rows; one transaction per verb."""

    batch = 500
    finds_next = True

    def __init__(self, is_gone: Callable[[Incarnation], bool]) -> None:
        self._is_gone = is_gone

    @abstractmethod
    def _write(self, verb: str, body: Callable[[Transaction], T]) -> T:
        """Run the body in a transaction that is committed at the end, or leaves no trace."""

    @abstractmethod
    def _read(self, body: Callable[[Reader], T]) -> T:
        """Run the body over what is committed."""

    def _submit(self, new: NewJob, first: Draft) -> list[Row]:
        return self._write("submit", lambda tx: intake.submit(tx, new, first))()

    # Taking in
    def submit(self, new: NewJob, first: Draft) -> Submitted:
        """A job with its first task and first event; the same id again changes nothing."""
        made = self._submit(new, first)
        fresh = made and not first.needs and not first.adopted
        return Submitted(intake.submitted(new, made[0][0]) if fresh else self.job(new.id), bool(made))

    def draft(self, job: str, task: str, fence: int, tasks: Sequence[Draft], facts: str) -> Verdict:  # noqa: ARG002 - the task's id names its job
        """Write a page of the plan, unseen by claims."""
        return self._write("draft", lambda tx: intake.draft(tx, task, fence, tasks, facts))

    def arrived(self, key: str, etag: str) -> Arrival:
        """A blob key is there: meets every need of it once; answers the tasks that became ready."""
        return self._write("arrived", lambda tx: intake.arrived(tx, key, etag))

    # Working
    @abstractmethod
    def claim(self, worker: str, lanes: Sequence[str], n: int, hinted: Collection[str] = ()) -> tuple[Lease, ...]:
        """Up to n ready tasks in those lanes, by priority, age of the job and plan order."""

    def renew(
        self, worker: Incarnation, holding: Mapping[str, int], progress: Mapping[str, float], note: str = ""
    ) -> Renewed:
        """Enter or keep the worker's row for a lease."""
        return self._write("renew", lambda tx: work.renew(tx, worker, holding, progress, note))

    def complete(self, worker: str, finishes: Sequence[Finish]) -> Completed:
        """Done: results, count-down of dependants, events, job counters, debts."""
        return self._write("complete", lambda tx: work.complete(tx, worker, finishes))

    def fail(self, worker: str, task: str, fence: int, failure: Failure, delay: float | None) -> Verdict:
        """The attempt failed: ready again after `delay` seconds, or dead when it is None."""
        return self._write("fail", lambda tx: work.fail(tx, worker, task, fence, failure, delay))

    def give_back(self, worker: str, held: Sequence[tuple[str, int]], reason: str, delay: float = 0.0) -> None:
        """Hand tasks back, claimable at once or after a delay, counted as nothing."""
        self._write("give_back", lambda tx: work.give_back(tx, worker, held, reason, delay))

    def sweep(self, limit: int = 500, paid: Sequence[Debt] = ()) -> SweepResult:
        """Release what dead workers held, flip due tasks, strike out paid debts; answer what is owed."""
        if not paid and self._read(lambda reader: sweep.is_quiet(reader, self._is_gone)):
            return SweepResult(quiet=True)
        return self._write("sweep", lambda tx: sweep.sweep(tx, limit, paid, self._is_gone))

    # Steering
    def control(self, target: str, command: JobCommand, value: int = 0, stages: Collection[str] = ()) -> Job | None:
        """Tell a job or a worker."""
        if command in (JobCommand.DRAIN, JobCommand.LEAVE):
            self._write("control", lambda tx: control.command_worker(tx, target, command))
            return None
        if command is JobCommand.FORGET:
            self._write("control", lambda tx: control.forget_job(tx, target))
            return None
        if command is JobCommand.TRIM:
            self._write("control", lambda tx: control.trim_job(tx, target, value))
            return self.job(target)
        self._write("control", lambda tx: control.command_job(tx, target, command, value, stages))
        return self.job(target)

    def revive(
        self,
        job: str,
        tasks: Collection[str] = (),
        stages: Collection[str] = (),
        again: bool = False,
        delayed: bool = False,
    ) -> tuple[str, ...]:
        """Make dead tasks ready with fresh tries, and end back-offs; a cancelled job goes on."""
        if delayed:
            return self._write("revive", lambda tx: control.end_delays(tx, job, tasks))
        return self._write("revive", lambda tx: control.revive(tx, job, tasks, stages, again))

    def known(self, owner: str, keys: Collection[str]) -> Mapping[str, Result]:
        """Which of these results exist."""
        return self._read(lambda reader: results.known(reader, owner, keys))

    def set_aside(self, owner: str, keys: Collection[str], reason: str, note_only: bool = False) -> int:
        """Take results out of the ledger; answers how many there were."""
        return self._write("set_aside", lambda tx: results.set_aside(tx, owner, keys, reason, note_only))

    def log(self, task: str, fence: int, first: int, lines: Sequence[str]) -> None:
        """Keep log lines of an attempt; repeats change nothing."""
        self._write("log", lambda tx: results.log(tx, task, fence, first, lines))

    # Looking
    def job(self, job: str) -> Job:
        """One job.

        Raises:
            NotFound: no such job.
        """
        return self._read(lambda reader: queries.job(reader, job))

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
        """An owner's jobs by time of creation, finished states by time of finish."""
        if ids:
            return self._read(lambda reader: queries.named_jobs(reader, owner, ids))
        if queue:
            return self._read(
                lambda reader: queries.queued_jobs(reader, owner, queue, state, oldest_first, cursor, limit)
            )
        return self._read(lambda reader: queries.jobs(reader, owner, state, oldest_first, cursor, limit))

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
        return self._read(lambda reader: queries.tasks(reader, job, state, stage, ids, cursor, limit))

    def events(
        self, job: str, after: int = 0, types: Collection[EventType] = (), task: str = "", limit: int = 500
    ) -> tuple[Event, ...]:
        """Numbered events after a number, or the log lines of a task."""
        return self._read(lambda reader: queries.events(reader, job, after, types, task, limit))

    @abstractmethod
    def changed(self, cursor: str = "") -> tuple[tuple[str, ...], str]:
        """Jobs whose event number moved since the cursor; call again until there are none."""

    def workers(self) -> tuple[Worker, ...]:
        """Every worker that has a row."""
        return self._read(queries.workers)

    def counts(self, jobs: Collection[str] = ()) -> tuple[StageCount, ...]:
        """What tasks add up to, by lane and stage."""
        return self._read(lambda reader: queries.counts(reader, jobs))
