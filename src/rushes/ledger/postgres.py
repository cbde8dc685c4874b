"""The ledger on PostgreSQL: any number of processes and machines, one transaction per verb."""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from rushes.domain.errors import NotFound
from rushes.domain.event import Event, EventType
from rushes.domain.job import Job, JobCommand, JobState, NewJob
from rushes.domain.result import Result
from rushes.domain.task import Draft, Failure, Finish, Lease, Task, TaskState, Verdict
from rushes.domain.worker import Incarnation, Worker
from rushes.ledger import (
    postgres_finish,
    postgres_look,
    postgres_steer,
    postgres_sweep,
    postgres_take,
    postgres_work,
)
from rushes.ledger.clock import Millis
from rushes.ledger.port import Completed, Debt, Page, Renewed, Submitted, SweepResult
from rushes.ledger.postgres_claim import Claims
from rushes.ledger.presence import is_gone_from_here
from rushes.postgres.schema import migrate
from rushes.postgres.store import Postgres, Row, Transaction
from rushes.statements import statements

T = TypeVar("T")
_HERE = Path(__file__).parent
SQL = statements(*(_HERE / f"postgres_{part}.sql" for part in ("take", "work", "steer", "look")))


class PostgresLedger:
    """Jobs, tasks, leases, results, events and workers in one database, by its clock."""

    batch = 2000  # twice as many as on SQLite: a sixth less time a task
    finds_next = True

    def __init__(
        self,
        db: Postgres,
        *,
        wall: Millis | None = None,
        is_gone: Callable[[Incarnation], bool] = is_gone_from_here,
    ) -> None:
        """`wall` stands for the database's clock in tests."""
        self._db, self._wall, self._is_gone = db, wall, is_gone
        self._schema = migrate(db, "ledger", _HERE / "migrations" / "postgres")
        self._claims = Claims(db, SQL)
        db.ask(SQL["restored"], {})

    # Taking in
    def submit(self, new: NewJob, first: Draft) -> Submitted:
        """A job with its first task and first event; the same id again changes nothing."""
        made = self._write("submit", lambda turn: postgres_take.submit(turn, new, first, self._db.bell))
        rows = made.fetchall()  # they came with the commit
        return Submitted(postgres_look.job_of(rows[0]) if rows else self.job(new.id), created=bool(rows))

    def draft(self, job: str, task: str, fence: int, tasks: Sequence[Draft], facts: str) -> Verdict:  # noqa: ARG002 - the task's id names its job
        """Write a page of the plan, unseen by claims."""
        return self._write("draft", lambda turn: postgres_take.draft(turn, task, fence, tasks, facts))

    def arrived(self, key: str, etag: str) -> tuple[str, ...]:
        """A blob key is there: meets every need of it once; answers the tasks that became ready."""
        return self._write("arrived", lambda turn: postgres_take.arrived(turn, key, etag))

    # Working
    def claim(self, worker: str, lanes: Sequence[str], n: int, hinted: Collection[str] = ()) -> tuple[Lease, ...]:
        """Up to n ready tasks in those lanes, by priority, age of the job and plan order."""
        return self._claims.claim(worker, lanes, min(n, self.batch), hinted, self._wall and self._wall())

    def renew(
        self, worker: Incarnation, holding: Mapping[str, int], progress: Mapping[str, float], note: str = ""
    ) -> Renewed:
        """Enter or keep the worker's row for a lease."""
        return self._write(
            "renew", lambda turn: postgres_work.renew(turn, worker, holding, progress, note, self._schema)
        )

    def complete(self, worker: str, finishes: Sequence[Finish]) -> Completed:
        """Done: results, count-down of dependants, events, job counters, debts."""
        bold = iter((True, False, False))  # a second try is not so bold

        def turn(turn: Transaction) -> Completed:
            return postgres_finish.complete(turn, worker, finishes, self._claims.known, bold=next(bold))

        try:
            completed = self._write("complete", turn)
        except postgres_finish.TooBold:
            completed = self._write("complete", turn)
        self._claims.over([finish.task for finish in finishes])
        return completed

    def fail(self, worker: str, task: str, fence: int, failure: Failure, delay: float | None) -> Verdict:
        """The attempt failed: ready again after `delay` seconds, or dead when it is None."""
        said = self._write("fail", lambda turn: postgres_work.fail(turn, worker, task, fence, failure, delay))
        self._claims.over((task,))
        return said

    def give_back(self, worker: str, held: Sequence[tuple[str, int]], reason: str) -> None:
        """Hand tasks back, claimable at once, counted as nothing."""
        self._write("give_back", lambda turn: postgres_work.give_back(turn, worker, held, reason))
        self._claims.over(task for task, _ in held)

    def sweep(self, limit: int = 500, paid: Sequence[Debt] = ()) -> SweepResult:
        """Release what dead workers held, flip due tasks, strike out paid debts; answer what is owed."""
        return self._write("sweep", lambda turn: postgres_sweep.sweep(turn, limit, paid, self._is_gone), patience="1s")

    # Steering
    def control(self, target: str, command: JobCommand, value: int = 0) -> Job | None:
        """Tell a job or a worker."""
        if command in (JobCommand.DRAIN, JobCommand.LEAVE):
            self._write("control", lambda turn: postgres_steer.tell_worker(turn, target, command))
            return None
        self._write("control", lambda turn: postgres_steer.tell_job(turn, target, command, value))
        return self.job(target)

    def revive(self, job: str, tasks: Collection[str] = (), stage: str = "", again: bool = False) -> tuple[str, ...]:
        """Make dead tasks ready with fresh tries, and end back-offs; a cancelled job goes on."""
        return self._write("revive", lambda turn: postgres_steer.revive(turn, job, tasks, stage, again))

    def known(self, owner: str, keys: Collection[str]) -> Mapping[str, Result]:
        """Which of these results exist."""
        return postgres_look.known(self._ask, owner, keys)

    def set_aside(self, owner: str, keys: Collection[str], reason: str) -> int:
        """Take results out of the ledger; answers how many there were."""
        return self._write("set_aside", lambda turn: postgres_steer.set_aside(turn, owner, keys, reason))

    def log(self, task: str, fence: int, first: int, lines: Sequence[str]) -> None:
        """Keep log lines of an attempt; repeats change nothing."""
        self._write("log", lambda turn: postgres_steer.keep_log(turn, task, fence, first, lines))

    # Looking
    def job(self, job: str) -> Job:
        """One job.

        Raises:
            NotFound: no such job.
        """
        found = postgres_look.job(self._ask, job)
        if found is None:
            raise NotFound(f"no job {job}")
        return found

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
        if ids:
            return postgres_look.named_jobs(self._ask, owner, ids)
        return postgres_look.jobs(self._ask, owner, state, oldest_first, cursor, limit)

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
        return postgres_look.tasks(self._ask, job, state, stage, ids, cursor, limit)

    def events(
        self, job: str, after: int = 0, types: Collection[EventType] = (), task: str = "", limit: int = 500
    ) -> tuple[Event, ...]:
        """Numbered events after a number, or the log lines of a task."""
        return postgres_look.events(self._ask, job, after, types, task, limit)

    def changed(self, cursor: str = "") -> tuple[tuple[str, ...], str]:
        """Jobs whose event number moved since the cursor; call again until there are none."""
        return postgres_look.changed(self._ask, cursor)

    def workers(self) -> tuple[Worker, ...]:
        """Every worker that has a row."""
        return postgres_look.workers(self._ask)

    # Beside the port
    def close(self) -> None:
        """Let go of idle connections."""
        self._db.close()

    def _write(self, verb: str, body: Callable[[Transaction], T], patience: str = "5s") -> T:
        if verb not in ("complete", "log", "renew"):
            self._claims.forget()
        return self._db.write(f"ledger.{verb}", SQL, body, self._wall and self._wall(), patience)

    def _ask(self, name: str, /, **values: object) -> list[Row]:
        return self._db.ask(SQL[name], {**values, "at": self._wall and self._wall()} if "at" not in values else values)
