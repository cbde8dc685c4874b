"""The sweep on SQL: tasks of dead workers, due tasks, owed changes; locked rows are left for the next sweep."""

from collections.abc import Callable, Sequence
from dataclasses import asdict

from rushes.domain.event import EventType
from rushes.domain.task import LEASE_SECONDS
from rushes.domain.worker import Incarnation
from rushes.ledger.port import Debt, SweepResult
from rushes.ledger.rules import TaskStatus, lane_share, worn_out
from rushes.ledger.sql.job_row import JobRows, held_tasks
from rushes.ledger.sql.queries import incarnation
from rushes.ledger.sql.transaction import Reader, Transaction
from rushes.ledger.sql.work import dead_letter, release

IsGone = Callable[[Incarnation], bool]
_REMEMBERED = 2880 * LEASE_SECONDS  # a day: after it a worker that is over may be forgotten


def sweep(tx: Transaction, limit: int, paid: Sequence[Debt], is_gone: IsGone) -> SweepResult:
    """Release, flip, strike out; answer what is owed."""
    over = ended_workers(tx, is_gone)
    if over:
        gone = [number for number, is_gone in over.items() if is_gone]
        tx.run("end_workers", now=tx.awake, numbers=list(over), gone=gone)  # one that has renewed since stays
    released = _release(tx, limit)
    tx.run("end_backoffs", now=tx.now)
    tx.run("drop_stale_drafts")
    tx.run("forget_workers", before=tx.awake - _REMEMBERED)
    for debt in paid:
        tx.run("pay_debt", **asdict(debt))
    return found(tx, limit, released)


def found(tx: Transaction, limit: int, released: int = 0) -> SweepResult:
    """What is ready and owed, and when the next back-off ends."""
    due = tx.column("next_due")[0]
    debts = tuple(Debt(*row) for row in tx.all("debts", limit=limit))
    return SweepResult(_ready(tx, limit), debts, released, None if due is None else due - tx.now)


def is_quiet(reader: Reader, is_gone: IsGone) -> bool:
    """Whether there is nothing to sweep, and nothing that could become so without a hint."""
    return not ended_workers(reader, is_gone) and bool(reader.column("quiet")[0])


def ended_workers(reader: Reader, is_gone: IsGone) -> dict[int, bool]:
    """The numbers of workers whose lease is over or whose process is gone, and whether it is gone."""
    rows = [(row, is_gone(incarnation(row))) for row in reader.all("workers")]
    awake = reader.awake
    return {row[0]: gone for row, gone in rows if gone or row[11] <= (row[-1] if awake is None else awake)}


def _release(tx: Transaction, limit: int) -> int:
    orphans: dict[str, int] = dict(tx.all("orphans", limit=limit))
    if not orphans:
        return 0
    jobs = JobRows(tx)
    statuses = held_tasks(tx, jobs, list(orphans), wait=False)
    lost = [status for status in statuses.values() if status.holds(orphans[status.id])]
    for status in lost:
        _lose(tx, jobs, status)
    jobs.save()
    return len(lost)


def _lose(tx: Transaction, jobs: JobRows, status: TaskStatus) -> None:
    job = jobs.of(status.key)
    job.losses += 1
    job.record(EventType.LOST, status.attempt(losses=status.losses + 1), status.id)
    why = worn_out(status.losses + 1)
    if why is None:
        release(tx, job, status, "lost")
    else:
        dead_letter(tx, job, status, "lost", why, status.failed_attempt(why, None))


def _ready(tx: Transaction, limit: int) -> tuple[str, ...]:
    """Tasks to announce, an equal share of each lane."""
    lanes: list[str] = []
    while (lane := tx.column("next_lane", after=lanes[-1] if lanes else "")[0]) is not None:
        lanes.append(lane)
    share = lane_share(limit, len(lanes))
    return tuple(task for lane in lanes for task in tx.column("ready_in", lane=lane, limit=share))
