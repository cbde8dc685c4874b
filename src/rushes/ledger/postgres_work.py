"""Working on PostgreSQL: leases and what becomes of them. Every write names the fence it was leased with."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict

from rushes.domain.errors import WrongHome
from rushes.domain.event import EventType
from rushes.domain.keys import JSON
from rushes.domain.task import LEASE_SECONDS, Failure, LeaseStatus, Verdict
from rushes.domain.worker import Incarnation
from rushes.ledger.open_job import PLACES, OpenJob, encode
from rushes.ledger.port import Renewed
from rushes.ledger.postgres_jobs import JobRows
from rushes.ledger.standing import TaskStatus, orders
from rushes.postgres.store import Transaction


def standing(turn: Transaction, ids: Iterable[str]) -> dict[str, TaskStatus]:
    """Where these tasks stand; those that do not exist are left out."""
    return {row[0]: TaskStatus(*row) for row in turn.all("standing", ids=list(ids))}


def hold_tasks(turn: Transaction, jobs: JobRows, ids: Sequence[str], patient: bool = True) -> dict[str, TaskStatus]:
    """The same with their jobs held: as they stand, they stay."""
    jobs.load({key >> PLACES for _, key in turn.all("keys", ids=list(ids))}, patient)
    return {id: row for id, row in standing(turn, ids).items() if row.key in jobs}


def part(turn: Transaction, ids: Sequence[str]) -> bool:
    """Give these tasks rows of their own, unless others hold their jobs; whether some were in runs."""
    numbers = turn.column("jobs_of_runs", ids=ids)
    if numbers:
        jobs = JobRows(turn)
        jobs.load(numbers, patient=False)
        if all(number << PLACES in jobs for number in numbers):
            turn.run("part", ids=ids)
    return bool(numbers)


def renew(
    turn: Transaction,
    worker: Incarnation,
    holding: Mapping[str, int],
    progress: Mapping[str, float],
    note: str,
    schema: int,
) -> Renewed:
    """Enter or keep the worker's row, and say what to do with each task held."""
    _check_schema(turn, schema)
    row = turn.one("worker_row", worker=worker.id)
    if row and row[1]:
        return Renewed(dict.fromkeys(holding, LeaseStatus.LOST), gone=True)
    until = turn.wall + int(LEASE_SECONDS * 1000)
    if row is None:
        turn.run("worker_enter", worker=worker.id, until=until, note=legible(note), at=turn.wall, **_who(worker))
    else:
        turn.run("worker_keep", number=row[0], until=until, note=legible(note))
        _keep_progress(turn, row[0], holding, progress)
    return Renewed(orders(standing(turn, holding), worker.id, holding), drain=bool(row and row[2]))


def fail(turn: Transaction, worker: str, task: str, fence: int, failure: Failure, delay: float | None) -> Verdict:
    """Record a failure of the lease that counts."""
    jobs = JobRows(turn)
    row = hold_tasks(turn, jobs, (task,)).get(task)
    if row is None:
        return Verdict.LOST
    if not row.holds(fence, worker):
        return row.verdict(fence, "failed")
    job = jobs.of(row.key)
    job.failures += 1
    about = row.told(kind=failure.kind, message=failure.message, verdict=failure.verdict, delay=delay)
    turn.run("failure_keep", key=row.key, at=turn.wall, body=encode(asdict(failure)))
    job.tell(EventType.FAILED, turn.wall, about, task)
    ends = Ends(turn)
    if delay is None:
        ends.bury(job, row, "failed", about, failures=1)
    else:
        ends.release(job, row, "failed", failures=1, due=turn.wall + round(delay * 1000) if delay > 0 else None)
    ends.save()
    jobs.save()
    return Verdict.OK


def give_back(turn: Transaction, worker: str, held: Sequence[tuple[str, int]], reason: str) -> None:
    """Free the leases that count, at once and counted as nothing."""
    jobs, ends = JobRows(turn), Ends(turn)
    rows = hold_tasks(turn, jobs, [task for task, _ in held])
    for task, fence in dict.fromkeys(held):
        row = rows.get(task)
        if row and row.holds(fence, worker):
            job = jobs.of(row.key)
            ends.release(job, row, "given_back")
            job.tell(EventType.GIVEN_BACK, turn.wall, row.told(reason=reason), task)
    ends.save()
    jobs.save()


class Ends:
    """Leases that end without success, written together."""

    def __init__(self, turn: Transaction) -> None:
        self._turn = turn
        self._ids: list[str] = []
        self._rows: list[dict[str, object]] = []

    def release(
        self, job: OpenJob, row: TaskStatus, outcome: str, failures: int = 0, losses: int = 0, due: int | None = None
    ) -> None:
        """Ready again."""
        self._end(row, outcome, failures, losses, {"state": "ready", "due": due, "parked": job.stopped})

    def bury(
        self, job: OpenJob, row: TaskStatus, outcome: str, about: dict[str, JSON], failures: int = 0, losses: int = 0
    ) -> None:
        """For the last time: a dead letter."""
        self._end(row, outcome, failures, losses, {"state": "dead", "parked": False})
        job.dead, job.live = job.dead + 1, job.live - 1
        job.tell(EventType.DEAD, self._turn.wall, about, row.id)

    def save(self) -> None:
        """Write them with the commit."""
        if self._rows:
            self._turn.run("part", ids=self._ids)
            self._turn.run("end_leases", rows=encode(self._rows), at=self._turn.wall)

    def _end(self, row: TaskStatus, outcome: str, failures: int, losses: int, so: Mapping[str, object]) -> None:
        self._ids.append(row.id)
        self._rows.append({"key": row.key, "outcome": outcome, "failures": failures, "losses": losses, **so})


def legible(text: str) -> str:
    """What PostgreSQL can carry: no NUL, no bytes that are no text."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")


def _check_schema(turn: Transaction, known: int) -> None:
    if turn.column("schema")[0] > known:
        raise WrongHome("a newer rushes has changed this database", "Start this worker again with the newer version.")


def _keep_progress(turn: Transaction, number: int, holding: Mapping[str, int], progress: Mapping[str, float]) -> None:
    rows = [{"id": task, "fence": holding[task], "progress": p} for task, p in progress.items() if task in holding]
    if rows:
        part(turn, [task for task in progress if task in holding])
        turn.run("progress", number=number, rows=encode(rows))


def _who(worker: Incarnation) -> dict[str, object]:
    return {
        "host": worker.host, "boot": worker.boot, "pid": worker.pid, "pid_start": worker.pid_start,
        "lanes": encode(worker.lanes), "slots": worker.slots, "machine": worker.machine, "version": worker.version,
    }  # fmt: skip
