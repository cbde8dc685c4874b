"""Taking in on SQLite: a job with its first task, pages of a plan, keys that arrive."""

from collections.abc import Sequence

from rushes.domain.errors import OverLimit
from rushes.domain.event import EventType
from rushes.domain.job import NewJob
from rushes.domain.keys import parse_task_id
from rushes.domain.task import Draft, Verdict
from rushes.ledger.open_job import FIRST, PLACES, OpenJob
from rushes.ledger.runs import adopted_runs, tell_runs
from rushes.ledger.sqlite_jobs import JobRows
from rushes.ledger.sqlite_store import Row, Transaction, encode
from rushes.ledger.sqlite_work import DONE, standing


def submit(turn: Transaction, new: NewJob, first: Draft) -> bool:
    """Whether a job was made."""
    if not turn.run("job_add", new.id, new.owner, new.priority, turn.wall).rowcount:
        return False
    jobs = JobRows(turn)
    job = jobs.find(new.id)
    turn.run("job_text_add", job.number, new.team, new.request_id, new.name, new.recipe, new.payload)
    turn.run("draft_add", *_draft(job.number, 0, first))
    job.tell(EventType.SUBMITTED, turn.wall, {"name": new.name, "recipe": new.recipe})
    job.opened = first.adopted
    _plant(turn, job, fence=0, before=(job.number << PLACES) - 1)
    jobs.save()
    return True


def draft(turn: Transaction, task: str, fence: int, tasks: Sequence[Draft], facts: str) -> Verdict:
    """Keep a page of the plan for the attempt that holds `task`."""
    row = standing(turn, (task,)).get(task)
    said = Verdict.LOST if row is None else row.verdict(fence, *DONE)
    if row is None or not row.holds(fence):
        return said
    number = row.key >> PLACES
    turn.run("drafts_drop", number, fence)
    turn.run("draft_facts", fence, facts, number)
    turn.many("draft_add", [_draft(number, fence, d) for d in tasks])
    if turn.column("draft_count", number, fence)[0] >= FIRST:  # keys of two jobs are never neighbours
        raise OverLimit(f"the plan has too many tasks (limit: {FIRST})", "Use larger chunks with --chunk.")
    return Verdict.OK


def arrived(turn: Transaction, key: str, etag: str) -> tuple[str, ...]:
    """Meet every need of a blob key; the tasks that became ready."""
    if not turn.run("arrival_add", key, etag, turn.wall).rowcount:
        return ()
    jobs = JobRows(turn)
    ready = count_down(turn, jobs, [(task, 1) for task in turn.column("meet_key", key)])
    jobs.save()
    return ready


def open_plan(turn: Transaction, job: OpenJob, fence: int) -> tuple[str, ...]:
    """The drafts of an attempt become tasks; those that are ready at once."""
    job.opened = True
    turn.run("facts_open", fence, job.number)
    if turn.column("draft_count", job.number, fence)[0]:
        return _plant(turn, job, fence, before=job.number << PLACES)
    turn.run("drafts_done", job.number)
    return ()


def count_down(turn: Transaction, jobs: JobRows, down: Sequence[Row]) -> tuple[str, ...]:
    """So many unmet needs less for each task by its key; the tasks that became ready."""
    if not down:
        return ()
    rows = turn.all("count_down", encode(down))
    ready = sorted((key, id) for key, id, state in rows if state == "ready")
    jobs.load({key >> PLACES for key, _ in ready})
    for key, _ in ready:
        jobs.of(key).live += 1
    parked = [key for key, _ in ready if jobs.of(key).stopped]
    if parked:
        turn.run("park", encode(parked))
    return tuple(id for key, id in ready if key not in parked)


def _plant(turn: Transaction, job: OpenJob, fence: int, before: int) -> tuple[str, ...]:
    """Drafts become tasks with keys after `before`: adopted ones done, the others ready or waiting."""
    these, last = (job.number, fence), (job.number << PLACES) + FIRST
    turn.run("plant_texts", before, turn.wall, *these)
    turn.run("plant_tasks", -job.priority, turn.wall, *these, before + 1, last)
    turn.run("plant_needs", *these)
    turn.run("plant_key_needs", *these)
    turn.run("plant_counts", *these)
    ready = [id for _, id in sorted(turn.all("plant_ready", int(job.stopped), before + 1, last))]
    adopted = turn.column("plant_adopted", before + 1, last)
    size = turn.column("plant_size", before + 1, last)[0]
    turn.run("drafts_done", job.number)
    job.total, job.done, job.live = job.total + size, job.done + len(adopted), job.live + len(ready)
    if fence:
        job.tell(EventType.PLANNED, turn.wall, {"tasks": size, "adopted": len(adopted)})
    tell_runs(job, turn.wall, None, adopted_runs(adopted))
    return () if job.stopped else tuple(ready)


def _draft(job: int, fence: int, d: Draft) -> Row:
    if parse_task_id(d.id) != (d.job, d.stage, d.chunk):
        raise ValueError(f"the id {d.id!r} is not that of {d.job!r}, {d.stage!r}, {d.chunk!r}")
    needs = encode([[need.ref, need.is_key] for need in d.needs])
    return (job, fence, d.id, d.stage, d.chunk, d.lane, d.order, int(d.adopted), needs, d.spec)
