"""Changes that may be too wide for one transaction on DynamoDB: done page by page, the rest owed by the job."""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice

from rushes.aws.table import key_of
from rushes.domain.event import EventType
from rushes.domain.keys import JSON
from rushes.domain.task import Draft, TaskState
from rushes.ledger.dynamodb import transaction
from rushes.ledger.dynamodb.keys import blob_key, task_key
from rushes.ledger.dynamodb.rows import JobRow, LanesRow, TaskRow, draft_of
from rushes.ledger.dynamodb.transaction import Transaction
from rushes.ledger.dynamodb.transitions import cancel, insert, make_ready, meet_need, move, settle
from rushes.ledger.rules import is_revivable

FORGET = "forget"  # the kind of a step after which there is no job
Step = dict[str, JSON]  # what is to be done, and how far it has come
_NOT_BEGUN = (TaskState.WAITING, TaskState.READY, TaskState.DEAD, TaskState.CANCELLED)
_UNFINISHED = (TaskState.WAITING, TaskState.READY, TaskState.LEASED)


def begin(tx: Transaction, job: JobRow, step: Step) -> list[str]:
    """Do what fits into this transaction and owe the rest; the tasks that became ready."""
    ready, rest = _KINDS[step["kind"]](tx, job, step)
    if rest is not None:
        job.owed.append(rest)
        tx.put(job)
    return ready


def pay(tx: Transaction, job: JobRow) -> list[str]:
    """Do what a job owes, the oldest first, as far as this transaction reaches; the tasks that became ready."""
    ready: list[str] = []
    if any(step["kind"] == FORGET for step in job.owed):
        return _forget(tx, job)
    tx.put(job)
    while job.owed and not tx.full:
        step = job.owed.pop(0)
        some, rest = _KINDS[step["kind"]](tx, job, step)
        job.owed[:0] = [] if rest is None else [rest]
        ready += some
    settle(tx, job)
    return ready


def _forget(tx: Transaction, job: JobRow) -> list[str]:
    """Everything about a job, its row last: until then it is listed among those that owe something."""
    items = [key_of(item) for item in tx.table.query(f"job#{job.id}") if key_of(item) != job.key]
    tasks = [sk.removeprefix("task#") for _, sk in items if sk.startswith("task#")]
    logs = [key_of(item) for task in tasks for item in tx.table.query(f"log#{task}")]
    debts = [key_of(item) for item in tx.table.query("debts", f"{job.owner}#{job.id}#", f"{job.owner}#{job.id}#~")]
    tx.table.save(gone=[*items, *logs, *debts])
    tx.drop(job)
    job.owed = []
    return []


def count_down(tx: Transaction, row: TaskRow) -> list[str]:
    """A task is done: meet the need of each dependant."""
    return begin(tx, tx.job(row.job), {"kind": "count_down", "task": row.id, "after": 0}) if row.dependants else []


def relist_tasks(tx: Transaction, job: JobRow) -> None:
    """A job was stopped, resumed or given another priority: its tasks are listed as that demands."""
    job.owed = [step for step in job.owed if step["kind"] != "relist"]
    begin(tx, job, {"kind": "relist"})


def cancel_stages(tx: Transaction, job: JobRow) -> None:
    """What is not finished of the stages that are not wanted is cancelled."""
    job.owed = [step for step in job.owed if step["kind"] != "cancel"]
    begin(tx, job, {"kind": "cancel"})


def plan_of(tx: Transaction, job: JobRow, fence: int) -> list[Draft]:
    """The drafts of an attempt in plan order."""
    low = f"draft#{fence:08d}#"
    found = [draft_of(item) for item in tx.table.query(f"job#{job.id}", low, low + "~")]
    return sorted((d for d in found if d.id != job.first), key=lambda d: (d.order, d.id))


def _count_down(tx: Transaction, job: JobRow, step: Step) -> tuple[list[str], Step | None]:
    row, after = tx.task(step["task"]), int(step["after"])
    ready: list[str] = []
    if row is None or row.state is not TaskState.DONE:
        return [], None
    some = list(islice(row.dependants.items(), after, after + transaction.PAGE))
    tx.load_tasks(id for id, _ in some)
    for n, (id, bit) in enumerate(some, after):
        if tx.full:
            return ready, {**step, "after": n}
        ready += [id] if meet_need(tx, id, bit) else []
        other = tx.task(id)
        if other and other.job != job.id:
            settle(tx, tx.job(other.job))
    after += len(some)
    return ready, None if after == len(row.dependants) else {**step, "after": after}


