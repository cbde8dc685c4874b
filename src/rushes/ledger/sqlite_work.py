"""Working on SQLite: leases and what becomes of them. Every write names the fence it was leased with."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from rushes.domain.errors import LeaseLost
from rushes.domain.event import EventType
from rushes.domain.keys import JSON
from rushes.domain.task import LEASE_SECONDS, Failure, Lease, LeaseStatus, Verdict
from rushes.domain.worker import Incarnation
from rushes.ledger.open_job import FIRST, OpenJob
from rushes.ledger.port import Renewed
from rushes.ledger.runs import runs
from rushes.ledger.sqlite_jobs import JobRows
from rushes.ledger.sqlite_store import Row, Transaction, encode
from rushes.ledger.standing import TaskStatus, orders

DONE = ("ok", "adopted")  # outcomes that are a success
KNOWN = 20_000  # keys of leased tasks that are remembered
_lease: Callable[[Iterable[Any]], Lease] = partial(tuple.__new__, Lease)  # a third of the time of its `_make`


def standing(turn: Transaction, ids: Iterable[str]) -> dict[str, TaskStatus]:
    """Where these tasks stand; those that do not exist are left out."""
    return {row[0]: TaskStatus(*row) for row in turn.run("standing", encode(list(ids)))}


def may_claim(turn: Transaction, worker: str, lanes: Sequence[str]) -> bool:
    """Whether a claim could find anything: a look that blocks nobody.

    Raises:
        LeaseLost: the worker's own row is over.
    """
    _, draining = _own_row(turn, worker)
    return not draining and any(turn.one("claimable", lane) for lane in lanes)


def claim(
    turn: Transaction, worker: str, lanes: Sequence[str], n: int, hinted: Collection[str], known: dict[str, int]
) -> tuple[Lease, ...]:
    """Lease the next tasks; `known` keeps their keys for their completion.

    Raises:
        LeaseLost: the worker's own row is over.
    """
    number, draining = _own_row(turn, worker)
    if draining:
        return ()
    rows = _next(turn, lanes, n, hinted)
    if not rows:
        return ()
    columns = tuple(zip(*rows, strict=True))
    keys, ids = columns[:2]
    ranges = runs(keys)
    turn.many("claim", [(number, turn.wall, first, last) for first, last in ranges])
    turn.many("hold_add", [(number, first, last) for first, last in ranges])
    _begin(turn, [key for key in keys if not key & FIRST])
    if len(known) > KNOWN:
        known.clear()
    known.update(zip(ids, keys, strict=True))
    return _leases(turn, ranges, lanes, *columns)


def renew(
    turn: Transaction, worker: Incarnation, holding: Mapping[str, int], progress: Mapping[str, float], note: str
) -> Renewed:
    """Enter or keep the worker's row, and say what to do with each task held."""
    row = turn.one("worker_row", worker.id)
    if row and row[2]:
        return Renewed(dict.fromkeys(holding, LeaseStatus.LOST), gone=True)
    until = turn.awake + LEASE_SECONDS
    if row is None:
        turn.run("worker_enter", worker.id, until, note, turn.wall, turn.wall, *_who(worker))
        return Renewed(orders(standing(turn, holding), worker.id, holding))
    turn.run("worker_keep", until, note, turn.wall, row[0])
    turn.run("hold_trim", row[0])
    turn.many("progress", [(p, task, holding[task], row[0]) for task, p in progress.items() if task in holding])
    return Renewed(orders(standing(turn, holding), worker.id, holding), drain=bool(row[3]))


def fail(turn: Transaction, worker: str, task: str, fence: int, failure: Failure, delay: float | None) -> Verdict:
    """Record a failure of the lease that counts."""
    row = standing(turn, (task,)).get(task)
    if row is None:
        return Verdict.LOST
    if not row.holds(fence, worker):
        return row.verdict(fence, "failed")
    jobs = JobRows(turn)
    job = jobs.of(row.key)
    job.failures += 1
    about = row.told(kind=failure.kind, message=failure.message, verdict=failure.verdict, delay=delay)
    turn.run("failure_keep", row.key, turn.wall, encode(asdict(failure)))
    job.tell(EventType.FAILED, turn.wall, about, task)
    if delay is None:
        bury(turn, job, row, "failed", failures=1, about=about)
    else:
        release(turn, job, row, "failed", failures=1, due=turn.now + delay if delay > 0 else None)
    jobs.save()
    return Verdict.OK


