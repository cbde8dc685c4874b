"""Queries on SQL: rows become values."""

import json
from collections import defaultdict
from collections.abc import Callable, Collection
from typing import Any

from rushes.domain.event import Event, EventType
from rushes.domain.job import FINAL, Counts, Job, JobState
from rushes.domain.task import Failure, Task, TaskState
from rushes.domain.worker import Incarnation, Worker
from rushes.ledger.clock import iso, iso_or_none
from rushes.ledger.counts import MOST_READY
from rushes.ledger.port import Page, StageCount
from rushes.ledger.rules import no_job, with_truncation
from rushes.ledger.sql.job_row import PLACE, PLACE_BITS
from rushes.ledger.sql.transaction import Reader, Row

CHANGES = 10_000  # jobs in one answer of `changed`
_END = 2**63 - 1


def job(reader: Reader, id: str) -> Job:
    """One job.

    Raises:
        NotFound: no such job.
    """
    row = reader.one("job", id=id)
    if row is None:
        raise no_job(id)
    return job_of(row)


def jobs(reader: Reader, owner: str, state: JobState | None, oldest: bool, cursor: str, limit: int) -> Page[Job]:
    """An owner's jobs; the cursor is the number (and, for finished ones, the moment) of the last."""
    mine = {"owner": owner, "limit": limit, "state": state}
    if state in FINAL:
        at, after = map(int, cursor.split(".")) if cursor else (0, 0) if oldest else (_END, _END)
        name = "jobs_first_finished" if oldest else "jobs_last_finished"
        return _page(reader.all(name, **mine, at=at, after=after), limit, lambda row: f"{row[20]}.{row[21]}")
    after = int(cursor) if cursor else 0 if oldest else _END
    kind = "" if state is None else "_begun" if state is JobState.CHUNKING else "_in"
    name = ("jobs_oldest" if oldest else "jobs_newest") + kind
    return _page(reader.all(name, **mine, after=after), limit, lambda row: str(row[21]))


def queued_jobs(
    reader: Reader, owner: str, queue: str, state: JobState | None, oldest: bool, cursor: str, limit: int
) -> Page[Job]:
    """An owner's jobs of a queue; the cursor is the number of the last."""
    after = int(cursor) if cursor else 0 if oldest else _END
    name = "jobs_oldest_queued" if oldest else "jobs_newest_queued"
    rows = reader.all(name, owner=owner, queue=queue, state=state or "", after=after, limit=limit)
    return _page(rows, limit, lambda row: str(row[21]))


def named_jobs(reader: Reader, owner: str, ids: Collection[str]) -> Page[Job]:
    """An owner's jobs by their ids."""
    return Page(tuple(map(job_of, reader.all("jobs_named", owner=owner, ids=list(ids)))))


def tasks(
    reader: Reader, job: str, state: TaskState | None, stage: str, ids: Collection[str], cursor: str, limit: int
) -> Page[Task]:
    """Tasks by key; the cursor is the key of the last."""
    after = int(cursor) if cursor else -1
    asked: dict[str, Any] = {"state": state or "", "stage": stage, "after": after, "limit": limit, "ids": list(ids)}
    if job:
        rows = _tasks_of(reader, job, asked)
    elif ids:
        rows = reader.all("tasks_named", **asked)
    elif state in (None, TaskState.DONE, TaskState.CANCELLED):
        rows = reader.all("tasks_between", **asked, last=_END, every=True)
    else:
        rows = reader.all("tasks_undone", **asked)
    return Page(tuple(_task(row, reader.now) for row in rows), str(rows[-1][0]) if len(rows) == limit else "")