def _open_plan(tx: Transaction, job: JobRow, step: Step) -> tuple[list[str], Step | None]:
    """Drafts become tasks in plan order."""
    fence, after = int(step["fence"]), int(step["after"])
    ready: list[str] = []
    plan = tx.plans.get((job.id, fence)) or plan_of(tx, job, fence)
    dependants = _dependants(plan)
    first = tx.task(job.first) if after == 0 else None
    if first:
        first.dependants |= dependants.get(first.id, {})
        tx.put(first)
    done, known = _look_up(tx, job, plan, step)
    for n, draft in enumerate(plan[after:], after):
        if tx.full:
            return ready, {**step, "after": n, "last_event": job.last_event}
        ready += [draft.id] if insert(tx, job, draft, dependants.get(draft.id, {}), done, known) else []
    return ready, None


def _dependants(plan: Sequence[Draft]) -> dict[str, dict[str, int]]:
    """For each task that is needed, who needs it, and which of its needs it is."""
    found: dict[str, dict[str, int]] = {}
    for draft in plan:
        for bit, need in enumerate(dict.fromkeys(draft.needs)):
            if not need.is_key:
                found.setdefault(need.ref, {})[draft.id] = bit
    return found


def _look_up(tx: Transaction, job: JobRow, plan: Sequence[Draft], step: Step) -> tuple[set[str], set[str]]:
    """What the next page needs, read at once: the tasks that are done, and all whose state is known by that."""
    before, later = plan[: step["after"]], plan[step["after"] :]
    for draft in later:
        tx.expect_absent(task_key(draft.id))
    done = {job.first, *(draft.id for draft in plan if draft.adopted)}
    known = {job.first, *(draft.id for draft in plan)}
    if before and job.last_event != step["last_event"]:  # something happened since the last page
        known -= {job.first, *(draft.id for draft in before)}
        done &= known
    page = later[: transaction.PAGE]
    needs = [need for draft in page for need in draft.needs if need.is_key or need.ref not in known]
    tx.load([*(blob_key(need.ref) if need.is_key else task_key(need.ref) for need in needs), LanesRow.key])
    return done, known


def _relist(tx: Transaction, job: JobRow, step: Step) -> tuple[list[str], Step | None]:
    for row in tx.tasks_of(job.id, step.get("after", "")):
        if tx.full:
            return [], {**step, "after": row.id}
        tx.relist(row)
    return [], None


def _cancel(tx: Transaction, job: JobRow, step: Step) -> tuple[list[str], Step | None]:
    for row in tx.tasks_of(job.id, step.get("after", "")):
        if tx.full:
            return [], {**step, "after": row.id}
        if row.stage in job.cancelled_stages and row.state in _UNFINISHED:
            cancel(tx, row)
    return [], None


def _revive(tx: Transaction, job: JobRow, step: Step) -> tuple[list[str], Step | None]:
    """Tasks are to be done again, in plan order; who has not begun waits for them."""
    rows = sorted(tx.tasks_of(job.id), key=lambda row: row.plan_order)
    revived: list[str] = []
    rest = None
    for row in [row for row in rows if _is_chosen(row, step)]:
        if tx.full:
            rest = step
            break
        _refresh(tx, job, row)
        revived.append(row.id)
        step = {**step, "after": list(row.plan_order)}
    if not _reset_needs(tx, [row for row in rows if row.state is not TaskState.DONE]):
        return revived, step
    for row in rows:
        if tx.full:
            return revived, step
        make_ready(tx, row)
        tx.relist(row)
    return revived, rest


def _is_chosen(row: TaskRow, step: Step) -> bool:
    stages, tasks = step["stages"], step["tasks"]
    meant = (not stages or row.stage in stages) and (not tasks or row.id in tasks)
    later = list(row.plan_order) > step["after"]
    backs_off = row.due is not None
    return meant and later and is_revivable(row.state, backs_off=backs_off, again=step["again"], named=bool(stages))


def _refresh(tx: Transaction, job: JobRow, row: TaskRow) -> None:
    row.due = None
    tx.put(row)
    if row.state is TaskState.READY:
        return
    tx.add_event(job, (EventType.REVIVED, {"state": row.state.value}), row.id)
    move(tx, row, TaskState.WAITING)
    row.failures, row.losses = 0, 0
    row.adopted, row.finished, row.progress = False, None, "0.0"


def _reset_needs(tx: Transaction, undone: Iterable[TaskRow]) -> bool:
    """Whoever needs one of these and has not begun waits for it; False if there are more than fit."""
    for need in undone:
        tx.load_tasks(need.dependants)
        for id, bit in need.dependants.items():
            row = tx.task(id)
            if row is None or row.state not in _NOT_BEGUN or row.unmet >> bit & 1:
                continue
            if tx.full:
                return False
            row.unmet |= 1 << bit
            tx.put(row)
            if row.state is TaskState.READY:
                move(tx, row, TaskState.WAITING)
                row.due = None
    return True


_Do = Callable[[Transaction, JobRow, Step], tuple[list[str], Step | None]]
_KINDS: dict[str, _Do] = {
    "count_down": _count_down, "open_plan": _open_plan, "relist": _relist, "revive": _revive, "cancel": _cancel,
}  # fmt: skip
