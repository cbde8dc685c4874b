"""Looking at a ledger on PostgreSQL: one statement a look, whose rows become values."""

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import chain

from rushes.domain.event import Event, EventType
from rushes.domain.job import FINAL, Counts, Job, JobState
from rushes.domain.result import Result
from rushes.domain.task import Failure, Task, TaskState
from rushes.domain.worker import Incarnation, Worker
from rushes.ledger.clock import iso, iso_or_none
from rushes.ledger.open_job import PLACES
from rushes.ledger.port import Page
from rushes.ledger.runs import EventSeen, Name, one_by_one
from rushes.postgres import changes
from rushes.postgres.columns import numbers
from rushes.postgres.store import Row

Ask = Callable[..., list[Row]]  # a named statement and its values
_END = 2**63 - 1
CHANGES = 10_000  # jobs in one answer of `changed`


def job(ask: Ask, id: str) -> Job | None:
    """One job."""
    return next(map(job_of, ask("job", id=id)), None)


def jobs(ask: Ask, owner: str, state: JobState | None, oldest: bool, cursor: str, limit: int) -> Page[Job]:
    """An owner's jobs; the cursor is the number (and, for finished ones, the moment) of the last."""
    mine: dict[str, object] = {"owner": owner, "limit": limit}
    if state in FINAL:
        begin = (0, 0) if oldest else (_END, _END)
        at, after = map(int, cursor.split(".")) if cursor else begin
        name = "jobs_first_finished" if oldest else "jobs_last_finished"
        return _page(ask(name, **mine, state=state, at=at, after=after), limit, lambda row: f"{row[20]}.{row[21]}")
    last = int(cursor) if cursor else 0 if oldest else _END
    name = ("jobs_oldest" if oldest else "jobs_newest") + ("_in" if state else "")
    kept = JobState.CREATED if state is JobState.CHUNKING else state
    return _page(ask(name, **mine, after=last, state=state, kept=kept), limit, lambda row: str(row[21]))


def named_jobs(ask: Ask, owner: str, ids: Collection[str]) -> Page[Job]:
    """An owner's jobs by their ids."""
    return Page(tuple(map(job_of, ask("jobs_named", owner=owner, ids=list(ids)))))


def tasks(
    ask: Ask, job: str, state: TaskState | None, stage: str, ids: Collection[str], cursor: str, limit: int
) -> Page[Task]:
    """Tasks by key; the cursor is the key of the last."""
    after = int(cursor) if cursor else -1
    asked: dict[str, object] = {"state": state or "", "stage": stage, "after": after, "limit": limit}
    if job:
        rows = ask("tasks_of", **asked, job=job, every=not ids, ids=list(ids))
    elif ids:
        rows = ask("tasks_named", **asked, ids=list(ids))
    else:
        rows = ask("tasks_all" if state in (None, TaskState.DONE) else "tasks_undone", **asked)
    return Page(tuple(map(_task, rows)), str(rows[-1][0]) if len(rows) == limit else "")


def events(ask: Ask, job: str, after: int, types: Collection[EventType], task: str, limit: int) -> tuple[Event, ...]:
    """Events after a number, packed rows told one by one; or the log lines of a task."""
    if task and set(types) == {EventType.LOG}:
        return _log(ask, job, task, after, limit)
    found: list[Event] = []
    more = True
    while more and len(found) < limit:
        rows = ask("events", job=job, after=after, limit=limit + 1)
        wanted = [(*row[2:-1], json.loads(row[-1])) for row in rows if not types or row[3] in types]
        name = _names(ask, rows[0][0] if rows else 0, wanted)
        told = [e for row in wanted for e in one_by_one(job, row, name) if e.number > after]
        found += (e for e in told if not task or e.task == task)
        more = len(rows) > limit
        for _, n, seq, *_ in rows[-1:]:
            after = max(after, seq + n - 1)
    return tuple(found[:limit])


def changed(ask: Ask, cursor: str) -> tuple[tuple[str, ...], str]:
    """Jobs whose event number moved since the cursor."""
    rows = ask("changed", **changes.place(cursor), limit=CHANGES)
    return tuple(row[0] for row in rows), changes.after(cursor, rows)


def known(ask: Ask, owner: str, keys: Collection[str]) -> dict[str, Result]:
    """Which of these results exist."""
    return {row[0]: Result(*row) for row in ask("results", owner=owner, keys=list(keys))}


def workers(ask: Ask) -> tuple[Worker, ...]:
    """Every worker that has a row."""
    return tuple(map(_worker, ask("workers")))


def incarnation(row: Row) -> Incarnation:
    """Who a row of `workers_in` is about."""
    _, id, host, boot, pid, start, lanes, slots, machine, version, *_ = row
    return Incarnation(id, host, boot, pid, start, tuple(json.loads(lanes)), slots, machine, version)


def _page(rows: Sequence[Row], limit: int, cursor: Callable[[Row], str]) -> Page[Job]:
    return Page(tuple(job_of(row) for row in rows), cursor(rows[-1]) if len(rows) == limit else "")


def job_of(row: Row) -> Job:
    """A job as a row of `job_seen` tells it."""
    id, owner, team, request, name, recipe, payload, facts, state, paused, priority, *rest = row
    *counts, last_event, created, started, finished, _, _ = rest
    return Job(
        id, owner, team, request, name, recipe, payload, facts, JobState(state), paused, priority,
        Counts(*counts), last_event, iso(created), iso_or_none(started), iso_or_none(finished),
    )  # fmt: skip


def _task(row: Row) -> Task:
    _, id, job, stage, chunk, lane, place, state, fence, failures, losses, unmet, spec, worker, parked, *rest = row
    due, progress, created, started, finished, failure, adopted, now = rest
    return Task(
        id, job, stage, chunk, lane, place, TaskState(state), fence, failures, losses, unmet, spec, worker, parked,
        None if due is None else max(0.0, (due - now) / 1000), progress, iso(created), iso_or_none(started),
        iso_or_none(finished), Failure.from_json(json.loads(failure)) if failure else None, bool(adopted),
    )  # fmt: skip


def _worker(row: Row) -> Worker:
    until, draining, note, started, held, now = row[10:]
    left = max(0.0, (until - now) / 1000)
    return Worker(incarnation(row), left > 0, draining, note, tuple(held), left, iso(started))


def _names(ask: Ask, job: int, rows: Iterable[EventSeen]) -> Name:
    """How the tasks are called that these rows tell of."""
    runs = [((job << PLACES) + place, many) for *_, body in rows for place, many, _ in body.get("runs", ())]
    keys = chain.from_iterable(range(first, first + many) for first, many in runs)
    ids: dict[int, str] = dict(ask("task_ids", keys=numbers(keys))) if runs else {}
    return lambda place, many: (ids[(job << PLACES) + place + n] for n in range(many))


def _log(ask: Ask, job: str, task: str, after: int, limit: int) -> tuple[Event, ...]:
    rows = ask("log_lines", task=task, after=after, limit=limit)
    return tuple(
        Event(job, line, EventType.LOG, iso(at), task, {"fence": fence, "line": text}) for line, at, fence, text in rows
    )
