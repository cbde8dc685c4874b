"""Claims on DynamoDB: one request for a batch of hinted tasks, each leased only if it is still ready.

Whatever is claimed is unconfirmed until it is handed out; what could not be stays so for the next claim, or is
given back.
"""

from collections.abc import Collection, Iterable, Sequence

from rushes.aws.table import Item, Key, key_of
from rushes.domain.task import RENEW_SECONDS, Lease, TaskState
from rushes.domain.worker import site_of
from rushes.ledger.dynamodb.keys import HELD, held_rank, ready_list, task_key, worker_key
from rushes.ledger.dynamodb.rows import JobRow, LanesRow, TaskRow, WorkerRow, unpack
from rushes.ledger.dynamodb.store import UNDER_WAY_SECONDS, Store, Unconfirmed
from rushes.ledger.dynamodb.texts import join_texts
from rushes.ledger.dynamodb.transaction import Transaction
from rushes.ledger.dynamodb.transitions import move, settle
from rushes.ledger.rules import lease_over

STATEMENTS = 25
_ROUNDS = 5  # of looking again when others were quicker


def claim(store: Store, worker: str, lanes: Sequence[str], n: int, hinted: Collection[str] = ()) -> tuple[Lease, ...]:
    """Up to n leases, in the order of claims."""
    if _living(store, worker).draining:
        return ()
    with store.unconfirmed.of(worker) as claims:
        got = [row for row in confirmed(store, worker, claims) if row.lane in lanes][:n]
        got += _Claim(store, worker, lanes, claims).take(n - len(got), hinted)
        jobs = store.job_rows({row.job for row in got}, RENEW_SECONDS)
        specs = join_texts(store.table, ((row.job, row.spec) for row in got))
        _living(store, worker)  # for one that was frozen on the way all stays unconfirmed
        for row in got:
            del claims[row.key, row.claim_id]
    return tuple(row.lease(specs[row.spec]) for row in sorted(got, key=lambda row: row.rank(jobs[row.job])))


def confirmed(store: Store, worker: str, claims: Unconfirmed) -> list[TaskRow]:
    """What of that came about: it is this worker's, and nobody else would ever free it."""
    items = store.table.fetch(key for key, _ in claims)
    store.remember(items)
    rows: list[TaskRow] = []
    for (key, claim_id), sent in list(claims.items()):
        row = unpack(TaskRow, items[key]) if key in items else None
        if row and _is_leased(row, worker, claim_id):
            rows.append(row)
        elif store.clock() - sent > UNDER_WAY_SECONDS:
            del claims[key, claim_id]
    return rows


def _is_leased(row: TaskRow, worker: str, claim_id: str) -> bool:
    return row.state is TaskState.LEASED and (row.worker, row.claim_id) == (worker, claim_id)


def _living(store: Store, worker: str) -> WorkerRow:
    """A worker that may claim: its lease, as it renewed it itself, holds.

    Who last renewed less than a lease ago by its own clock cannot have been called over: others saw it later.
    """
    row = store.begin(store.recall([worker_key(worker)])).worker(worker)
    if row is None or row.over or store.heartbeats.lease_left(row) <= 0:
        raise lease_over(worker)
    return row


