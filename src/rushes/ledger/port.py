"""The ledger: the only truth about work. Every verb is one transaction and can be repeated.

Verbs take durations, never instants: each backend owns its clock. A fence is checked in the transaction of the write.
Lists come in pages: `cursor` is opaque, "" begins, and an empty next cursor ends.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from rushes.domain.event import Event, EventType
from rushes.domain.job import Job, JobCommand, JobState, NewJob
from rushes.domain.result import Result
from rushes.domain.task import Draft, Failure, Finish, Lease, LeaseStatus, Task, TaskState, Verdict
from rushes.domain.worker import Incarnation, Worker

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some rows, and where the next ones begin ("" when there are none)."""

    rows: tuple[T, ...]
    cursor: str = ""


@dataclass(frozen=True, slots=True)
class Submitted:
    """The job, and whether this call made it."""

    job: Job
    created: bool


@dataclass(frozen=True, slots=True)
class Renewed:
    """What to do with each task held, and with the worker itself."""

    leases: Mapping[str, LeaseStatus]
    drain: bool = False
    gone: bool = False  # the worker's row is over: every lease is lost, go on as a new incarnation


@dataclass(frozen=True, slots=True)
class Completed:
    """An answer per finish, in order, and the tasks that became ready (to be announced)."""

    verdicts: tuple[Verdict, ...]
    ready: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Debt:
    """A result whose published names are still to be made; named in `paid` once they are."""

    owner: str
    job: str
    key: str


@dataclass(frozen=True, slots=True)
class Arrival:
    """What a blob key that is there means: tasks that became ready, and jobs that began with other content of it."""

    ready: tuple[str, ...] = ()
    again: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SweepResult:
    """What a sweep found: tasks to announce, names to publish, tasks released, and when the next one is due."""

    ready: tuple[str, ...] = ()
    debts: tuple[Debt, ...] = ()
    released: int = 0
    next_due: float | None = None  # seconds until the earliest task that backs off
    quiet: bool = field(default=False, compare=False)  # nothing is ready, leased, owed or due, as far as it looked


@dataclass(frozen=True, slots=True)
class StageCount:
    """Tasks of one stage in one lane: how many wait for a worker, and what came of their attempts."""

    lane: str
    stage: str
    ready: int = 0  # a claim may take them now
    oldest_seconds: float = 0.0  # since the oldest of these was planned
    done: int = 0  # without those that were adopted
    dead: int = 0
    failures: int = 0  # attempts that failed
    retries: int = 0  # of these, the ones after which it was tried again
    losses: int = 0  # attempts whose worker was lost
    seconds: float = 0.0  # that those took which are done


class WorkLedger(Protocol):
    """The part of a ledger that a worker needs: hold tasks and report their outcomes."""

    batch: int  # how many tasks one claim or complete may carry
    finds_next: bool  # a claim of any task is as quick as one of hinted ids, and keeps to the order of priorities

    def claim(self, worker: str, lanes: Sequence[str], n: int, hinted: Collection[str] = ()) -> tuple[Lease, ...]:
        """Up to n ready tasks in those lanes: higher priority first, then job age, then plan order.

        Each lease has a fence greater than any before on that task. With `hinted`, only those ids are looked at.
        A task that another call is just looking at is passed over, so that with many workers a less urgent one may
        go before it.
        Raises:
            LeaseLost: the worker's own row is over.
        """

    def renew(
        self, worker: Incarnation, holding: Mapping[str, int], progress: Mapping[str, float], note: str = ""
    ) -> Renewed:
        """Enter or keep the worker's row for a lease; `holding` maps each task held to its fence."""

    def complete(self, worker: str, finishes: Sequence[Finish]) -> Completed:
        """Done: results, count-down of dependants, events, job counters, debts, in ONE transaction.

        A finish repeated by the fence that did it is OK again. Completing the task that opens a plan opens it:
        drafts of that fence become tasks, adopted ones done. A paused job still commits; a cancelled one never.
        """

    def fail(self, worker: str, task: str, fence: int, failure: Failure, delay: float | None) -> Verdict:
        """The attempt failed: ready again after `delay` seconds, or dead when it is None. Counts as one failure."""

    def give_back(self, worker: str, held: Sequence[tuple[str, int]], reason: str, delay: float = 0.0) -> None:
        """Hand tasks back, claimable at once or after `delay` seconds, counted as nothing.

        Stale ones are passed over. With a delay the last failure is shown no more: they do not wait because of it.
        """

    def sweep(self, limit: int = 500, paid: Sequence[Debt] = ()) -> SweepResult:
        """Release what dead workers held, flip due tasks, strike out debts that were paid; answer what is owed.

        A released task counts a loss; the tenth loss is dead (KillsItsWorker).
        """

    def control(self, target: str, command: JobCommand, value: int = 0, stages: Collection[str] = ()) -> Job | None:
        """Command a job (pause, pause_now, resume, cancel, priority) or a worker (drain, leave). One write on its row.

        With `stages`, cancel ends those alone, whatever state the job is in, also before its plan is open: what is
        not finished of them is cancelled and not counted any more. Callers name what needs them as well.

        Of any job `trim` drops events and log lines that are at least `value` seconds old, but for the last event;
        `forget` drops a finished job whole (its results stay), and answers None.
        Raises:
            NotFound: no such job or worker.
            Refused: the job is finished (except priority, which is then ignored), or not yet finished (forget).
        """

    def known(self, owner: str, keys: Collection[str]) -> Mapping[str, Result]:
        """Which of these results exist."""

    def log(self, task: str, fence: int, first: int, lines: Sequence[str]) -> None:
        """Keep log lines of an attempt, numbered from `first` by the worker; repeats change nothing. Best effort."""

    def workers(self) -> tuple[Worker, ...]:
        """Every worker that has a row."""


