"""The ledger on SQLite: one file, several threads and processes, one transaction per verb."""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from rushes.domain.errors import NotFound, WrongHome
from rushes.domain.event import Event, EventType
from rushes.domain.job import Job, JobCommand, JobState, NewJob
from rushes.domain.result import Result
from rushes.domain.task import Draft, Failure, Finish, Lease, Task, TaskState, Verdict
from rushes.domain.worker import Incarnation, Worker
from rushes.ledger import (
    place,
    presence,
    sqlite_finish,
    sqlite_look,
    sqlite_results,
    sqlite_steer,
    sqlite_sweep,
    sqlite_take,
    sqlite_work,
)
from rushes.ledger.clock import Millis, Seconds, awake_seconds, boot_id, boot_seconds, wall_millis
from rushes.ledger.port import Completed, Debt, Page, Renewed, Submitted, SweepResult
from rushes.ledger.sqlite_store import Store, Transaction


class SqliteLedger:
    """Jobs, tasks, leases, results, events and workers in one SQLite file on a local disk."""

    batch = 1000
    finds_next = True

    def __init__(
        self,
        path: Path,
        *,
        clock: Seconds | None = None,
        awake: Seconds | None = None,
        shift: float = 0.0,
        wall: Millis = wall_millis,
        host: str | None = None,
        boot: str | None = None,
        is_gone: Callable[[Incarnation], bool] = presence.is_gone,
        mounts: Callable[[], str] = place.mounts,
        take_over: bool = False,
    ) -> None:
        kind = place.network_file_system(path.parent, mounts())
        if kind:
            raise WrongHome(f"{path.parent} is on a network file system ({kind})", "Keep the home on a local disk.")
        seconds, lasting = clock or boot_seconds, awake or clock or awake_seconds
        self._is_gone = is_gone
        self._flows = False  # the last claim found something: the next need not look first whether there is any
        self._known: dict[str, int] = {}  # keys of tasks that were claimed here
        self._store = Store(path, lambda: seconds() + shift, lambda: lasting() + shift, wall)
        try:
            self._move_in(host or presence.host_id(), boot or boot_id(), take_over)
        except BaseException:
            self._store.file.close()
            raise

    # Taking in
    def submit(self, new: NewJob, first: Draft) -> Submitted:
        """A job with its first task and first event; the same id again changes nothing."""
        with self._store.write("submit") as turn:
            created = sqlite_take.submit(turn, new, first)
            job = sqlite_look.job(turn, new.id)
        assert job is not None
        return Submitted(job, created)

    def draft(self, job: str, task: str, fence: int, tasks: Sequence[Draft], facts: str) -> Verdict:  # noqa: ARG002 - the task's id names its job
        """Write a page of the plan, unseen by claims."""
        with self._store.write("draft") as turn:
            return sqlite_take.draft(turn, task, fence, tasks, facts)

    def arrived(self, key: str, etag: str) -> tuple[str, ...]:
        """A blob key is there: meets every need of it once; answers the tasks that became ready."""
        with self._store.write("arrived") as turn:
            return sqlite_take.arrived(turn, key, etag)

    # Working
    def claim(self, worker: str, lanes: Sequence[str], n: int, hinted: Collection[str] = ()) -> tuple[Lease, ...]:
        """Up to n ready tasks in those lanes, by priority, age of the job and plan order."""
        if not self._flows:
            with self._store.read() as turn:
                if not sqlite_work.may_claim(turn, worker, lanes):
                    return ()
        with self._store.write("claim") as turn:
            leases = sqlite_work.claim(turn, worker, lanes, min(n, self.batch), hinted, self._known)
        self._flows = bool(leases)
        return leases

    def renew(
        self, worker: Incarnation, holding: Mapping[str, int], progress: Mapping[str, float], note: str = ""
    ) -> Renewed:
        """Enter or keep the worker's row for a lease."""
        with self._store.write("renew") as turn:
            return sqlite_work.renew(turn, worker, holding, progress, note)

    def complete(self, worker: str, finishes: Sequence[Finish]) -> Completed:
        """Done: results, count-down of dependants, events, job counters, debts."""
        with self._store.write("complete") as turn:
            return sqlite_finish.complete(turn, worker, finishes, self._known)

    def fail(self, worker: str, task: str, fence: int, failure: Failure, delay: float | None) -> Verdict:
        """The attempt failed: ready again after `delay` seconds, or dead when it is None."""
        with self._store.write("fail") as turn:
            return sqlite_work.fail(turn, worker, task, fence, failure, delay)

    def give_back(self, worker: str, held: Sequence[tuple[str, int]], reason: str) -> None:
        """Hand tasks back, claimable at once, counted as nothing."""
        with self._store.write("give_back") as turn:
            sqlite_work.give_back(turn, worker, held, reason)

    def sweep(self, limit: int = 500, paid: Sequence[Debt] = ()) -> SweepResult:
        """Release what dead workers held, flip due tasks, strike out paid debts; answer what is owed."""
        with self._store.read() as turn:
            if sqlite_sweep.nothing_to_do(turn, paid, self._is_gone):
                return sqlite_sweep.look(turn, limit)
        with self._store.write("sweep") as turn:
            return sqlite_sweep.sweep(turn, limit, paid, self._is_gone)

    # Steering
    def control(self, target: str, command: JobCommand, value: int = 0) -> Job | None:
        """Tell a job or a worker."""
        with self._store.write("control") as turn:
            if command in (JobCommand.DRAIN, JobCommand.LEAVE):
                sqlite_steer.tell_worker(turn, target, command)
                return None
            sqlite_steer.tell_job(turn, target, command, value)
            return sqlite_look.job(turn, target)

    def revive(self, job: str, tasks: Collection[str] = (), stage: str = "", again: bool = False) -> tuple[str, ...]:
        """Make dead tasks ready with fresh tries, and end back-offs; a cancelled job goes on."""
        with self._store.write("revive") as turn:
            return sqlite_steer.revive(turn, job, tasks, stage, again)

    def known(self, owner: str, keys: Collection[str]) -> Mapping[str, Result]:
        """Which of these results exist."""
        with self._store.read() as turn:
            return sqlite_results.known(turn, owner, keys)

    def set_aside(self, owner: str, keys: Collection[str], reason: str) -> int:
        """Take results out of the ledger; answers how many there were."""
        with self._store.write("set_aside") as turn:
            return sqlite_results.set_aside(turn, owner, keys, reason)

    def log(self, task: str, fence: int, first: int, lines: Sequence[str]) -> None:
        """Keep log lines of an attempt; repeats change nothing."""
        with self._store.write("log") as turn:
            sqlite_steer.keep_log(turn, task, fence, first, lines)

    # Looking
    def job(self, job: str) -> Job:
        """One job.

        Raises:
            NotFound: no such job.
        """
        with self._store.read() as turn:
            found = sqlite_look.job(turn, job)
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
        with self._store.read() as turn:
            if ids:
                return sqlite_look.named_jobs(turn, owner, ids)
            return sqlite_look.jobs(turn, owner, state, oldest_first, cursor, limit)

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
        with self._store.read() as turn:
            return sqlite_look.tasks(turn, job, state, stage, ids, cursor, limit)

    def events(
        self, job: str, after: int = 0, types: Collection[EventType] = (), task: str = "", limit: int = 500
    ) -> tuple[Event, ...]:
        """Numbered events after a number, or the log lines of a task."""
        with self._store.read() as turn:
            return sqlite_look.events(turn, job, after, types, task, limit)

    def changed(self, cursor: str = "") -> tuple[tuple[str, ...], str]:
        """Jobs whose event number moved since the cursor; call again until there are none."""
        with self._store.read() as turn:
            return sqlite_look.changed(turn, cursor)

    def workers(self) -> tuple[Worker, ...]:
        """Every worker that has a row."""
        with self._store.read() as turn:
            return sqlite_look.workers(turn)

    # Beside the port
    def backup(self, to: Path) -> None:
        """A whole copy of the ledger while others go on writing."""
        self._store.file.backup(to)

    def close(self) -> None:
        """Let go of the file."""
        self._store.file.close()

    def _move_in(self, host: str, boot: str, take_over: bool) -> None:
        """Note whose home this is now; after another boot, every lease is over and every wait has ended."""
        with self._store.read() as turn:
            if turn.column("meta_get", "host") == [host] and turn.column("meta_get", "boot") == [boot]:
                return
        with self._store.write("move_in") as turn:
            _check_host(turn, host, boot, take_over)
            if turn.column("meta_get", "boot") != [boot]:
                turn.run("all_over")
                turn.run("all_due")
            turn.run("meta_set", "host", host)
            turn.run("meta_set", "boot", boot)


def _check_host(turn: Transaction, host: str, boot: str, take_over: bool) -> None:
    same = turn.column("meta_get", "host") in ([], [host]) or turn.column("meta_get", "boot") == [boot]
    left = turn.column("left_behind")
    if left and not same and not take_over:
        raise WrongHome(
            f"another machine has used this home, and {len(left)} of its workers may still be running ({left[0]})",
            "Stop them there. If that machine no longer exists: rushes init --take-over",
        )
