"""Commands on DynamoDB: submit a job, write plan pages, mark arrived keys; control jobs and workers; revive."""

from collections.abc import Collection, Sequence
from dataclasses import asdict, replace
from functools import partial

from rushes.aws.table import Item
from rushes.domain.event import EventType
from rushes.domain.job import Job, JobCommand, NewJob
from rushes.domain.task import Draft, Verdict
from rushes.ledger import rules
from rushes.ledger.dynamodb import owed
from rushes.ledger.dynamodb.history import trim
from rushes.ledger.dynamodb.keys import details_key, facts_key, job_key, task_key
from rushes.ledger.dynamodb.queries import held_by_worker, in_plan_order, job_of
from rushes.ledger.dynamodb.rows import JobDetails, JobRow, LanesRow, draft_item, encode
from rushes.ledger.dynamodb.store import Store
from rushes.ledger.dynamodb.texts import compress_json, split_text
from rushes.ledger.dynamodb.transaction import Transaction
from rushes.ledger.dynamodb.transitions import held, insert, meet_need, settle, verdict
from rushes.ledger.port import Arrival, Submitted

DRAFT_SECONDS = 86_400


# Taking in
def submit(store: Store, new: NewJob, first: Draft) -> Submitted:
    """A job with its first task and first event."""
    number: list[int] = []
    spec, texts = split_text(new.id, first.spec)
    if texts:
        store.save("submit", texts)

    def work(tx: Transaction) -> Submitted:
        tx.load([job_key(new.id), details_key(new.id), task_key(first.id), LanesRow.key])
        there = tx.find_job(new.id)
        if there:  # ours, if a reply was cut
            return Submitted(job_of(tx, new.id), created=[there.number] == number)
        if not number:
            number.append(store.table.number(("numbers", "jobs")))
        _add_job(tx, new, number[0], replace(first, spec=spec))
        return Submitted(job_of(tx, new.id), created=True)

    return store.change("submit", work)


def _add_job(tx: Transaction, new: NewJob, number: int, first: Draft) -> None:
    tx.add(JobDetails(asdict(new), number=number))
    job = tx.add(JobRow(new.id, new.owner, number, new.priority, tx.wall, first.id, opened=first.adopted, total=1))
    tx.add_event(job, (EventType.SUBMITTED, {"name": new.name, "recipe": new.recipe}))
    insert(tx, job, first, {})
    settle(tx, job)


def draft(store: Store, job: str, task: str, fence: int, tasks: Sequence[Draft], facts: str) -> Verdict:
    """Keep a page of the plan: only its own attempt's completion reads it."""
    tx = store.begin()
    if not held(tx, None, task, fence):
        return verdict(tx, task, fence, "done")
    expires = tx.wall // 1000 + DRAFT_SECONDS
    specs = {d.id: split_text(job, d.spec) for d in tasks}
    texts = {item["sk"]: item for _, some in specs.values() for item in some}  # several may share one
    drafts = [draft_item(replace(d, spec=specs[d.id][0]), fence, expires) for d in tasks]
    pk, sk = facts_key(job, fence)
    plan: Item = {"pk": pk, "sk": sk, "body": compress_json(encode(facts)), "expires": expires}
    store.save("draft", [*texts.values(), *drafts, plan])
    return Verdict.OK


def arrived(store: Store, key: str, etag: str) -> Arrival:
    """Meet every need of a blob key, or name the jobs that began with other content of it."""
    ready: list[str] = []
    more = True
    while more:
        some, more = store.change("arrived", partial(_meet_page, name=key, etag=etag))
        ready += some
    again = store.change("arrived", partial(_jobs_begun_by, name=key, etag=etag))
    return Arrival(tuple(in_plan_order(store, ready)), again)


def _jobs_begun_by(tx: Transaction, name: str, etag: str) -> tuple[str, ...]:
    key = tx.blob_key(name)
    if key.etags[0] == etag:
        return ()
    tx.load_tasks(key.dependants)
    return tuple(sorted(row.job for row in tx.tasks(list(key.dependants)) if row.first))