class Ledger(WorkLedger, Protocol):
    """Jobs, tasks, leases, results, events and workers; nothing of video."""

    # Taking in
    def submit(self, new: NewJob, first: Draft) -> Submitted:
        """A job with its first task and first event; the same id again changes nothing and answers the job there is.

        A first task with a key need waits until the key has arrived (now, if it arrived before).
        """

    def draft(self, job: str, task: str, fence: int, tasks: Sequence[Draft], facts: str) -> Verdict:
        """Write a page of the plan, unseen by claims; repeatable; opened by the completion of `task` at that fence.

        A later attempt's page replaces an earlier attempt's. `facts` is kept on the job when the plan opens.
        """

    def arrived(self, key: str, etag: str) -> Arrival:
        """A blob key is there: its first content meets every need of it, once.

        The same (key, etag) again changes nothing, for at least 90 days. Other content changes nothing either: each
        time it is told, the answer names the jobs that began with the first.
        """

    # Steering
    def revive(
        self,
        job: str,
        tasks: Collection[str] = (),
        stages: Collection[str] = (),
        again: bool = False,
        delayed: bool = False,
    ) -> tuple[str, ...]:
        """Make dead tasks ready with fresh tries (all of the job, those named, or some stages'); answers their ids.

        A cancelled job goes on, and a task that backs off is due now (answered too; its tries and history stay).
        Stages that were cancelled by themselves go on if they are named.
        With `again` (repair), tasks that are done are done again as well, no back-off ends, and a cancelled job
        stays as it is: () and no change.
        With `delayed`, those named that wait for their time are due now, and nothing else changes, whatever the job's
        state.
        """

    def set_aside(self, owner: str, keys: Collection[str], reason: str, note_only: bool = False) -> int:
        """Take results out of the ledger (damaged, or no longer wanted); answers how many there were.

        With `note_only` they stay: a SQL ledger notes the reason, for whoever looks at its tables.
        """

    # Looking
    def job(self, job: str) -> Job:
        """One job.

        Raises:
            NotFound: no such job.
        """

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
        """An owner's jobs by time of creation (finished states by time of finish), newest first by default.

        With `queue`, those that were put into it, in any state by time of creation.
        With `ids`, those of the named ones that are this owner's, all at once and in no order.
        """

    def tasks(
        self,
        job: str = "",
        state: TaskState | None = None,
        stage: str = "",
        ids: Collection[str] = (),
        cursor: str = "",
        limit: int = 500,
    ) -> Page[Task]:
        """Tasks of a job in plan order; without a job, of all jobs (by state) or those named."""

    def events(
        self, job: str, after: int = 0, types: Collection[EventType] = (), task: str = "", limit: int = 500
    ) -> tuple[Event, ...]:
        """Numbered events after a number; with types={LOG} and a task, its log lines instead (latest attempt).

        If some of them are no longer kept, the first one is TRUNCATED (unless types or a task are asked for): its
        number is that of the last one dropped, and its data names the oldest there is (`before`).
        """

    def changed(self, cursor: str = "") -> tuple[tuple[str, ...], str]:
        """Jobs whose event number moved since the cursor, at least once each, and the next cursor.

        A cursor of another ledger (this one was lost, or restored as it was before) is like none.
        """

    def counts(self, jobs: Collection[str] = ()) -> tuple[StageCount, ...]:
        """By lane and stage, what these jobs' tasks add up to; without any, only what is ready, of every job.

        The cost is that of the named jobs, or of what is ready (100,000 tasks are looked at, at most), never that of
        all there ever was.
        """
