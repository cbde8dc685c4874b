"""How tasks and jobs change state inside one transaction on DynamoDB."""

from collections.abc import Collection, Mapping
from dataclasses import asdict

from rushes.domain.event import EventType
from rushes.domain.task import Draft, Failure, Need, TaskState, Verdict
from rushes.ledger import rules
from rushes.ledger.dynamodb.keys import task_key
from rushes.ledger.dynamodb.rows import JobRow, TaskRow
from rushes.ledger.dynamodb.transaction import Transaction
from rushes.ledger.rules import EventData, TaskStatus

_COUNTED = {TaskState.READY: "live", TaskState.LEASED: "live", TaskState.DONE: "done", TaskState.DEAD: "dead"}


# Who holds what
def status(tx: Transaction, row: TaskRow) -> TaskStatus:
    """Where a task and its job stand."""
    return row.status(tx.job(row.job))


def held(tx: Transaction, worker: str | None, task: str, fence: int) -> TaskRow | None:
    """The task, if that lease counts."""
    row = tx.task(task)
    return row if row and status(tx, row).holds(fence, worker) else None


def verdict(tx: Transaction, task: str, fence: int, outcome: str) -> Verdict:
    """The answer to a lease that holds no more."""
    row = tx.task(task)
    return Verdict.LOST if row is None else status(tx, row).verdict(fence, outcome)


# States
def move(tx: Transaction, row: TaskRow, state: TaskState) -> None:
    """A task comes into a state, and is counted there."""
    job = tx.job(row.job)
    for of, step in ((row.state, -1), (state, 1)):
        if of in _COUNTED:
            setattr(job, _COUNTED[of], getattr(job, _COUNTED[of]) + step)
    job.total += (row.state is TaskState.CANCELLED) - (state is TaskState.CANCELLED)
    row.state = state
    if row.first:
        job.chunking = state is TaskState.LEASED
    tx.put(row)
    tx.put(job)


def settle(tx: Transaction, job: JobRow) -> None:
    """Set the job's state, and record what that owes; nothing is final while something is owed, but a cancel."""
    before = job.state
    event = rules.settle(job, tx.wall, owing=bool(job.owed))
    if job.state is not before:
        tx.put(job)
    if event:
        tx.add_event(job, event)


def make_ready(tx: Transaction, row: TaskRow) -> bool:
    """A waiting task without unmet needs is ready; whether a claim can see it now."""
    if row.state is not TaskState.WAITING or row.unmet:
        return False
    move(tx, row, TaskState.READY)
    return not tx.job(row.job).stopped


def release(tx: Transaction, row: TaskRow, outcome: str, due: int | None = None) -> None:
    """A lease ended without success: ready again."""
    move(tx, row, TaskState.READY)
    row.worker, row.outcome, row.due, row.progress = "", outcome, due, "0.0"


def dead_letter(tx: Transaction, row: TaskRow, outcome: str, failure: Failure, data: EventData) -> None:
    """A lease ended without success for the last time."""
    move(tx, row, TaskState.DEAD)
    row.worker, row.outcome, row.finished, row.failure = "", outcome, tx.wall, asdict(failure)
    tx.add_event(tx.job(row.job), (EventType.DEAD, data), row.id)


def cancel(tx: Transaction, row: TaskRow) -> None:
    """It is not wanted any more, and nobody's."""
    move(tx, row, TaskState.CANCELLED)
    row.worker, row.due, row.progress, row.finished = "", None, "0.0", tx.wall


def lose(tx: Transaction, row: TaskRow) -> None:
    """Its worker is gone."""
    job = tx.job(row.job)
    row.losses, job.losses = row.losses + 1, job.losses + 1
    lost = status(tx, row)
    tx.add_event(job, (EventType.LOST, lost.attempt(losses=row.losses)), row.id)
    failure = rules.worn_out(row.losses)
    if failure is None:
        release(tx, row, "lost")
    else:
        dead_letter(tx, row, "lost", failure, lost.failed_attempt(failure, None))


# Needs
def meet_need(tx: Transaction, task: str, bit: int) -> bool:
    """One need of a task is there; whether that makes it ready. Twice changes nothing."""
    row = tx.task(task)
    if row is None or not row.unmet >> bit & 1:
        tx.reload([task_key(task)])
        row = tx.task(task)
    if row is None or not row.unmet >> bit & 1:
        return False
    row.unmet &= ~(1 << bit)
    tx.put(row)
    return make_ready(tx, row)


def insert(
    tx: Transaction,
    job: JobRow,
    draft: Draft,
    dependants: Mapping[str, int],
    done: Collection[str] = (),
    known: Collection[str] = (),
) -> bool:
    """A draft becomes a task; whether it is ready at once. Of needs that are `known`, those in `done` are met."""
    stub = tx.task_or_stub(draft.id)
    row = TaskRow(
        id=draft.id, job=job.id, stage=draft.stage, chunk=draft.chunk, lane=draft.lane, order=draft.order,
        spec=draft.spec, first=draft.id == job.first, dependants={**stub.dependants, **dependants}, epoch=job.epoch,
        created=tx.wall, adopted=draft.adopted, rev=stub.rev,
    )  # fmt: skip
    for bit, need in enumerate(dict.fromkeys(draft.needs)):
        if not _register(tx, need, draft, bit, done, known) and not draft.adopted:
            row.unmet |= 1 << bit
    _add_lane(tx, draft.lane)
    tx.add(row)
    if draft.stage in job.cancelled_stages and not draft.adopted:
        cancel(tx, row)
        return False
    if not draft.adopted:
        return make_ready(tx, row)
    move(tx, row, TaskState.DONE)
    row.finished = tx.wall
    tx.add_event(job, (EventType.ADOPTED, status(tx, row).attempt(seconds=0.0)), row.id)
    return False


def _register(
    tx: Transaction, need: Need, draft: Draft, bit: int, done: Collection[str], known: Collection[str]
) -> bool:
    """Note who needs it, where that is not known from the plan; whether it is met."""
    if need.is_key:
        key = tx.blob_key(need.ref)
        if not draft.adopted:
            key.dependants[draft.id] = bit
            tx.put(key)
        return key.arrived
    if need.ref in known:
        return need.ref in done
    row = tx.task_or_stub(need.ref)
    if row.job != draft.job:
        row.dependants[draft.id] = bit
        tx.put(row)
    return row.state is TaskState.DONE


def _add_lane(tx: Transaction, lane: str) -> None:
    lanes = tx.lanes()
    if lane not in lanes.lanes:
        tx.reload([lanes.key])
        lanes = tx.lanes()
    if lane not in lanes.lanes:
        lanes.lanes = sorted({*lanes.lanes, lane})
        tx.put(lanes)
