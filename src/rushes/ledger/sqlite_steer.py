"""Steering on SQLite: commands to jobs and workers, dead letters revived, log lines."""

from collections import Counter
from collections.abc import Collection, Sequence

from rushes.domain.errors import NotFound
from rushes.domain.event import EventType
from rushes.domain.job import JobCommand
from rushes.ledger.open_job import OpenJob
from rushes.ledger.sqlite_jobs import JobRows
from rushes.ledger.sqlite_store import Row, Transaction, encode

LOG_LINES = 1000  # kept per attempt


def tell_worker(turn: Transaction, id: str, command: JobCommand) -> None:
    """Drain or leave.

    Raises:
        NotFound: no such worker.
    """
    row = turn.one("worker_row", id)
    if row is None or (row[2] and command is JobCommand.DRAIN):
        raise NotFound(f"no worker {id}")
    if command is JobCommand.DRAIN:
        turn.run("worker_drain", row[0])
    elif turn.one("worker_holds", row[0]):
        turn.run("worker_end", turn.awake, row[0])  # the next sweep takes what it left
    else:
        turn.run("worker_over", turn.awake, row[0])


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
    if command is JobCommand.PRIORITY:
        turn.run("job_rank", -value, *job.span, -value)
    else:
        turn.run("job_park", int(job.stopped), *job.span)
    if command is JobCommand.CANCEL:
        turn.run("job_let_go", *job.span)
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
    rows = turn.all("to_revive", *job.span, again, stage, encode(list(tasks)))
    if job.cancelled:
        job.cancelled = False
        turn.run("job_park", 0, *job.span)
    turn.run("end_wait", encode([key for key, _, state in rows if state == "ready"]))
    _refresh(turn, jobs, job, [row for row in rows if row[2] != "ready"])
    jobs.save()
    return tuple(row[1] for row in rows)


def keep_log(turn: Transaction, task: str, fence: int, first: int, lines: Sequence[str]) -> None:
    """Keep log lines, the last of an attempt only."""
    rows: list[Row] = [(fence, first + n, turn.wall, line, task) for n, line in enumerate(lines)]
    turn.many("log_add", rows)
    turn.run("log_trim", task, fence, LOG_LINES)


def _refresh(turn: Transaction, jobs: JobRows, job: OpenJob, rows: Sequence[Row]) -> None:
    """What was dead or done waits anew, or is ready at once if nothing that it needs is missing."""
    for _, task, state in rows:
        job.tell(EventType.REVIVED, turn.wall, {"state": state}, task)
        job.dead, job.done = job.dead - (state == "dead"), job.done - (state == "done")
    keys = encode([row[0] for row in rows])
    turn.run("keep", encode([key for key, _, state in rows if state == "done"]))
    turn.run("revive", keys)
    _rearm(turn, jobs, job)
    job.live += len(turn.column("revived_ready", int(job.stopped), keys))


def _rearm(turn: Transaction, jobs: JobRows, job: OpenJob) -> None:
    """Whoever needs a task of this job that is done no more, and has not begun, waits for it."""
    up = Counter(turn.column("rearm", *job.span))
    if not up:
        return
    for key in turn.column("ready_of", encode(list(up))):
        jobs.of(key).live -= 1
    turn.run("count_up", encode(list(up.items())))
