"""Work on DynamoDB: claim, renew, complete, fail, give back. Every write checks its fence."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial

from rushes.domain.event import EventType
from rushes.domain.keys import JSON
from rushes.domain.task import LEASE_SECONDS, Failure, Finish, LeaseStatus, TaskState, Verdict
from rushes.domain.worker import Incarnation
from rushes.ledger.dynamodb import owed
from rushes.ledger.dynamodb.claims import STATEMENTS, confirmed
from rushes.ledger.dynamodb.keys import details_key, facts_key, job_key, result_key, task_key, worker_key
from rushes.ledger.dynamodb.queries import in_plan_order
from rushes.ledger.dynamodb.rows import JobRow, WorkerRow
from rushes.ledger.dynamodb.store import Store
from rushes.ledger.dynamodb.texts import decompress_json
from rushes.ledger.dynamodb.transaction import Transaction
from rushes.ledger.dynamodb.transitions import dead_letter, held, move, release, settle, status, verdict
from rushes.ledger.port import Completed, Renewed
from rushes.ledger.rules import EventData, lease_statuses

_WEIGHT = 60  # items of finishes in one transaction, so that the needs they meet still fit


# Renewals
def renew(
    store: Store, worker: Incarnation, holding: Mapping[str, int], progress: Mapping[str, float], note: str = ""
) -> Renewed:
    """Enter or keep the worker's row, and say what to do with each task held."""
    before = store.clock()

    def work(tx: Transaction) -> tuple[Renewed, WorkerRow | None]:
        tx.load_tasks(holding)
        row = tx.worker(worker.id)
        if row is None:
            row = tx.add(WorkerRow(asdict(worker), store.table.number(("numbers", "workers")), tx.wall))
        if row.over:
            return Renewed(dict.fromkeys(holding, LeaseStatus.LOST), gone=True), None
        row.heartbeat, row.note, row.left = row.heartbeat + 1, note, False
        row.who["lease_seconds"] = worker.lease_seconds
        tx.put(row)
        _note_progress(tx, worker.id, holding, progress)
        held_now = {task.id: status(tx, task) for task in tx.tasks(holding)}
        return Renewed(lease_statuses(held_now, worker.id, holding), row.draining), row

    renewed, row = store.change("renew", work, store.recall([worker_key(worker.id)]))
    if row:
        store.heartbeats.lease_left(row, before)
    _return_unconfirmed(store, worker.id, 0.0 if renewed.gone else LEASE_SECONDS)
    return renewed


def _note_progress(tx: Transaction, worker: str, holding: Mapping[str, int], progress: Mapping[str, float]) -> None:
    for task, fraction in progress.items():
        row = held(tx, worker, task, holding[task]) if task in holding and not tx.full else None
        if row and row.progress != repr(fraction):
            row.progress = repr(fraction)
            tx.put(row)


def _return_unconfirmed(store: Store, worker: str, seconds: float) -> None:
    """Hand back what the worker was not handed for so long: its slots are full, or it is over."""
    with store.unconfirmed.of(worker) as claims:
        if claims and store.unconfirmed.age(claims) >= seconds:
            rows = confirmed(store, worker, claims)
            give_back(store, worker, [(row.id, row.fence) for row in rows], "not handed out")
            for row in rows:
                del claims[row.key, row.claim_id]


# Completions
def complete(store: Store, worker: str, finishes: Sequence[Finish]) -> Completed:
    """Commit every finish whose lease counts; the answer to the others says why not."""
    verdicts: list[Verdict] = []
    opened: list[str] = []
    met: list[str] = []
    for batch in _batches(finishes):
        cached = store.recall_tasks(f.task for f in batch)
        answers, *ready = store.change("complete", partial(_complete, worker=worker, finishes=batch), cached)
        verdicts, opened, met = verdicts + answers, opened + ready[0], met + ready[1]
    (opened or met).extend(store.pay_if_owing(f.task.partition(".")[0] for f in finishes))
    return Completed(tuple(verdicts), (*opened, *in_plan_order(store, met)))


def _batches(finishes: Sequence[Finish]) -> Iterator[list[Finish]]:
    """As many finishes as fit into one transaction."""
    batch: list[Finish] = []
    weight = 0
    for finish in finishes:
        mine = 3 + sum(1 + result.publishes for result in finish.results)
        if batch and weight + mine > _WEIGHT:
            yield batch
            batch, weight = [], 0
        batch, weight = [*batch, finish], weight + mine
    if batch:
        yield batch


def _complete(tx: Transaction, worker: str, finishes: Sequence[Finish]) -> tuple[list[Verdict], list[str], list[str]]:
    """The verdicts, the tasks that an opened plan made ready, and those whose last need was met."""
    tx.load_tasks([f.task for f in finishes])
    if not all(held(tx, worker, f.task, f.fence) for f in finishes):
        tx.reload(key for f in finishes for key in (task_key(f.task), job_key(f.task.partition(".")[0])))
    won: dict[str, Finish] = {}
    for finish in finishes:
        if held(tx, worker, finish.task, finish.fence):
            won.setdefault(finish.task, finish)
    opened, met = _finish(tx, won)
    return [verdict(tx, f.task, f.fence, "done") for f in finishes], opened, met