class _Claim:
    """One claim of one worker, from lists of ready tasks."""

    def __init__(self, store: Store, worker: str, lanes: Iterable[str], claims: Unconfirmed) -> None:
        self._store, self._worker, self._claims = store, worker, claims
        self._lanes = list(dict.fromkeys(lanes))
        self._lists = [ready_list(lane) for lane in self._lanes]

    def take(self, n: int, hinted: Collection[str]) -> list[TaskRow]:
        """Up to n that are ready now."""
        got: list[TaskRow] = []
        for _ in range(_ROUNDS):
            left = n - len(got)
            if left <= 0:
                break
            keys = self._hinted(hinted, left) if hinted else self._listed(left)
            taken = self._lease(keys)
            got += taken
            if hinted or len(taken) == len(keys):
                break
        return got

    def _listed(self, n: int) -> list[Key]:
        """The first n tasks of the lists."""
        lists = map(ready_list, self._used_lanes())
        return _first(n, (item for name in lists for item in self._store.table.query(name, index="by_list", limit=n)))

    def _used_lanes(self) -> list[str]:
        """Without those of a site that no task was in by the last sweep: each would be a request at every look."""
        item = self._store.recall([LanesRow.key]).get(LanesRow.key)
        used = unpack(LanesRow, item).lanes if item else self._lanes
        return [lane for lane in self._lanes if lane in used or not site_of(lane)]

    def _hinted(self, hinted: Collection[str], n: int) -> list[Key]:
        """The first n of hinted tasks; with no more than n there is nothing to choose."""
        keys = [task_key(task) for task in dict.fromkeys(hinted)]
        if len(keys) <= n:
            return keys
        items = self._store.table.fetch(keys).values()
        return _first(n, (item for item in items if str(item.get("list_name", "")).startswith("ready#")))

    def _lease(self, keys: Sequence[Key]) -> list[TaskRow]:
        """Lease those of these that are to be had."""
        store = self._store
        jobs = store.job_rows((pk.removeprefix("job#") for pk, _ in keys), RENEW_SECONDS)  # as old as renewals tell
        mine = {key: jobs[job] for key in keys if (job := key[0].removeprefix("job#")) in jobs}
        for job in {job.id for job in mine.values() if job.stopped and job.owed}:
            store.pay(job)  # parked, so that nobody meets them again
        live = {key: job for key, job in mine.items() if not job.stopped}
        rest = [key for key, job in live.items() if task_key(job.first) != key]
        got = [row for key in live if key not in rest and (row := self._lease_first(key))]
        for n in range(0, len(rest), STATEMENTS):
            got += self._lease_batch({key: live[key] for key in rest[n : n + STATEMENTS]})
        return got

    def _lease_batch(self, keys: dict[Key, JobRow]) -> list[TaskRow]:
        store, claim_id = self._store, self._store.unconfirmed.begin(self._claims, keys)
        sets: Item = {"state": TaskState.LEASED.value, "worker": self._worker, "claim_id": claim_id, "list_name": HELD}
        sets |= {"outcome": "", "progress": "0.0", "started": store.wall()}
        ranks = {key: held_rank(self._worker, job.number, _task(key)) for key, job in keys.items()}
        where = {"list_name": self._lists}
        updates = [store.table.update(key, {**sets, "rank": ranks[key]}, ("fence", "rev"), where) for key in keys]
        rows = [unpack(TaskRow, item) for item in store.execute("claim", updates)]
        for key in keys.keys() - {row.key for row in rows}:
            del self._claims[key, claim_id]
        return rows

    def _lease_first(self, key: Key) -> TaskRow | None:
        """The first task begins its job, so that the job is written with it."""
        claim_id = self._store.unconfirmed.begin(self._claims, [key])

        def work(tx: Transaction) -> TaskRow | None:
            row = tx.task(_task(key))
            if row is None or _is_leased(row, self._worker, claim_id):
                return row  # leased: the reply was cut
            job = tx.job(row.job)
            if job.stopped or row.item(job).get("list_name") not in self._lists:
                return None
            move(tx, row, TaskState.LEASED)
            row.worker, row.fence, row.claim_id, row.outcome = self._worker, row.fence + 1, claim_id, ""
            row.progress, row.started = "0.0", tx.wall
            job.started = job.started or tx.wall
            settle(tx, job)
            return row

        row = self._store.change("claim", work)
        if row is None:
            del self._claims[key, claim_id]
        return row


def _first(n: int, items: Iterable[Item]) -> list[Key]:
    return [key_of(item) for item in sorted(items, key=lambda item: str(item["rank"]))[:n]]


def _task(key: Key) -> str:
    return key[1].removeprefix("task#")
