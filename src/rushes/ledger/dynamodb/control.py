"""Steering on DynamoDB: commands to jobs and workers, dead letters revived."""

from collections.abc import Collection

from rushes.domain.job import Job, JobCommand
from rushes.ledger import rules
from rushes.ledger.dynamodb import owed
from rushes.ledger.dynamodb.keys import details_key, job_key
from rushes.ledger.dynamodb.queries import held_by_worker, job_of
from rushes.ledger.dynamodb.store import Store
from rushes.ledger.dynamodb.transaction import Transaction
from rushes.ledger.dynamodb.transitions import settle


def control(store: Store, target: str, command: JobCommand, value: int = 0) -> Job | None:
    """Command a job or a worker."""
    if command in (JobCommand.DRAIN, JobCommand.LEAVE):
        _control_worker(store, target, command)
        return None
    return _control_job(store, target, command, value)


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


def _control_job(store: Store, id: str, command: JobCommand, value: int) -> Job:
    """Pause, resume, cancel or change the priority: one write on the job; its tasks follow, now or owed."""

    def work(tx: Transaction) -> Job:
        tx.load([job_key(id), details_key(id)])
        job = tx.job(id)
        event = rules.apply_command(job, command, value)
        if event:
            tx.add_event(job, event)
            if job.cancelled:
                job.chunking, job.epoch = False, job.epoch + 1
            owed.relist_tasks(tx, job)
            settle(tx, job)
        return job_of(tx, id)

    job = store.change("control", work)
    store.pay_if_owing([id])
    return job


def revive(
    store: Store, job: str, tasks: Collection[str] = (), stage: str = "", again: bool = False
) -> tuple[str, ...]:
    """Fresh tries for what is dead (or done, with `again`); without it back-offs end and a cancelled job goes on."""

    def work(tx: Transaction) -> list[str]:
        row = tx.job(job)
        if again and row.cancelled:
            return []
        if row.cancelled:
            row.cancelled = False
            tx.put(row)
        step = {"kind": "revive", "tasks": sorted(tasks), "stage": stage, "again": again, "after": []}
        revived = owed.begin(tx, row, step)
        settle(tx, row)
        return revived

    return (*store.change("revive", work), *store.pay_if_owing([job]))
