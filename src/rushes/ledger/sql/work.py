"""Work on SQL: claim, renew, complete, fail, give back. Every write checks its fence."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from operator import itemgetter

from rushes.domain.event import EventType
from rushes.domain.keys import parse_task_id
from rushes.domain.task import Failure, Finish, Lease, LeaseStatus, Verdict
from rushes.domain.worker import Incarnation
from rushes.ledger.port import Completed, Renewed
from rushes.ledger.rules import EventData, TaskStatus, lease_statuses
from rushes.ledger.sql.intake import make_ready, open_plan
from rushes.ledger.sql.job_row import PLACE, JobRow, JobRows, held_tasks, task_statuses
from rushes.ledger.sql.transaction import Row, Transaction, encode, legible

Won = dict[tuple[str, int], int]  # (task, fence) of each finish that counts, and the task's key


def leases(rows: list[Row]) -> tuple[Lease, ...]:
    """What a claim answers, in the order of rank and key."""
    rows.sort(key=itemgetter(0, 1))
    return tuple(Lease(id, fence, id.partition(".")[0], *rest) for _, _, id, fence, *rest in rows)


def renew(
    tx: Transaction, worker: Incarnation, holding: Mapping[str, int], progress: Mapping[str, float], note: str
) -> Renewed:
    """Enter or keep the worker's row, and say what to do with each task held."""
    row = tx.one("worker_row", worker=worker.id)
    if row and row[1]:
        return Renewed(dict.fromkeys(holding, LeaseStatus.LOST), gone=True)
    if row is None:
        who = asdict(worker) | {"lanes": encode(worker.lanes), "note": legible(note)}
        lease = {"until": tx.awake + who.pop("lease_seconds"), "seen": tx.wall, "started": tx.wall}
        tx.insert("worker", [{**who, **lease, "over": False, "draining": False}])
    else:
        now = None if tx.at is None else tx.awake
        tx.run("keep_worker", number=row[0], now=now, at=tx.at, seconds=worker.lease_seconds, note=legible(note))
    rows = [{"id": task, "fence": holding[task], "progress": p} for task, p in progress.items() if task in holding]
    if row and rows:
        tx.run("keep_progress", number=row[0], rows=encode(rows))
    statuses = task_statuses(tx, holding) if holding else {}
    return Renewed(lease_statuses(statuses, worker.id, holding), drain=bool(row and row[2]))


def complete(tx: Transaction, worker: str, finishes: Sequence[Finish]) -> Completed:
    """Commit every finish whose lease counts; the answer to the others says why not."""
    jobs, leases = JobRows(tx), dict[tuple[str, int], Finish]()
    for finish in finishes:
        leases.setdefault((finish.task, finish.fence), finish)
    held = tx.send("jobs_of", ids=[finish.task for finish in finishes])
    ended = tx.send("finish", worker=worker, at=tx.at, rows=encode([_finish_row(f) for f in leases.values()]))
    jobs.keep(held())
    ends = ended()
    won = {(id, fence): key for kind, key, id, _, fence in ends if kind == "done"}
    ready = list(make_ready(tx, jobs, [row[1:4] for row in ends if row[0] == "counted"]))
    drafts = [row[1:] for row in ends if row[0] == "draft"]
    done = [(jobs.of(won[lease]), finish) for lease, finish in leases.items() if lease in won]
    for job, finish in done:
        _count_done(job, worker, finish)
        if not won[finish.task, finish.fence] & PLACE and not job.opened:
            ready += open_plan(tx, jobs, job, _plan_of(job, finish.fence, drafts))
    _keep_results(tx, done)
    jobs.save()
    return Completed(_verdicts(tx, finishes, won), tuple(ready))