def give_back(turn: Transaction, worker: str, held: Sequence[tuple[str, int]], reason: str) -> None:
    """Free the leases that count, at once and counted as nothing."""
    jobs, rows = JobRows(turn), standing(turn, (task for task, _ in held))
    for task, fence in dict.fromkeys(held):
        row = rows.get(task)
        if row and row.holds(fence, worker):
            job = jobs.of(row.key)
            release(turn, job, row, "given_back")
            job.tell(EventType.GIVEN_BACK, turn.wall, row.told(reason=reason), task)
    jobs.save()


def release(
    turn: Transaction,
    job: OpenJob,
    row: TaskStatus,
    outcome: str,
    *,
    failures: int = 0,
    losses: int = 0,
    due: float | None = None,
) -> None:
    """A lease ended without success: ready again."""
    turn.run("release", outcome, due, int(job.stopped), failures, losses, row.key)
    if not row.key & FIRST:
        job.chunking = False


def bury(
    turn: Transaction,
    job: OpenJob,
    row: TaskStatus,
    outcome: str,
    *,
    failures: int = 0,
    losses: int = 0,
    about: dict[str, JSON],
) -> None:
    """A lease ended without success for the last time: a dead letter."""
    turn.run("bury", outcome, failures, losses, turn.wall, row.key)
    job.dead, job.live = job.dead + 1, job.live - 1
    if not row.key & FIRST:
        job.chunking = False
    job.tell(EventType.DEAD, turn.wall, about, row.id)


def _own_row(turn: Transaction, worker: str) -> tuple[int, bool]:
    row = turn.one("worker_row", worker)
    if row is None or row[2] or row[1] <= turn.awake:
        raise LeaseLost(f"the lease of worker {worker} has expired")
    return row[0], bool(row[3])


def _next(turn: Transaction, lanes: Sequence[str], n: int, hinted: Collection[str]) -> list[Row]:
    if hinted:
        return turn.all("to_claim_of", encode(list(hinted)), encode(list(lanes)), n)
    if len(lanes) == 1:
        return turn.all("to_claim", lanes[0], n)
    return turn.all("to_claim_in", encode(list(lanes)), n)


def _leases(
    turn: Transaction, ranges: Sequence[tuple[int, int]], lanes: Sequence[str], *columns: Row
) -> tuple[Lease, ...]:
    """By columns; lane, failures and losses, nearly always the same for all, are not read: 5 % less a task."""
    keys, ids, fences, stages, chunks, specs, *named = columns
    before = _before(turn, keys) if max(fences) > 1 else ((0,) * len(keys),) * 2
    lane = named[0] if named else (lanes[0],) * len(keys)
    rows = zip(ids, fences, _jobs(ids, ranges), stages, chunks, lane, specs, *before, strict=True)
    return tuple(map(_lease, rows))


def _jobs(ids: Sequence[str], ranges: Sequence[tuple[int, int]]) -> list[str]:
    """The job of each task: one for a whole range."""
    jobs: list[str] = []
    for first, last in ranges:
        id = ids[len(jobs)]
        jobs += [id[: id.index(".")]] * (last - first + 1)
    return jobs


def _before(turn: Transaction, keys: Sequence[int]) -> Iterable[Row]:
    """Failures and losses; a task that was never leased has none."""
    return zip(*turn.all("before", encode(keys)), strict=True)


def _begin(turn: Transaction, firsts: Sequence[int]) -> None:
    """The claim of a first task begins its job."""
    if not firsts:
        return
    jobs = JobRows(turn)
    for key in firsts:
        job = jobs.of(key)
        job.chunking = True
        job.started = job.started or turn.wall
    jobs.save()


def _who(worker: Incarnation) -> Row:
    return (
        worker.host, worker.boot, worker.pid, worker.pid_start, encode(worker.lanes), worker.slots,
        worker.machine, worker.version,
    )  # fmt: skip
