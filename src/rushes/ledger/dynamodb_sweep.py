"""The sweep on DynamoDB: dead workers' tasks are released, what is due is ready, what is owed is paid."""

import json
from collections.abc import Callable, Collection, Sequence
from functools import partial

from rushes.domain.job import JobCommand
from rushes.domain.task import LEASE_SECONDS
from rushes.domain.worker import Incarnation
from rushes.ledger import dynamodb_look as look
from rushes.ledger.dynamodb_rows import DUE, OWED, PARKED, LanesRow, WorkerRow, ready_place, unpack
from rushes.ledger.dynamodb_store import Store
from rushes.ledger.dynamodb_turn import Turn
from rushes.ledger.port import Debt, SweepResult

TOMBSTONE_SECONDS = 7 * 86_400  # a worker that slept so long enters anew; its fences are stale all the same
STRAYS_SECONDS = 600.0  # between looks at all that is held: a page of the index per 5,000 tasks
_SOME = 20  # tasks in one transaction, each perhaps of another job
_JOBS = 10  # that owe something, in one sweep


def sweep(store: Store, is_gone: Callable[[Incarnation], bool], limit: int, paid: Sequence[Debt]) -> SweepResult:
    """As the port says."""
    released = _reap(store, is_gone, limit)
    _flip(store)
    for item in list(store.table.query(OWED, index="by_place", limit=_JOBS)):
        store.pay(str(item["rank"]))
    if paid:
        store.save("sweep", gone=[("debts", f"{debt.owner}#{debt.job}#{debt.key}") for debt in paid])
    debts = [json.loads(str(item["body"])) for item in store.table.query("debts", limit=limit)]
    return SweepResult(_ready(store, limit), tuple(Debt(*debt) for debt in debts), released, _next_due(store))


def _reap(store: Store, is_gone: Callable[[Incarnation], bool], limit: int) -> int:
    """Release what workers hold whose row stood still for a lease, or who are gone."""
    dead = [r for r in look.worker_rows(store) if r.over or store.sightings.see(r) <= 0 or is_gone(r.incarnation)]
    held = {row.id: look.held(store, row.id).get(row.id, []) for row in dead if row.over or _bury(store, row)}
    for row in dead:
        if row.over and not held[row.id] and store.sightings.since(f"over {row.id}") > LEASE_SECONDS:
            _close(store, row)
    held |= _strays(store)
    orphans = look.in_plan(store.turn(), [task for some in held.values() for task in some])[:limit]
    parts = [orphans[n : n + _SOME] for n in range(0, len(orphans), _SOME)]
    return sum(store.change("sweep", partial(_lose, tasks=part, dead=held)) for part in parts)


def _strays(store: Store) -> dict[str, list[str]]:
    """What workers hold whose row is closed or has expired: one that was frozen in a claim writes it when it wakes."""
    if not store.sightings.again("strays", STRAYS_SECONDS):
        return {}
    held = look.held(store)
    items = store.table.fetch((f"worker#{id}", "worker") for id in held)
    there = {row.id for row in (unpack(WorkerRow, item) for item in items.values()) if not row.over}
    return {id: tasks for id, tasks in held.items() if id not in there}


def _bury(store: Store, dead: WorkerRow) -> bool:
    """Call a worker over, unless it has renewed since."""

    def work(turn: Turn) -> bool:
        row = turn.worker(dead.id)
        if row is None or row.beat != dead.beat:
            return False
        row.over, row.expires = True, turn.wall // 1000 + TOMBSTONE_SECONDS
        turn.touch(row)
        return True

    return store.change("sweep", work)


def _close(store: Store, dead: WorkerRow) -> None:
    """Nothing more is to be found: it is not listed any longer."""

    def work(turn: Turn) -> None:
        row = turn.worker(dead.id)
        if row and row.over:
            row.clean = True
            turn.touch(row)

    store.change("sweep", work)


def _lose(turn: Turn, tasks: Sequence[str], dead: Collection[str]) -> int:
    turn.load_tasks(tasks)
    rows = [row for task in tasks if (row := turn.task(task)) and row.worker in dead]
    for row in rows:
        turn.lose(row)
    for job in {row.job: turn.its(row) for row in rows}.values():
        turn.settle(job)
    return len(rows)


def _flip(store: Store) -> None:
    """What has backed off long enough is ready."""
    upto = f"{store.wall():015d}#~"
    for place in (DUE, PARKED):
        due = [str(i["sk"]).removeprefix("task#") for i in store.table.query(place, high=upto, index="by_place")]
        for n in range(0, len(due), 2 * _SOME):
            store.change("sweep", partial(_wake, tasks=due[n : n + 2 * _SOME]))


def _wake(turn: Turn, tasks: Sequence[str]) -> None:
    turn.load_tasks(tasks)
    for row in [row for task in tasks if (row := turn.task(task))]:
        if row.due is not None and row.due <= turn.wall:
            row.due = None
            turn.touch(row)


def _ready(store: Store, limit: int) -> tuple[str, ...]:
    """Tasks to announce, an equal share of each lane."""
    item = store.table.fetch([LanesRow.key]).get(LanesRow.key)
    lanes = unpack(LanesRow, item).lanes if item else []
    found = {lane: list(store.table.query(ready_place(lane), index="by_place", limit=limit)) for lane in lanes}
    found = {lane: items for lane, items in found.items() if items}
    share = max(1, limit // max(1, len(found)))
    return tuple(str(i["sk"]).removeprefix("task#") for lane in sorted(found) for i in found[lane][:share])


def _next_due(store: Store) -> float | None:
    first = next(store.table.query(DUE, index="by_place", limit=1), None)
    return None if first is None else (int(str(first["rank"]).partition("#")[0]) - store.wall()) / 1000


def tell_worker(store: Store, id: str, command: JobCommand) -> bool:
    """Drain or leave; False if there is no such worker."""
    holds = command is JobCommand.LEAVE and bool(look.held(store, id))

    def work(turn: Turn) -> bool:
        row = turn.worker(id)
        if row is None or (row.over and command is JobCommand.DRAIN):
            return False
        if command is JobCommand.DRAIN:
            row.draining = True
        elif holds:
            row.left = True
        elif not row.over:
            row.over, row.expires = True, turn.wall // 1000 + TOMBSTONE_SECONDS
        turn.touch(row)
        return True

    return store.change("control", work)