def _meet_page(tx: Transaction, name: str, etag: str) -> tuple[list[str], bool]:
    """A page of those who need the key; the arrival is noted with the last one, so that it can be repeated."""
    key = tx.blob_key(name)
    ready: list[str] = []
    if etag in key.etags:
        return [], False
    key.arrived, key.expires = True, tx.wall // 1000 + rules.LOCK_SECONDS
    tx.put(key)
    tx.load_tasks(key.dependants)
    for id, bit in key.dependants.items():
        if tx.full:
            return ready, True
        ready += [id] if meet_need(tx, id, bit) else []
        for row in tx.tasks([id]):
            settle(tx, tx.job(row.job))
    key.etags.append(etag)
    return ready, False


# Steering
def control(store: Store, target: str, command: JobCommand, value: int = 0, stages: Collection[str] = ()) -> Job | None:
    """Command a job or a worker."""
    if command in (JobCommand.DRAIN, JobCommand.LEAVE):
        _control_worker(store, target, command)
        return None
    if command is JobCommand.FORGET:
        _forget(store, target)
        return None
    if command is JobCommand.TRIM:
        return trim(store, target, value)
    return _control_job(store, target, command, value, stages)


def _control_worker(store: Store, id: str, command: JobCommand) -> None:
    holds = command is JobCommand.LEAVE and bool(held_by_worker(store, id))

    def work(tx: Transaction) -> None:
        row = tx.worker(id)
        rules.check_worker(id, command, known=row is not None, over=bool(row and row.over))
        if row is None:
            return
        if command is JobCommand.DRAIN:
            row.draining = True
        elif holds:
            row.left = True
        elif not row.over:
            row.end(tx.wall)
        tx.put(row)

    store.change("control", work)


def _control_job(store: Store, id: str, command: JobCommand, value: int, stages: Collection[str]) -> Job:
    """Pause, resume, cancel or change the priority: one write on the job; its tasks follow, now or owed."""

    def work(tx: Transaction) -> Job:
        tx.load([job_key(id), details_key(id)])
        job = tx.job(id)
        event = rules.apply_command(job, command, value, stages)
        if event:
            tx.add_event(job, event)
            if stages:
                owed.cancel_stages(tx, job)
            elif job.cancelled:
                job.chunking, job.epoch = False, job.epoch + 1
            if not stages:
                owed.relist_tasks(tx, job)
            settle(tx, job)
        return job_of(tx, id)

    job = store.change("control", work)
    store.pay_if_owing([id])
    return job


def _forget(store: Store, id: str) -> None:
    """Drop a finished job, a page at a time; a sweep goes on with what a kill left."""

    def work(tx: Transaction) -> None:
        job = tx.job(id)
        rules.check_forget(id, job.state)
        job.owed = [{"kind": owed.FORGET}]
        tx.put(job)

    store.change("control", work)
    store.pay(id)
    store.clear_cache()


def revive(
    store: Store,
    job: str,
    tasks: Collection[str] = (),
    stages: Collection[str] = (),
    again: bool = False,
    delayed: bool = False,
) -> tuple[str, ...]:
    """Fresh tries for what is dead (or done, with `again`); without it back-offs end and a cancelled job goes on."""
    if delayed:
        return store.change("revive", partial(_end_delays, job=job, tasks=sorted(tasks)))

    def work(tx: Transaction) -> list[str]:
        row = tx.job(job)
        if again and row.cancelled:
            return []
        if row.cancelled:
            row.cancelled = False
            tx.put(row)
        if not again:
            row.cancelled_stages = [stage for stage in row.cancelled_stages if stage not in stages]
            tx.put(row)
        step = {"kind": "revive", "tasks": sorted(tasks), "stages": sorted(stages), "again": again, "after": []}
        revived = owed.begin(tx, row, step)
        settle(tx, row)
        return revived

    return (*store.change("revive", work), *store.pay_if_owing([job]))


def _end_delays(tx: Transaction, job: str, tasks: Sequence[str]) -> tuple[str, ...]:
    """Those that wait for their time are due now."""
    tx.load_tasks(tasks)
    rows = [row for row in tx.tasks(tasks) if row.job == tx.job(job).id and row.due is not None]
    for row in rows:
        row.due = None
        tx.put(row)
    return tuple(row.id for row in rows)
