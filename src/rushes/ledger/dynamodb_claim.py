"""Claims on DynamoDB: one request for a batch of hinted tasks, each leased by itself if it is still to be had.

Whatever is taken is in doubt until it is handed out; what could not be stays so for the next claim, or is given back.
"""

from collections.abc import Collection, Iterable, Sequence

from rushes.aws.table import Item, Key
from rushes.domain.errors import LeaseLost
from rushes.domain.task import RENEW_SECONDS, Lease, TaskState
from rushes.ledger.dynamodb_doubts import UNDER_WAY_SECONDS, Hand
from rushes.ledger.dynamodb_rows import HELD, JobRow, TaskRow, WorkerRow, held_rank, ready_place, task_key, unpack
from rushes.ledger.dynamodb_store import Store
from rushes.ledger.dynamodb_texts import near
from rushes.ledger.dynamodb_turn import Turn

STATEMENTS = 25
_ROUNDS = 5  # of looking again when others were quicker


def claim(store: Store, worker: str, lanes: Sequence[str], n: int, hinted: Collection[str]) -> tuple[Lease, ...]:
    """Up to n leases, in the order of claims."""
    if _living(store, worker).draining:
        return ()
    with store.doubts.of(worker) as hand:
        got = [row for row in recalled(store, worker, hand) if row.lane in lanes][:n]
        got += _fresh(store, worker, lanes, n - len(got), hinted, hand)
        jobs = store.jobs({row.job for row in got}, RENEW_SECONDS)
        specs = near(store.table, ((row.job, row.spec) for row in got))
        _living(store, worker)  # who was frozen on the way has it all in doubt
        for row in got:
            del hand[row.key, row.take]
    return tuple(row.lease(specs[row.spec]) for row in sorted(got, key=lambda row: row.rank(jobs[row.job])))


def recalled(store: Store, worker: str, hand: Hand) -> list[TaskRow]:
    """What of that came about: it is this worker's, and nobody else would ever free it."""
    items = store.table.fetch(key for key, _ in hand)
    store.remember(items)
    rows: list[TaskRow] = []
    for (key, take), sent in list(hand.items()):
        row = unpack(TaskRow, items[key]) if key in items else None
        if row and row.take == take and row.held_by(worker, row.fence):
            rows.append(row)
        elif store.clock() - sent > UNDER_WAY_SECONDS:
            del hand[key, take]
    return rows


def _living(store: Store, worker: str) -> WorkerRow:
    """A worker that may claim: its lease, as it renewed it itself, holds.

    Who last renewed less than a lease ago by its own clock cannot have been called over: others saw it later.
    """
    turn = store.turn(store.recall([(f"worker#{worker}", "worker")]))
    row = turn.worker(worker)
    if row is None or row.over or store.sightings.see(row) <= 0:
        raise LeaseLost(f"the lease of worker {worker} has expired")
    return row


def _fresh(
    store: Store, worker: str, lanes: Sequence[str], n: int, hinted: Collection[str], hand: Hand
) -> list[TaskRow]:
    """Up to n that are ready now."""
    places = [ready_place(lane) for lane in dict.fromkeys(lanes)]
    got: list[TaskRow] = []
    for _ in range(_ROUNDS):
        left = n - len(got)
        if left <= 0:
            break
        keys = _hinted(store, hinted, left) if hinted else _listed(store, places, left)
        taken = _take(store, worker, places, keys, hand)
        got += taken
        if hinted or len(taken) == len(keys):
            break
    return got


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


def _take(store: Store, worker: str, places: Sequence[str], keys: Sequence[Key], hand: Hand) -> list[TaskRow]:
    """Lease those of these that are to be had."""
    jobs = store.jobs((pk.removeprefix("job#") for pk, _ in keys), RENEW_SECONDS)  # what a renewal tells is no newer
    mine = {key: jobs[job] for key in keys if (job := key[0].removeprefix("job#")) in jobs}
    for job in {job.id for job in mine.values() if job.stopped and job.owed}:
        store.pay(job)  # parked, so that nobody meets them again
    live = {key: job for key, job in mine.items() if not job.stopped}
    rest = [key for key, job in live.items() if task_key(job.first) != key]
    got = [row for key in live if key not in rest and (row := _take_first(store, worker, places, key, hand))]
    for begin in range(0, len(rest), STATEMENTS):
        some = {key: live[key] for key in rest[begin : begin + STATEMENTS]}
        got += _take_some(store, worker, places, some, hand)
    return got


def _take_some(store: Store, worker: str, places: Sequence[str], keys: dict[Key, JobRow], hand: Hand) -> list[TaskRow]:
    take = store.doubts.take(hand, keys)
    sets: Item = {"state": TaskState.LEASED.value, "worker": worker, "take": take, "place": HELD}
    sets |= {"outcome": "", "progress": "0.0", "started": store.wall()}
    writes = [
        store.table.update(
            key, {**sets, "rank": held_rank(worker, job, _task(key))}, ("fence", "rev"), {"place": places}
        )
        for key, job in keys.items()
    ]
    rows = [unpack(TaskRow, item) for item in store.execute("claim", writes)]
    for key in keys.keys() - {row.key for row in rows}:
        del hand[key, take]
    return rows


def _take_first(store: Store, worker: str, places: Sequence[str], key: Key, hand: Hand) -> TaskRow | None:
    """The first task begins its job, so that the job is written with it."""
    take = store.doubts.take(hand, [key])

    def work(turn: Turn) -> TaskRow | None:
        turn.load_tasks([_task(key)])
        row = turn.task(_task(key))
        if row and row.take == take and row.held_by(worker, row.fence):
            return row  # the reply was cut
        if row is None or turn.its(row).stopped or row.item(turn.its(row)).get("place") not in places:
            return None
        job = turn.its(row)
        turn.lease(row, worker, take)
        job.started = job.started or turn.wall
        turn.settle(job)
        return row

    row = store.change("claim", work)
    if row is None:
        del hand[key, take]
    return row


def _key(item: Item) -> Key:
    return str(item["pk"]), str(item["sk"])


def _task(key: Key) -> str:
    return key[1].removeprefix("task#")
