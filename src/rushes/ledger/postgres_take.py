"""Taking in on PostgreSQL: a job with its first task, pages of a plan, keys that arrive."""

from collections.abc import Sequence

from rushes.domain.errors import OverLimit
from rushes.domain.event import EventType
from rushes.domain.job import NewJob
from rushes.domain.keys import parse_task_id
from rushes.domain.task import Draft, Verdict
from rushes.ledger.open_job import FIRST, PLACES, OpenJob, encode, fresh
from rushes.ledger.postgres_jobs import JobRows
from rushes.ledger.postgres_work import hold_tasks, legible
from rushes.ledger.runs import adopted_runs, tell_runs
from rushes.postgres.store import Bell, Cursor, Row, Transaction


def submit(turn: Transaction, new: NewJob, first: Draft, bell: Bell | None) -> Cursor:
    """What will answer with the job, if it was made; others hear of a first task that is ready by the bell."""
    if not first.needs and not first.adopted:
        if bell:
            turn.ring(bell(first.lane, first.id))
        return turn.run("job_submit", **_whole(new, first), at=turn.given)
    made = turn.run("job_add", id=new.id, owner=new.owner, priority=new.priority, at=turn.given)
    for (number,) in turn.rows(made):
        _begin(turn, number, new, first)
    return turn.run("job", id=new.id if made.rowcount else "")


def _whole(new: NewJob, first: Draft) -> dict[str, object]:
    """A job whose first task needs nothing, as one row."""
    task = {name: value for name, value in _draft(first).items() if name not in ("id", "needs", "adopted")}
    job = {"id": new.id, "owner": new.owner, "priority": new.priority, **_texts(new), "task": first.id}
    return {**job, **task, "told": encode({"name": new.name, "recipe": new.recipe})}


def _texts(new: NewJob) -> dict[str, object]:
    texts = {"team": new.team, "request_id": new.request_id, "recipe": new.recipe, "payload": new.payload}
    return {"name": legible(new.name), **texts}


def _begin(turn: Transaction, number: int, new: NewJob, first: Draft) -> None:
    turn.run("job_text_add", job=number, **_texts(new))
    turn.run("drafts_add", job=number, fence=0, rows=encode([_draft(first)]))
    jobs = JobRows(turn)
    job = jobs.made(fresh(number, new))
    job.tell(EventType.SUBMITTED, turn.wall, {"name": new.name, "recipe": new.recipe})
    job.opened = first.adopted
    if first.needs:
        _meet_others(turn, jobs, {"job": number, "fence": 0})
    _plant(turn, job, fence=0, before=job.span[0] - 1, alone=first)
    jobs.save()


def draft(turn: Transaction, task: str, fence: int, tasks: Sequence[Draft], facts: str) -> Verdict:
    """Keep a page of the plan for the attempt that holds `task`."""
    row = hold_tasks(turn, JobRows(turn), (task,)).get(task)
    if row is None or not row.holds(fence):
        return Verdict.LOST if row is None else row.verdict(fence, "done")
    number = row.key >> PLACES
    turn.run("drafts_drop", job=number, fence=fence)
    turn.run("draft_facts", job=number, fence=fence, facts=facts)
    turn.run("drafts_add", job=number, fence=fence, rows=encode([_draft(d) for d in tasks]))
    if turn.column("draft_count", job=number, fence=fence)[0] >= FIRST:  # as on SQLite
        raise OverLimit(f"the plan has too many tasks (limit: {FIRST})", "Use larger chunks with --chunk.")
    return Verdict.OK


def arrived(turn: Transaction, key: str, etag: str) -> tuple[str, ...]:
    """Meet every need of a blob key; the tasks that became ready."""
    turn.run("hold_key", key=key)
    if not turn.all("arrival_add", key=key, etag=etag, at=turn.wall):
        return ()
    jobs = JobRows(turn)
    jobs.load(turn.column("awaiting", key=key))
    ready = count_ready(jobs, turn.all("meet_key", key=key))
    jobs.save()
    return ready


def open_plan(turn: Transaction, jobs: JobRows, job: OpenJob, fence: int) -> tuple[str, ...]:
    """The drafts of an attempt become tasks; those that are ready at once."""
    job.opened = True
    turn.run("facts_open", job=job.number, fence=fence)
    if turn.column("draft_count", job=job.number, fence=fence)[0]:
        _meet_others(turn, jobs, {"job": job.number, "fence": fence})
        return _plant(turn, job, fence, before=job.span[0])
    turn.run("drafts_done", job=job.number)
    return ()


def count_ready(jobs: JobRows, rows: Sequence[Row]) -> tuple[str, ...]:
    """Tasks (key, id, parked) became ready: their jobs count them; those that can be claimed."""
    for key, _, _ in rows:
        jobs.of(key).live += 1
    return tuple(id for _, id, parked in rows if not parked)


def _plant(turn: Transaction, job: OpenJob, fence: int, before: int, alone: Draft | None = None) -> tuple[str, ...]:
    """Drafts become tasks with keys after `before`: adopted ones done, the others ready or waiting.

    Of one that comes `alone` and needs nothing it is known what it becomes.
    """
    these = {"job": job.number, "fence": fence}
    new = {**these, "first": before + 1, "last": job.span[1]}
    turn.run("plant_texts", **these, before=before, at=turn.wall)
    turn.run("plant_needs", **new)
    turn.run("plant_key_needs", **new)
    turn.run("plant_done", **new, at=turn.wall)
    turn.run("plant_tasks", **new, rank=-job.priority, stopped=job.stopped)
    turn.run("drafts_done", job=job.number)
    if alone and (alone.adopted or not alone.needs):
        planted: list[Row] = [(before + 1, alone.id, None if alone.adopted else "ready")]
    else:
        planted = turn.all("planted", first=before + 1, last=job.span[1])
    return _count(turn, job, fence, planted)


def _count(turn: Transaction, job: OpenJob, fence: int, planted: Sequence[Row]) -> tuple[str, ...]:
    """What a job gains by new tasks (key, id, state; those without a state are done); those that can be claimed."""
    ready = [id for _, id, state in planted if state == "ready"]
    adopted = [key for key, _, state in planted if state is None]
    job.total, job.done, job.live = job.total + len(planted), job.done + len(adopted), job.live + len(ready)
    if fence:
        job.tell(EventType.PLANNED, turn.wall, {"tasks": len(planted), "adopted": len(adopted)})
    tell_runs(job, turn.wall, None, adopted_runs(adopted))
    return () if job.stopped else tuple(ready)


def _meet_others(turn: Transaction, jobs: JobRows, these: dict[str, int]) -> None:
    """Hold what a plan needs of others: keys that may arrive, tasks of other jobs that may be done meanwhile."""
    turn.run("hold_keys", **these)
    others = turn.column("needed_jobs", **these)
    if others:
        jobs.load(others)
        turn.run("mark_needed", numbers=others)


def _draft(d: Draft) -> dict[str, object]:
    if parse_task_id(d.id) != (d.job, d.stage, d.chunk):
        raise ValueError(f"the id {d.id!r} is not that of {d.job!r}, {d.stage!r}, {d.chunk!r}")
    needs = [[need.ref, need.is_key] for need in d.needs]
    return {
        "id": d.id, "stage": d.stage, "chunk": d.chunk, "lane": d.lane, "place": d.order, "adopted": d.adopted,
        "needs": needs, "spec": d.spec,
    }  # fmt: skip
