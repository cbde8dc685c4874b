"""Control on SQL: commands to jobs and workers, revive of dead letters."""

from collections.abc import Collection, Sequence

from rushes.domain.event import EventType
from rushes.domain.job import JobCommand
from rushes.ledger.rules import apply_command, check_forget, check_worker
from rushes.ledger.sql.intake import cancel_stages
from rushes.ledger.sql.job_row import JobRow, JobRows
from rushes.ledger.sql.transaction import Row, Transaction

# What is dropped with a job, in this order: the job itself last, because others point to it.
_FORGOTTEN = ("logs", "needs", "key_needs", "specs", "tasks", "events", "drafts", "debts", "change", "texts", "job")


def command_worker(tx: Transaction, id: str, command: JobCommand) -> None:
    """Drain or leave.

    Raises:
        NotFound: no such worker.
    """
    row = tx.one("worker_row", worker=id)
    check_worker(id, command, known=row is not None, over=bool(row and row[1]))
    if row and command is JobCommand.DRAIN:
        tx.run("drain_worker", number=row[0])
    elif row and not row[1]:
        tx.run("leave_worker", number=row[0], now=tx.awake)


def command_job(tx: Transaction, id: str, command: JobCommand, value: int, stages: Collection[str]) -> None:
    """Pause, resume, cancel or change the priority; what is so already changes nothing.

    Raises:
        NotFound: no such job.
        Refused: it is finished.
    """
    jobs = JobRows(tx)
    job = jobs.find(id)
    event = apply_command(job, command, value, stages)
    if event is None:
        return None
    job.record(event[0], event[1])
    if stages:
        cancel_stages(tx, job)
        return jobs.save()
    if command is JobCommand.PRIORITY:
        tx.run("rank_tasks", **job.keys, rank=-value)
    else:
        tx.run("park_job", **job.keys, parked=job.stopped)
    if command is JobCommand.CANCEL:  # parked: no claim sees any, so that what is leased is all there is
        tx.run("take_leases", **job.keys)
    return jobs.save()


def trim_job(tx: Transaction, id: str, seconds: int) -> None:
    """Drop events and log lines that are at least so old, but for the last event.

    Raises:
        NotFound: no such job.
    """
    job = JobRows(tx).find(id)
    before = job.at - 1000 * seconds
    tx.run("trim_events", job=job.number, last=job.last_event, before=before)
    tx.run("trim_logs", **job.keys, before=before)


def forget_job(tx: Transaction, id: str) -> None:
    """Drop a finished job.

    Raises:
        NotFound: no such job.
        Refused: it is not finished.
    """
    job = JobRows(tx).find(id)
    check_forget(id, job.state)
    for name in _FORGOTTEN:
        tx.run(f"forget_{name}", **job.keys, job=job.number, id=id)


def revive(tx: Transaction, id: str, tasks: Collection[str], stages: Collection[str], again: bool) -> tuple[str, ...]:
    """Fresh tries for what is dead (or done, with `again`); without it back-offs end and a cancelled job goes on.

    Raises:
        NotFound: no such job.
    """
    jobs = JobRows(tx)
    job = jobs.find(id)
    if again and job.cancelled:
        return ()
    named = {"ids": list(tasks), "every": not tasks, "stages": list(stages), "every_stage": not stages}
    rows = tx.all("to_revive", **job.keys, again=again, **named)
    if not again:
        job.cancelled_stages = [stage for stage in job.cancelled_stages if stage not in stages]
    if job.cancelled:
        job.cancelled = False
        tx.run("park_job", **job.keys, parked=bool(job.paused))
    tx.run("end_backoff", keys=[key for key, _, state in rows if state == "ready"])
    _revive(tx, jobs, job, [row for row in rows if row[2] != "ready"])
    jobs.save()
    return tuple(row[1] for row in rows)


def end_delays(tx: Transaction, id: str, tasks: Collection[str]) -> tuple[str, ...]:
    """Those of these tasks that wait for their time are due now.

    Raises:
        NotFound: no such job.
    """
    job = JobRows(tx).find(id)
    rows = tx.all("delayed_tasks", **job.keys, ids=list(tasks))
    tx.run("end_backoff", keys=[key for key, _ in rows])
    return tuple(task for _, task in rows)


def _revive(tx: Transaction, jobs: JobRows, job: JobRow, rows: Sequence[Row]) -> None:
    """What was dead or done waits again, or is ready at once if nothing that it needs is missing."""
    for _, task, state in rows:
        job.record(EventType.REVIVED, {"state": state}, task)
        job.dead, job.done = job.dead - (state == "dead"), job.done - (state == "done")
        job.total += state == "cancelled"
    keys = [row[0] for row in rows]
    tx.run("revive", keys=keys)
    _reset_needs(tx, jobs, job)
    job.live += len(tx.column("ready_revived", keys=keys, parked=job.stopped))


def _reset_needs(tx: Transaction, jobs: JobRows, job: JobRow) -> None:
    """Whoever needs a task of this job that is done no more, and has not begun, waits for it."""
    jobs.load(tx.column("dependent_jobs", **job.keys))
    waiting = tx.all("dependents", **job.keys)
    for key, state in waiting:
        jobs.of(key).live -= state == "ready"
    if waiting:
        tx.run("reset_needs", keys=[key for key, _ in waiting])