def fail(tx: Transaction, worker: str, task: str, fence: int, failure: Failure, delay: float | None) -> Verdict:
    """Record a failure of the lease that counts."""
    jobs = JobRows(tx)
    status = held_tasks(tx, jobs, (task,)).get(task)
    if status is None:
        return Verdict.LOST
    if not status.holds(fence, worker):
        return status.verdict(fence, "failed")
    job, about = jobs.of(status.key), status.failed_attempt(failure, delay)
    job.failures += 1
    job.record(EventType.FAILED, about, task)
    if delay is None:
        dead_letter(tx, job, status, "failed", failure, about)
    else:
        release(tx, job, status, "failed", failure, due=tx.now + delay if delay > 0 else None)
    jobs.save()
    return Verdict.OK


def give_back(tx: Transaction, worker: str, held: Sequence[tuple[str, int]], reason: str, delay: float) -> None:
    """Free the leases that count, counted as nothing."""
    jobs = JobRows(tx)
    statuses = held_tasks(tx, jobs, [task for task, _ in held])
    for task, fence in dict.fromkeys(held):
        status = statuses.get(task)
        if status and status.holds(fence, worker):
            job = jobs.of(status.key)
            release(tx, job, status, "given_back", due=tx.now + delay if delay else None)
            job.record(EventType.GIVEN_BACK, status.attempt(reason=reason), task)
    jobs.save()


def release(
    tx: Transaction,
    job: JobRow,
    status: TaskStatus,
    outcome: str,
    failure: Failure | None = None,
    due: float | None = None,
) -> None:
    """A lease ended without success: ready again, perhaps not before a time."""
    waits = due is not None and failure is None
    tx.run("release", key=status.key, due=due, waits=waits, parked=job.stopped, **_end(outcome, failure))


def dead_letter(
    tx: Transaction, job: JobRow, status: TaskStatus, outcome: str, failure: Failure, about: EventData
) -> None:
    """A lease ended without success for the last time."""
    tx.run("dead_letter", key=status.key, at=job.at, **_end(outcome, failure))
    job.dead, job.live = job.dead + 1, job.live - 1
    job.record(EventType.DEAD, about, status.id)


def _finish_row(finish: Finish) -> dict[str, object]:
    return {"id": finish.task, "fence": finish.fence, "adopted": finish.adopted}


def _count_done(job: JobRow, worker: str, finish: Finish) -> None:
    """What a job gains by a task that is done."""
    _, stage, chunk = parse_task_id(finish.task)
    job.done, job.live = job.done + 1, job.live - 1
    data = {"stage": stage, "chunk": chunk, "fence": finish.fence, "worker": worker, "seconds": finish.seconds}
    job.record(EventType.ADOPTED if finish.adopted else EventType.DONE, data, finish.task)


def _plan_of(job: JobRow, fence: int, drafts: Sequence[Row]) -> dict[str, str]:
    """What one attempt of a job's first task drafted, by id."""
    return {id: body for number, id, body, by in drafts if (number, by) == (job.number, fence)}


def _keep_results(tx: Transaction, done: Sequence[tuple[JobRow, Finish]]) -> None:
    """Results that are not there yet (one that is there never changes), and the names that they owe."""
    made = sorted((job.owner, result, job.id) for job, finish in done for result in finish.results)
    results = [{"owner": owner, **result._asdict()} for owner, result, _ in made]
    debts = [{"owner": owner, "job": job, "key": result.key} for owner, result, job in made if result.publishes]
    tx.insert("result", results, skip_existing=True)
    tx.insert("debt", debts, skip_existing=True)


def _verdicts(tx: Transaction, finishes: Sequence[Finish], won: Won) -> tuple[Verdict, ...]:
    lost = [finish.task for finish in finishes if (finish.task, finish.fence) not in won]
    statuses = task_statuses(tx, lost) if lost else {}
    return tuple(
        Verdict.OK
        if (finish.task, finish.fence) in won
        else statuses[finish.task].verdict(finish.fence, "done")
        if finish.task in statuses
        else Verdict.LOST
        for finish in finishes
    )


def _end(outcome: str, failure: Failure | None) -> dict[str, object]:
    counted = {"failures": int(outcome == "failed"), "losses": int(outcome == "lost")}
    return {"outcome": outcome, "failure": encode(asdict(failure)) if failure else None, **counted}
