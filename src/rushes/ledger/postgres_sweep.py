"""Sweeping on PostgreSQL: what dead workers held, what is due, what is owed; rows that somebody holds are left."""

from collections.abc import Callable, Sequence
from dataclasses import asdict

from rushes.domain.event import EventType
from rushes.domain.task import LEASE_SECONDS
from rushes.domain.worker import Incarnation
from rushes.ledger.open_job import encode
from rushes.ledger.port import Debt, SweepResult
from rushes.ledger.postgres_jobs import JobRows
from rushes.ledger.postgres_look import incarnation
from rushes.ledger.postgres_work import Ends, hold_tasks
from rushes.ledger.settle import worn_out
from rushes.ledger.standing import TaskStatus
from rushes.postgres.store import Transaction

_REMEMBERED = int(2880 * LEASE_SECONDS * 1000)  # a day: after it a worker that is over may be forgotten


def sweep(turn: Transaction, limit: int, paid: Sequence[Debt], is_gone: Callable[[Incarnation], bool]) -> SweepResult:
    """Release, flip, strike out; answer what is owed."""
    _end_leases(turn, is_gone)
    released = _release(turn, limit)
    turn.run("due_now", at=turn.wall)
    turn.run("drafts_stale")
    turn.run("workers_forget", before=turn.wall - _REMEMBERED)
    if paid:
        turn.run("debts_paid", rows=encode([asdict(debt) for debt in paid]))
    due = turn.column("next_due")[0]
    debts = tuple(Debt(*row) for row in turn.all("debts", limit=limit))
    ready = tuple(turn.column("ready", limit=limit))
    return SweepResult(ready, debts, released, None if due is None else (due - turn.wall) / 1000)


def _end_leases(turn: Transaction, is_gone: Callable[[Incarnation], bool]) -> None:
    rows = turn.all("workers_in")
    gone = [row[0] for row in rows if is_gone(incarnation(row))]
    late = [row[0] for row in rows if row[10] <= turn.wall]
    if gone or late:
        turn.run("workers_over", at=turn.wall, numbers=[*gone, *late], gone=gone)


def _release(turn: Transaction, limit: int) -> int:
    left = turn.column("workers_left")
    if not left:
        return 0
    orphans: dict[str, int] = dict(turn.all("orphans", numbers=left, limit=limit))
    jobs, ends = JobRows(turn), Ends(turn)
    rows = hold_tasks(turn, jobs, list(orphans), patient=False)
    lost = [row for row in rows.values() if row.holds(orphans[row.id])]
    for row in lost:
        _lose(turn, jobs, ends, row)
    ends.save()
    jobs.save()
    if len(rows) == len(orphans) < limit:
        turn.run("workers_free", numbers=left)
    return len(lost)


def _lose(turn: Transaction, jobs: JobRows, ends: Ends, row: TaskStatus) -> None:
    job = jobs.of(row.key)
    job.losses += 1
    job.tell(EventType.LOST, turn.wall, row.told(losses=row.losses + 1), row.id)
    why = worn_out(row.losses + 1)
    if why is None:
        ends.release(job, row, "lost", losses=1)
        return
    turn.run("failure_keep", key=row.key, at=turn.wall, body=encode(asdict(why)))
    about = row.told(kind=why.kind, message=why.message, verdict=why.verdict, delay=None)
    ends.bury(job, row, "lost", about, losses=1)