def _finish(tx: Transaction, won: Mapping[str, Finish]) -> tuple[list[str], list[str]]:
    rows = {row.id: row for row in tx.tasks(won)}
    events = {task: status(tx, row).attempt(seconds=won[task].seconds) for task, row in rows.items()}
    for task, row in rows.items():
        move(tx, row, TaskState.DONE)
        row.worker, row.outcome, row.finished, row.adopted = "", "done", tx.wall, won[task].adopted
    jobs = {row.job: tx.job(row.job) for row in rows.values()}
    begins = [row for row in rows.values() if row.first and not jobs[row.job].opened]
    met = [id for row in begins for id in owed.count_down(tx, row)]  # before the plan adds those whom it meets
    opened: list[str] = []
    for job in jobs.values():
        opened += _record(tx, job, {t: won[t] for t, row in rows.items() if row.job == job.id}, events)
    met += [id for row in rows.values() if row not in begins for id in owed.count_down(tx, row)]
    for job in jobs.values():
        settle(tx, job)
    return opened, met


def _record(
    tx: Transaction, job: JobRow, finishes: Mapping[str, Finish], events: Mapping[str, EventData]
) -> Sequence[str]:
    """What a job gains by some of its tasks being done; the tasks that an opened plan makes ready."""
    for adopted, type in ((False, EventType.DONE), (True, EventType.ADOPTED)):
        for task, finish in finishes.items():
            if finish.adopted is adopted:
                tx.add_event(job, (type, events[task]), task)
    for result in (r for finish in finishes.values() for r in finish.results):
        row: list[JSON] = [result.output, result.manifest_sha256, result.size, result.count, result.schema_version]
        tx.put_once(result_key(job.owner, result.key), [*row, result.publishes, result.text_sha256])
        if result.publishes:
            tx.put_once(("debts", f"{job.owner}#{job.id}#{result.key}"), [job.owner, job.id, result.key])
    first = finishes.get(job.first)
    return () if first is None or job.opened else _open_plan(tx, job, first.fence)


def _open_plan(tx: Transaction, job: JobRow, fence: int) -> Sequence[str]:
    job.opened = True
    tx.load([facts_key(job.id, fence), details_key(job.id)])
    details, facts = tx.details(job.id), tx.item(facts_key(job.id, fence))
    if details is None or facts is None:
        return ()
    details.facts = json.loads(decompress_json(str(facts["body"])))
    tx.put(details)
    plan = owed.plan_of(tx, job, fence)
    tx.plans.clear()
    tx.plans[job.id, fence] = plan
    if not plan:
        return ()
    adopted = sum(draft.adopted for draft in plan)
    tx.add_event(job, (EventType.PLANNED, {"tasks": len(plan), "adopted": adopted}))
    job.total += len(plan)
    return owed.begin(tx, job, {"kind": "open_plan", "fence": fence, "after": 0})


# Leases that end without success
def fail(store: Store, worker: str, task: str, fence: int, failure: Failure, delay: float | None) -> Verdict:
    """Record a failure of the lease that counts."""

    def work(tx: Transaction) -> Verdict:
        row = held(tx, worker, task, fence)
        if row is None:
            return verdict(tx, task, fence, "failed")
        job, data = tx.job(row.job), status(tx, row).failed_attempt(failure, delay)
        tx.add_event(job, (EventType.FAILED, data), task)
        row.failures, job.failures, row.failure = row.failures + 1, job.failures + 1, asdict(failure)
        if delay is None:
            dead_letter(tx, row, "failed", failure, data)
        else:
            release(tx, row, "failed", tx.wall + round(delay * 1000) if delay > 0 else None)
        settle(tx, job)
        return Verdict.OK

    return store.change("fail", work)


def give_back(store: Store, worker: str, held: Sequence[tuple[str, int]], reason: str, delay: float = 0.0) -> None:
    """Free the leases that count, counted as nothing."""
    for n in range(0, len(held), STATEMENTS):
        batch = held[n : n + STATEMENTS]
        store.change("give_back", partial(_give_back, worker=worker, leases=batch, reason=reason, delay=delay))


def _give_back(tx: Transaction, worker: str, leases: Sequence[tuple[str, int]], reason: str, delay: float) -> None:
    tx.load_tasks([task for task, _ in leases])
    for task, fence in leases:
        row = held(tx, worker, task, fence)
        if row:
            job = tx.job(row.job)
            tx.add_event(job, (EventType.GIVEN_BACK, status(tx, row).attempt(reason=reason)), task)
            release(tx, row, "given_back", tx.wall + round(delay * 1000) if delay else None)
            row.failure = None if delay else row.failure
            settle(tx, job)
