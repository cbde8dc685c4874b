"""Looking at a ledger on SQLite: rows become values."""

import json
from collections.abc import Collection
from typing import Any

from rushes.domain.event import Event, EventType
from rushes.domain.job import FINAL, Counts, Job, JobState
from rushes.domain.task import Failure, Task, TaskState
from rushes.domain.worker import Incarnation, Worker
from rushes.ledger.clock import iso, iso_or_none
from rushes.ledger.open_job import FIRST, PLACES
from rushes.ledger.port import Page
from rushes.ledger.runs import one_by_one
from rushes.ledger.sqlite_store import Row, Transaction

_END = 2**63 - 1
CHANGES = 10_000  # jobs in one answer of `changed`


def job(turn: Transaction, id: str) -> Job | None:
    """One job."""
    row = turn.one("job", id)
    return None if row is None else _job(row)


def jobs(turn: Transaction, owner: str, state: JobState | None, oldest: bool, cursor: str, limit: int) -> Page[Job]:
    """An owner's jobs; the cursor is the number (and, for finished ones, the moment) of the last."""
    if state in FINAL:
        at, _, number = cursor.partition(".") if cursor else ("0", "", "0") if oldest else (_END, "", _END)
        name = "jobs_first_finished" if oldest else "jobs_last_finished"
        rows = turn.all(name, owner, state, int(at), int(number), limit)
        return _page(rows, limit, lambda row: f"{row[20]}.{row[21]}")
    last = int(cursor) if cursor else 0 if oldest else _END
    name = "jobs_oldest" if oldest else "jobs_newest"
    rows = turn.all(f"{name}_in", owner, state, last, limit) if state else turn.all(name, owner, last, limit)
    return _page(rows, limit, lambda row: str(row[21]))


def named_jobs(turn: Transaction, owner: str, ids: Collection[str]) -> Page[Job]:
    """An owner's jobs by their ids."""
    return Page(tuple(map(_job, turn.all("jobs_named", json.dumps(list(ids)), owner))))


def tasks(
    turn: Transaction, job: str, state: TaskState | None, stage: str, ids: Collection[str], cursor: str, limit: int
) -> Page[Task]:
    """Tasks by key; the cursor is the key of the last."""
    last, only, these = int(cursor) if cursor else -1, state or "", json.dumps(list(ids))
    if job:
        rows = _of_job(turn, job, last, only, stage, these, limit)
    elif ids:
        rows = turn.all("tasks_named", these, last, only, stage, limit)
    elif state in (None, TaskState.DONE):
        rows = turn.all("tasks_between", last, _END, only, stage, "[]", limit)
    else:
        rows = turn.all("tasks_undone", last, only, stage, limit)
    more = str(rows[-1][0]) if len(rows) == limit else ""
    return Page(tuple(_task(row, turn.now) for row in rows), more)


def events(
    turn: Transaction, job: str, after: int, types: Collection[EventType], task: str, limit: int
) -> tuple[Event, ...]:
    """Events after a number, packed rows told one by one; or the log lines of a task."""
    if task and set(types) == {EventType.LOG}:
        return _log(turn, job, task, after, limit)
    number = turn.column("job_number", job)
    found: list[Event] = []

    def name(place: int, many: int) -> list[str]:
        first = (number[0] << PLACES) + place
        return turn.column("ids", first, first + many - 1)

    while number and len(found) < limit:
        rows = turn.all("events", number[0], after, limit + 1)
        told = [e for *row, body in rows for e in one_by_one(job, (*row, json.loads(body)), name) if e.number > after]
        if not told:
            break
        after = told[-1].number
        found += (e for e in told if (not types or e.type in types) and (not task or e.task == task))
    return tuple(found[:limit])


def changed(turn: Transaction, cursor: str) -> tuple[tuple[str, ...], str]:
    """Jobs whose event number moved."""
    rows = turn.all("changed", int(cursor or 0), CHANGES)
    return tuple(row[0] for row in rows), str(rows[-1][1]) if rows else cursor


def workers(turn: Transaction) -> tuple[Worker, ...]:
    """Every worker that has a row."""
    held: dict[int, list[str]] = {}
    for number, task, _ in turn.run("held"):
        held.setdefault(number, []).append(task)
    return tuple(_worker(row, tuple(held.get(row[0], ())), turn.awake) for row in turn.all("workers_in"))


def incarnation(row: Row) -> Incarnation:
    """Who a row of `workers_in` is about."""
    _, id, host, boot, pid, start, lanes, slots, machine, version, *_ = row
    return Incarnation(id, host, boot, pid, start, tuple(json.loads(lanes)), slots, machine, version)


def _of_job(turn: Transaction, job: str, last: int, only: str, stage: str, these: str, limit: int) -> list[Row]:
    for number in turn.column("job_number", job):
        begin = number << PLACES
        return turn.all("tasks_between", max(last, begin - 1), begin + FIRST, only, stage, these, limit)
    return []


def _page(rows: list[Row], limit: int, cursor: Any) -> Page[Job]:
    return Page(tuple(_job(row) for row in rows), cursor(rows[-1]) if len(rows) == limit else "")


def _job(row: Row) -> Job:
    id, owner, team, request, name, recipe, payload, facts, state, paused, priority, *rest = row
    *counts, last_event, created, started, finished, _ = rest
    return Job(
        id, owner, team, request, name, recipe, payload, facts, JobState(state), bool(paused), priority,
        Counts(*counts), last_event, iso(created), iso_or_none(started), iso_or_none(finished),
    )  # fmt: skip


def _task(row: Row, now: float) -> Task:
    _, id, job, stage, chunk, lane, place, state, fence, failures, losses, unmet, spec, worker, parked, *rest = row
    due, progress, created, started, finished, failure, adopted = rest
    return Task(
        id, job, stage, chunk, lane, place, TaskState(state), fence, failures, losses, unmet, spec, worker,
        bool(parked), None if due is None else max(0.0, due - now), progress, iso(created), iso_or_none(started),
        iso_or_none(finished), Failure.from_json(json.loads(failure)) if failure else None, bool(adopted),
    )  # fmt: skip


def _worker(row: Row, held: tuple[str, ...], now: float) -> Worker:
    until, draining, note, started = row[10:]
    left = max(0.0, until - now)
    return Worker(incarnation(row), left > 0, bool(draining), note, held, left, iso(started))


def _log(turn: Transaction, job: str, task: str, after: int, limit: int) -> tuple[Event, ...]:
    rows = turn.all("log_lines", task, after, limit)
    return tuple(
        Event(job, line, EventType.LOG, iso(at), task, {"fence": fence, "line": text}) for line, at, fence, text in rows
    )