def events(
    reader: Reader, job: str, after: int, types: Collection[EventType], task: str, limit: int
) -> tuple[Event, ...]:
    """Events after a number; or the log lines of a task."""
    if task and set(types) == {EventType.LOG}:
        lines = reader.all("log_lines", task=task, after=after, limit=limit)
        return tuple(
            Event(job, n, EventType.LOG, iso(at), task, {"fence": f, "line": text}) for n, at, f, text in lines
        )
    asked = {"types": [type.value for type in types], "every": not types, "task": task}
    rows = reader.all("events", job=job, after=after, limit=limit, **asked)
    found = [Event(job, seq, EventType(type), iso(at), of, json.loads(body)) for seq, type, at, of, body in rows]
    return tuple(found) if types or task else with_truncation(found, after, limit)


def workers(reader: Reader) -> tuple[Worker, ...]:
    """Every worker that has a row."""
    held: dict[int, list[str]] = defaultdict(list)
    for number, task in reader.all("held"):
        held[number].append(task)
    return tuple(_worker(row, tuple(held[row[0]]), reader.awake) for row in reader.all("workers"))


def counts(reader: Reader, jobs: Collection[str]) -> tuple[StageCount, ...]:
    """What tasks add up to, by lane and stage."""
    if jobs:
        rows = reader.all("stage_counts", ids=list(jobs), at=reader.at)
    else:
        rows = reader.all("ready_counts", most=MOST_READY, at=reader.at)
    return tuple(_count(*row) for row in rows)


def _count(lane: str, stage: str, ready: int, oldest: int | None, *rest: int) -> StageCount:
    """Moments are milliseconds; sums may be decimal numbers."""
    done, dead, failures, retries, losses, millis = map(int, rest or (0,) * 6)
    age = max(0, oldest or 0) / 1000
    return StageCount(lane, stage, int(ready), age, done, dead, failures, retries, losses, millis / 1000)


def incarnation(row: Row) -> Incarnation:
    """Who a row of `workers` is about."""
    _, id, host, boot, pid, start, lanes, slots, machine, version, owner, *_ = row
    return Incarnation(id, host, boot, pid, start, tuple(json.loads(lanes)), slots, machine, version, owner)


def _tasks_of(reader: Reader, job: str, asked: dict[str, Any]) -> list[Row]:
    for number in reader.column("job_number", id=job):
        first = number << PLACE_BITS
        span = {"after": max(asked.pop("after"), first - 1), "last": first + PLACE}
        return reader.all("tasks_between", **asked, **span, every=not asked["ids"])
    return []


def _page(rows: list[Row], limit: int, cursor: Callable[[Row], str]) -> Page[Job]:
    return Page(tuple(map(job_of, rows)), cursor(rows[-1]) if len(rows) == limit else "")


def job_of(row: Row) -> Job:
    """A job as a row of `job_listed` says."""
    id, owner, team, request, name, recipe, payload, facts, state, paused, priority, *rest = row
    *counts, last_event, created, started, finished, _, _, stages, queue = rest
    return Job(
        id, owner, team, request, name, recipe, payload, facts, JobState(state), bool(paused), priority,
        Counts(*counts), last_event, iso(created), iso_or_none(started), iso_or_none(finished), tuple(stages.split()),
        queue,
    )  # fmt: skip


def _task(row: Row, now: float | None) -> Task:
    _, id, job, stage, chunk, lane, place, state, fence, failures, losses, unmet, spec, worker, parked, *rest = row
    due, progress, created, started, finished, failure, adopted, its_now = rest
    return Task(
        id, job, stage, chunk, lane, place, TaskState(state), fence, failures, losses, unmet, spec, worker,
        bool(parked), None if due is None else max(0.0, due - (now or its_now)), progress, iso(created),
        iso_or_none(started), iso_or_none(finished), Failure.from_json(json.loads(failure)) if failure else None,
        bool(adopted),
    )  # fmt: skip


def _worker(row: Row, held: tuple[str, ...], now: float | None) -> Worker:
    until, draining, note, started, its_now = row[11:]
    left = max(0.0, until - (now or its_now))
    return Worker(incarnation(row), left > 0, bool(draining), note, held, left, iso(started))
