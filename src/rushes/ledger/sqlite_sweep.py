"""Sweeping on SQLite: what dead workers held, what is due, what is owed."""

from collections.abc import Callable, Sequence
from dataclasses import asdict

from rushes.domain.event import EventType
from rushes.domain.task import LEASE_SECONDS
from rushes.domain.worker import Incarnation
from rushes.ledger.port import Debt, SweepResult
from rushes.ledger.settle import worn_out
from rushes.ledger.sqlite_jobs import JobRows
from rushes.ledger.sqlite_look import incarnation
from rushes.ledger.sqlite_store import Transaction, encode
from rushes.ledger.sqlite_work import bury, release, standing
from rushes.ledger.standing import TaskStatus

_REMEMBERED = 2880 * LEASE_SECONDS  # a day: after it a worker that is over may be forgotten


def sweep(turn: Transaction, limit: int, paid: Sequence[Debt], is_gone: Callable[[Incarnation], bool]) -> SweepResult:
    """Release, flip, strike out; answer what is owed."""
    _end_leases(turn, is_gone)
    released = _release(turn, limit)
    turn.run("due_now", turn.now)
    turn.run("drafts_stale")
    turn.run("workers_forget", turn.awake - _REMEMBERED)
    turn.many("debt_paid", [(d.owner, d.job, d.key) for d in paid])
    due = turn.column("next_due")[0]
    debts = tuple(Debt(*row) for row in turn.all("debts", limit))
    return SweepResult(_ready(turn, limit), debts, released, None if due is None else due - turn.now)


def nothing_to_do(turn: Transaction, paid: Sequence[Debt], is_gone: Callable[[Incarnation], bool]) -> bool:
    """Whether a sweep would write nothing: then it need not wait for its turn to write."""
    if paid or turn.one("orphans", 1) or turn.one("drafts_any"):
        return False
    due = turn.column("next_due_of_all")[0]
    return (due is None or due > turn.now) and not _ended(turn, is_gone)


def look(turn: Transaction, limit: int) -> SweepResult:
    """What is owed, when there is nothing to write."""
    due = turn.column("next_due")[0]
    debts = tuple(Debt(*row) for row in turn.all("debts", limit))
    return SweepResult(_ready(turn, limit), debts, 0, None if due is None else due - turn.now)


def _ended(turn: Transaction, is_gone: Callable[[Incarnation], bool]) -> list[int]:
    """The numbers of workers whose lease is over, or whose process is gone."""
    rows = turn.all("workers_in")
    return [row[0] for row in rows if row[10] <= turn.awake or is_gone(incarnation(row))]


def _end_leases(turn: Transaction, is_gone: Callable[[Incarnation], bool]) -> None:
    for number in _ended(turn, is_gone):
        turn.run("worker_over", turn.awake, number)


def _release(turn: Transaction, limit: int) -> int:
    orphans = turn.column("orphans", limit)
    jobs, rows = JobRows(turn), standing(turn, orphans)
    for task in orphans:
        _lose(turn, jobs, rows[task])
    jobs.save()
    if len(orphans) < limit:
        turn.run("hold_forget")
    return len(orphans)


def _lose(turn: Transaction, jobs: JobRows, row: TaskStatus) -> None:
    job = jobs.of(row.key)
    job.losses += 1
    job.tell(EventType.LOST, turn.wall, row.told(losses=row.losses + 1), row.id)
    why = worn_out(row.losses + 1)
    if why is None:
        release(turn, job, row, "lost", losses=1)
        return
    turn.run("failure_keep", row.key, turn.wall, encode(asdict(why)))
    about = row.told(kind=why.kind, message=why.message, verdict=why.verdict, delay=None)
    bury(turn, job, row, "lost", losses=1, about=about)


def _ready(turn: Transaction, limit: int) -> tuple[str, ...]:
    """Tasks to announce, an equal share of each lane."""
    lanes: list[str] = []
    lane = turn.column("next_lane", "")[0]
    while lane is not None:
        lanes.append(lane)
        lane = turn.column("next_lane", lane)[0]
    share = max(1, limit // max(1, len(lanes)))
    return tuple(task for lane in lanes for task in turn.column("ready_in", lane, share))
