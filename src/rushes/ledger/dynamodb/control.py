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


def control_worker(store: Store, id: str, command: JobCommand) -> None:
    """Drain or leave."""
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


def control_job(store: Store, id: str, command: JobCommand, value: int) -> Job:
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


def revive(store: Store, id: str, tasks: Collection[str], stage: str, again: bool) -> tuple[str, ...]:
    """Fresh tries for what is dead (or done, with `again`); without it back-offs end and a cancelled job goes on."""

    def work(tx: Transaction) -> list[str]:
        job = tx.job(id)
        if again and job.cancelled:
            return []
        if job.cancelled:
            job.cancelled = False
            tx.put(job)
        step = {"kind": "revive", "tasks": sorted(tasks), "stage": stage, "again": again, "after": []}
        revived = owed.begin(tx, job, step)
        settle(tx, job)
        return revived

    return (*store.change("revive", work), *store.pay_if_owing([id]))
