"""Claims on DynamoDB: one request for a batch of hinted tasks, each leased by itself if it is still to be had."""

import secrets
from collections.abc import Collection, Iterable, Sequence

from rushes.aws.table import Item, Key
from rushes.domain.errors import LeaseLost, StoreAway
from rushes.domain.task import RENEW_SECONDS, Lease, TaskState
from rushes.ledger.dynamodb_rows import TaskRow, held_place, ready_place, task_key, unpack
from rushes.ledger.dynamodb_store import Store
from rushes.ledger.dynamodb_turn import Turn

STATEMENTS = 25
_ROUNDS = 5  # of looking again when others were quicker


def claim(store: Store, worker: str, lanes: Sequence[str], n: int, hinted: Collection[str]) -> tuple[Lease, ...]:
    """Up to n leases, in the order of claims."""
    if not _may(store, worker):
        return ()
    places = [ready_place(lane) for lane in dict.fromkeys(lanes)]
    got = _recalled(store, worker)[:n]
    for _ in range(_ROUNDS):
        keys = _hinted(store, hinted, n - len(got)) if hinted else _listed(store, places, n - len(got))
        taken = _take(store, worker, places, keys)
        got += taken
        if hinted or len(got) >= n or len(taken) == len(keys):
            break
    jobs = store.jobs({row.job for row in got}, RENEW_SECONDS)
    return tuple(row.lease() for row in sorted(got, key=lambda row: row.rank(jobs[row.job])))


def _may(store: Store, worker: str) -> bool:
    """Whether a worker may claim: its lease, as it renewed it itself, holds, and nobody told it to drain.

    Who last renewed less than a lease ago by its own clock cannot have been called over: others saw it later.
    """
    turn = store.turn(store.recall([(f"worker#{worker}", "worker")]))
    row = turn.worker(worker)
    if row is None or row.over or store.sightings.see(row) <= 0:
        raise LeaseLost(f"the lease of worker {worker} is over")
    return not row.draining


def _recalled(store: Store, worker: str) -> list[TaskRow]:
    """Leases of a claim whose reply was lost: they are this worker's, and nobody else would ever free them."""
    if worker not in store.doubts:
        return []
    take, keys = store.doubts[worker]
    items = store.table.fetch(keys)
    store.remember(items)
    del store.doubts[worker]
    rows = [unpack(TaskRow, item) for item in items.values()]
    return [row for row in rows if row.take == take and row.held_by(worker, row.fence)]


def _listed(store: Store, places: Iterable[str], n: int) -> list[Key]:
    """The first n tasks of these lists."""
    found = [item for place in places for item in store.table.query(place, index="by_place", limit=n)]
    return [_key(item) for item in sorted(found, key=lambda item: str(item["rank"]))[:n]]


def _hinted(store: Store, hinted: Collection[str], n: int) -> list[Key]:
    """The first n of hinted tasks; with no more than n there is nothing to choose."""
    keys = [task_key(task) for task in dict.fromkeys(hinted)]
    if len(keys) <= n:
        return keys
    items = [item for item in store.table.fetch(keys).values() if str(item.get("place", "")).startswith("ready#")]
    return [_key(item) for item in sorted(items, key=lambda item: str(item["rank"]))[:n]]


def _take(store: Store, worker: str, places: Sequence[str], keys: Sequence[Key]) -> list[TaskRow]:
    """Lease those of these that are to be had."""
    jobs = store.jobs((pk.removeprefix("job#") for pk, _ in keys), RENEW_SECONDS)  # what a renewal tells is no newer
    mine = [(key, jobs[job]) for key in keys if (job := key[0].removeprefix("job#")) in jobs]
    for job in {job.id for _, job in mine if job.stopped and job.owed}:
        store.pay(job)  # parked, so that nobody meets them again
    firsts = [key for key, job in mine if task_key(job.first) == key and not job.stopped]
    rest = [key for key, job in mine if task_key(job.first) != key and not job.stopped]
    got = [row for key in firsts if (row := _take_first(store, worker, places, key))]
    for begin in range(0, len(rest), STATEMENTS):
        got += _take_some(store, worker, places, rest[begin : begin + STATEMENTS])
    return got


def _take_some(store: Store, worker: str, places: Sequence[str], keys: Sequence[Key]) -> list[TaskRow]:
    take = secrets.token_hex(8)
    sets: Item = {"state": TaskState.LEASED.value, "worker": worker, "take": take, "place": held_place(worker)}
    sets |= {"outcome": "", "progress": "0.0", "started": store.wall()}
    writes = [store.table.update(key, sets, ("fence", "rev"), {"place": places}) for key in keys]
    try:
        items = store.execute("claim", writes)
    except StoreAway:
        store.doubts[worker] = take, tuple(keys)
        raise
    return [unpack(TaskRow, item) for item in items]


def _take_first(store: Store, worker: str, places: Sequence[str], key: Key) -> TaskRow | None:
    """The first task begins its job, so that the job is written with it."""

    def work(turn: Turn) -> TaskRow | None:
        task = key[1].removeprefix("task#")
        turn.load_tasks([task])
        row = turn.task(task)
        if row is None or turn.its(row).stopped or row.item(turn.its(row)).get("place") not in places:
            return None
        job = turn.its(row)
        turn.lease(row, worker, "")
        job.started = job.started or turn.wall
        turn.settle(job)
        return row

    return store.change("claim", work)


def _key(item: Item) -> Key:
    return str(item["pk"]), str(item["sk"])
