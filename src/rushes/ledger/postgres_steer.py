"""Steering on PostgreSQL: commands to jobs and workers, dead letters revived, results set aside, log lines."""

from collections.abc import Collection, Sequence

from rushes.domain.errors import NotFound
from rushes.domain.event import EventType
from rushes.domain.job import JobCommand
from rushes.ledger.open_job import OpenJob
from rushes.ledger.postgres_jobs import JobRows
from rushes.ledger.postgres_work import legible
from rushes.postgres.store import Row, Transaction

LOG_LINES = 1000  # kept per attempt


def tell_worker(turn: Transaction, id: str, command: JobCommand) -> None:
    """Drain or leave.

    Raises:
        NotFound: no such worker.
    """
    row = turn.one("worker_row", worker=id)
    if row is None or (row[1] and command is JobCommand.DRAIN):
        raise NotFound(f"no worker {id}")
    if command is JobCommand.DRAIN:
        turn.run("worker_drain", number=row[0])
    elif not row[1]:
        turn.run("worker_leave", number=row[0], at=turn.wall)


def tell_job(turn: Transaction, id: str, command: JobCommand, value: int) -> None:
    """Pause, resume, cancel or change the priority; what is so already changes nothing.

    Raises:
        NotFound: no such job.
        Refused: it is finished.
    """
    jobs = JobRows(turn)
    job = jobs.find(id)
    if job.is_over(command) or not job.steer(command, value, turn.wall):
        return
    for _ in range(2):  # the second sees what claims cut off from runs while the first waited for them
        if command is JobCommand.PRIORITY:
            turn.run("rerank", **_span(job), rank=-value)
        else:
            turn.run("park", **_span(job), parked=job.stopped)
    if command is JobCommand.CANCEL:  # parked: no claim sees any, so that what is leased is all there is
        turn.run("let_go", **_span(job))
    jobs.save()


def revive(turn: Transaction, id: str, tasks: Collection[str], stage: str, again: bool) -> tuple[str, ...]:
    """Fresh tries for what is dead (or done, with `again`); without it back-offs end and a cancelled job goes on.

    Raises:
        NotFound: no such job.
    """
    jobs = JobRows(turn)
    job = jobs.find(id)
    if again and job.cancelled:
        return ()
    span = _span(job)
    rows = turn.all("to_revive", **span, again=again, stage=stage, every=not tasks, ids=list(tasks))
    if job.cancelled:
        job.cancelled = False
        turn.run("park", **span, parked=False)
    turn.run("end_wait", keys=[key for key, _, state in rows if state == "ready"])
    _refresh(turn, jobs, job, [row for row in rows if row[2] != "ready"])
    jobs.save()
    return tuple(row[1] for row in rows)


def set_aside(turn: Transaction, owner: str, keys: Collection[str], reason: str) -> int:
    """Take results out; how many there were."""
    return int(turn.column("set_aside", owner=owner, keys=list(keys), at=turn.wall, reason=legible(reason))[0])


def keep_log(turn: Transaction, task: str, fence: int, first: int, lines: Sequence[str]) -> None:
    """Keep log lines, the last of an attempt only."""
    numbers, texts = list(range(first, first + len(lines))), [legible(line) for line in lines]
    turn.run("log_add", task=task, fence=fence, at=turn.wall, numbers=numbers, lines=texts)
    turn.run("log_trim", task=task, fence=fence, keep=LOG_LINES)


def _span(job: OpenJob) -> dict[str, int]:
    first, last = job.span
    return {"first": first, "last": last}


def _refresh(turn: Transaction, jobs: JobRows, job: OpenJob, rows: Sequence[Row]) -> None:
    """What was dead or done waits anew, or is ready at once if nothing that it needs is missing."""
    for _, task, state in rows:
        job.tell(EventType.REVIVED, turn.wall, {"state": state}, task)
        job.dead, job.done = job.dead - (state == "dead"), job.done - (state == "done")
    keys = [row[0] for row in rows]
    turn.run("revive", keys=keys)
    turn.run("undo", keys=keys, rank=-job.priority)
    turn.run("undone", keys=keys)
    if job.needed:
        jobs.load(turn.column("rearming_jobs", **_span(job)))
    for key in turn.column("rearm", **_span(job)):
        jobs.of(key).live -= 1
    job.live += len(turn.column("revived_ready", keys=keys, parked=job.stopped))
