"""The sweep on DynamoDB: releases tasks of dead workers, makes due tasks ready, pays what is owed."""

import json
from collections.abc import Collection, Sequence
from functools import partial

from rushes.domain.task import LEASE_SECONDS
from rushes.ledger.dynamodb.keys import DUE, HELD, OWED, PARKED, ready_list, task_of, worker_key
from rushes.ledger.dynamodb.queries import held_by_worker, in_plan_order, workers_and_lanes
from rushes.ledger.dynamodb.rows import WorkerRow, unpack
from rushes.ledger.dynamodb.store import Store
from rushes.ledger.dynamodb.transaction import Transaction
from rushes.ledger.dynamodb.transitions import lose, settle
from rushes.ledger.port import Debt, SweepResult
from rushes.ledger.rules import lane_share

STRAYS_SECONDS = 600.0  # between looks at all that is held: a page of the index per 5,000 tasks
_SOME = 20  # tasks in one transaction, each perhaps of another job
_JOBS = 10  # that owe something, in one sweep


def sweep(store: Store, limit: int = 500, paid: Sequence[Debt] = ()) -> SweepResult:
    """Release, end back-offs, pay what jobs owe, strike out debts; answer what is owed."""
    workers, lanes = workers_and_lanes(store)
    released = _release_orphans(store, workers, limit)
    due = _end_back_offs(store)
    for item in list(store.table.query(OWED, index="by_list", limit=_JOBS)):
        store.pay(str(item["rank"]))
    if paid:
        store.save("sweep", gone=[("debts", f"{debt.owner}#{debt.job}#{debt.key}") for debt in paid])
    debts = [Debt(*json.loads(str(item["body"]))) for item in store.table.query("debts", limit=limit)]
    ready, held = _ready(store, lanes, limit), next(store.table.query(HELD, index="by_list", limit=1), None)
    return SweepResult(ready, tuple(debts), released, due, not (ready or debts or released or held or due is not None))


def _release_orphans(store: Store, workers: Sequence[WorkerRow], limit: int) -> int:
    """Release what workers hold whose row stood still for a lease, or who are gone."""
    heartbeats = store.heartbeats
    dead = [r for r in workers if r.over or heartbeats.lease_left(r) <= 0 or store.is_gone(r.incarnation)]
    held: dict[str, list[str]] = {}
    for row in dead:
        if row.over or store.change("sweep", partial(_end, worker=row.id, heartbeat=row.heartbeat)):
            held |= {row.id: [], **held_by_worker(store, row.id)}
        if row.over and not held[row.id] and heartbeats.since_over(row.id) > LEASE_SECONDS:
            store.change("sweep", partial(_retire, worker=row.id))
    held |= _strays(store)
    orphans = in_plan_order(store, [task for some in held.values() for task in some])[:limit]
    batches = [orphans[n : n + _SOME] for n in range(0, len(orphans), _SOME)]
    return sum(store.change("sweep", partial(_lose, tasks=batch, dead=held)) for batch in batches)


def _strays(store: Store) -> dict[str, list[str]]:
    """What workers hold whose row is retired or has expired: one that was frozen in a claim writes it when it wakes."""
    if not store.heartbeats.is_due("strays", STRAYS_SECONDS):
        return {}
    held = held_by_worker(store)
    rows = [unpack(WorkerRow, item) for item in store.table.fetch(map(worker_key, held)).values()]
    living = {row.id for row in rows if not row.over}
    return {id: tasks for id, tasks in held.items() if id not in living}


def _end(tx: Transaction, worker: str, heartbeat: int) -> bool:
    """End a worker, unless it has renewed since."""
    row = tx.worker(worker)
    if row is None or row.heartbeat != heartbeat:
        return False
    row.end(tx.wall)
    tx.put(row)
    return True


def _retire(tx: Transaction, worker: str) -> None:
    """Nothing more is to be found: it is not listed any longer."""
    row = tx.worker(worker)
    if row and row.over:
        row.retired = True
        tx.put(row)


def _lose(tx: Transaction, tasks: Sequence[str], dead: Collection[str]) -> int:
    rows = [row for row in tx.tasks(tasks) if row.worker in dead]
    for row in rows:
        lose(tx, row)
    for job in {row.job for row in rows}:
        settle(tx, tx.job(job))
    return len(rows)


def _end_back_offs(store: Store) -> float | None:
    """What has backed off long enough is ready; seconds until the next one is."""
    upto, next_due = f"{store.wall():015d}#~", _next_due(store)
    for name in (PARKED,) if next_due is None or next_due > 0 else (DUE, PARKED):
        due = [task_of(item) for item in store.table.query(name, high=upto, index="by_list")]
        for n in range(0, len(due), 2 * _SOME):
            store.change("sweep", partial(_end_back_off, tasks=due[n : n + 2 * _SOME]))
    return next_due if next_due is None or next_due > 0 else _next_due(store)


def _end_back_off(tx: Transaction, tasks: Sequence[str]) -> None:
    for row in tx.tasks(tasks):
        if row.due is not None and row.due <= tx.wall:
            row.due = None
            tx.put(row)


def _ready(store: Store, lanes: Sequence[str], limit: int) -> tuple[str, ...]:
    """Tasks to announce, an equal share of each lane."""
    found = [list(store.table.query(ready_list(lane), index="by_list", limit=limit)) for lane in lanes]
    share = lane_share(limit, sum(map(bool, found)))
    return tuple(task_of(item) for items in found for item in items[:share])


def _next_due(store: Store) -> float | None:
    first = next(store.table.query(DUE, index="by_list", limit=1), None)
    return None if first is None else (int(str(first["rank"]).partition("#")[0]) - store.wall()) / 1000
