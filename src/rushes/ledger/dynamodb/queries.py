"""Queries on DynamoDB: results, log lines and lists; no scans, every list by an index, rows as they are now."""

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from rushes.aws.table import changed_keys, key_of
from rushes.domain.job import Job, JobState
from rushes.domain.result import Result
from rushes.domain.task import Task, TaskState
from rushes.domain.worker import Worker
from rushes.ledger.clock import iso
from rushes.ledger.dynamodb import keys
from rushes.ledger.dynamodb.keys import (
    HELD,
    OWED,
    UNFINISHED,
    WORKERS,
    details_key,
    job_key,
    result_key,
    task_key,
    task_of,
)
from rushes.ledger.dynamodb.rows import JobRow, LanesRow, TaskRow, WorkerRow, unpack
from rushes.ledger.dynamodb.store import Store
from rushes.ledger.dynamodb.texts import join_texts
from rushes.ledger.dynamodb.transaction import Transaction
from rushes.ledger.port import Page
from rushes.ledger.rules import no_job


# Jobs
def job(store: Store, job: str) -> Job:
    """One job."""
    return job_of(store.begin(), job)


def job_of(tx: Transaction, id: str) -> Job:
    """A job as readers see it.

    Raises:
        NotFound: no such job.
    """
    tx.load([job_key(id), details_key(id)])
    details = tx.details(id)
    if details is None:
        raise no_job(id)
    return details.job(tx.job(id))


def jobs(
    store: Store,
    owner: str,
    state: JobState | None = None,
    oldest_first: bool = False,
    cursor: str = "",
    limit: int = 100,
    ids: Collection[str] = (),
    queue: str = "",
) -> Page[Job]:
    """An owner's jobs: those with these ids, or a page of all."""
    if ids:
        return Page(tuple(job for job in _jobs(store, ids) if job.owner == owner))
    if queue:
        return _queued(store, keys.queue_list(owner, queue), state, oldest_first, cursor, limit)
    index, sort = ("by_state", "since") if state else ("by_owner", "age")
    part = f"jobs#{owner}#{state.value}" if state else f"jobs#{owner}"
    bounds = {"low" if oldest_first else "high": cursor} if cursor else {}
    found = store.table.query(part, index=index, limit=limit + 1, newest=not oldest_first, **bounds)
    items = [item for item in found if item[sort] != cursor][:limit]
    rows = tuple(_jobs(store, map(keys.job_of, items)))
    return Page(rows, str(items[-1][sort]) if len(items) == limit else "")


def _queued(store: Store, part: str, state: JobState | None, oldest_first: bool, cursor: str, limit: int) -> Page[Job]:
    """Jobs of a queue by age: read until enough of them are in that state, or there are no more."""
    rows: list[Job] = []
    for age, job in _by_age(store, part, oldest_first, cursor, limit):
        if state in (None, job.state):
            rows.append(job)
        if len(rows) == limit:
            return Page(tuple(rows), age)
    return Page(tuple(rows))


def _by_age(store: Store, part: str, oldest_first: bool, cursor: str, limit: int) -> Iterator[tuple[str, Job]]:
    """Jobs of a list after a cursor, read so many at once."""
    more = True
    while more:
        bounds = {"low" if oldest_first else "high": cursor} if cursor else {}
        found = store.table.query(part, index="by_owner", limit=limit + 1, newest=not oldest_first, **bounds)
        ages = {keys.job_of(item): str(item["age"]) for item in found if item["age"] != cursor}
        yield from ((ages[job.id], job) for job in _jobs(store, ages))
        more, cursor = len(ages) > limit - 1, list(ages.values())[-1] if ages else ""


def _jobs(store: Store, ids: Iterable[str]) -> list[Job]:
    """Those of these jobs that are there."""
    tx, ids = store.begin(), list(dict.fromkeys(ids))
    tx.load([key for id in ids for key in (job_key(id), details_key(id))])
    return [job_of(tx, id) for id in ids if tx.find_job(id) and tx.details(id)]


# Tasks
def tasks(
    store: Store,
    job: str = "",
    state: TaskState | None = None,
    stage: str = "",
    ids: Collection[str] = (),
    cursor: str = "",
    limit: int = 500,
) -> Page[Task]:
    """Tasks in plan order, a page."""
    found: list[Task] = []
    begun = not cursor
    for task in _all_tasks(store, job, state, ids, cursor):
        if begun and state in (None, task.state) and stage in ("", task.stage) and job in ("", task.job):
            found.append(task)
            if len(found) == limit:
                break
        begun = begun or task.id == cursor
    specs = join_texts(store.table, ((task.job, task.spec) for task in found))
    rows = tuple(replace(task, spec=specs[task.spec]) for task in found)
    return Page(rows, found[-1].id if len(found) == limit else "")


def _all_tasks(store: Store, job: str, state: TaskState | None, ids: Collection[str], cursor: str) -> Iterator[Task]:
    tx = store.begin()
    if ids:
        yield from _tasks(tx, tx.tasks(set(ids)))
    elif job:
        yield from _tasks(tx, tx.tasks_of(job))
    else:
        begin = cursor.partition(".")[0]
        rows = _jobs_with(tx, state, begin)
        at = next((n for n, row in enumerate(rows) if row.id == begin), 0)
        for row in rows[at:]:
            if _may_have(row, state) or row.id == begin:
                yield from _tasks(tx, tx.tasks_of(row.id))


def _tasks(tx: Transaction, rows: Sequence[TaskRow]) -> Iterator[Task]:
    return (row.task(tx.job(row.job), tx.wall) for row in _sorted(tx, rows))


def _sorted(tx: Transaction, rows: Sequence[TaskRow]) -> list[TaskRow]:
    """Jobs by age, then plan order."""
    return sorted(rows, key=lambda row: (tx.job(row.job).number, row.plan_order))


def _jobs_with(tx: Transaction, state: TaskState | None, begin: str) -> list[JobRow]:
    """Where a list begins and every job that may have such tasks, by age: of those that are complete, all are done."""
    all_jobs, others = [("jobs", "by_change")], [(UNFINISHED, "by_list"), (OWED, "by_list")]
    lists = all_jobs if state in (None, TaskState.DONE, TaskState.CANCELLED) else others
    ids = {keys.job_of(item) for part, index in lists for item in tx.table.query(part, index=index)}
    ids |= {begin} if begin else set()
    tx.load(map(job_key, ids))
    return sorted((row for id in ids if (row := tx.find_job(id))), key=lambda row: row.number)


def _may_have(job: JobRow, state: TaskState | None) -> bool:
    """Whether a job's counters leave room for a task in that state."""
    if state is TaskState.DONE:
        return job.done > 0
    if state is TaskState.DEAD:
        return job.dead > 0
    if state in (TaskState.READY, TaskState.LEASED):
        return job.live > 0
    return state is not TaskState.CANCELLED or job.cancelled or bool(job.cancelled_stages)


def in_plan_order(store: Store, tasks: Sequence[str]) -> list[str]:
    """Those of these tasks that are there: jobs by age, then plan order."""
    if len(tasks) < 2:
        return list(tasks)
    tx = store.begin(store.recall(map(task_key, tasks)))
    return [row.id for row in _sorted(tx, tx.tasks(tasks))]


# Changes
def changed(store: Store, cursor: str = "") -> tuple[tuple[str, ...], str]:
    """Jobs that changed since."""
    found, after = changed_keys(store.table, "jobs", cursor)
    return tuple(pk.removeprefix("job#") for pk, _ in found), after


# Workers
def worker_rows(store: Store) -> list[WorkerRow]:
    """Every worker that may still hold something, in order of entering."""
    return workers_and_lanes(store)[0]


def workers_and_lanes(store: Store) -> tuple[list[WorkerRow], list[str]]:
    """The same, and every lane that ever had a task, by one request."""
    items = store.table.fetch([LanesRow.key, *map(key_of, store.table.query(WORKERS, index="by_list"))])
    lanes = items.pop(LanesRow.key, None)
    store.remember({LanesRow.key: lanes} if lanes else {})
    rows = sorted((unpack(WorkerRow, item) for item in items.values()), key=lambda row: row.number)
    return rows, sorted(unpack(LanesRow, lanes).lanes) if lanes else []


def held_by_worker(store: Store, worker: str = "") -> dict[str, list[str]]:
    """The tasks that a worker holds, or all that are held, by worker."""
    query = partial(store.table.query, HELD, index="by_list")
    found: dict[str, list[str]] = {}
    for item in query(low=f"{worker}#", high=f"{worker}#~") if worker else query():
        found.setdefault(str(item["rank"]).rsplit("#", 2)[0], []).append(task_of(item))
    return found


def workers(store: Store) -> tuple[Worker, ...]:
    """Every worker that has a row."""
    rows, held = worker_rows(store), held_by_worker(store)
    tx = store.begin()
    tx.load_tasks(task for tasks in held.values() for task in tasks)
    return tuple(_worker(store, tx, row, held.get(row.id, ())) for row in rows if not row.over)


def _worker(store: Store, tx: Transaction, row: WorkerRow, held: Collection[str]) -> Worker:
    left = store.heartbeats.lease_left(row)
    return Worker(
        incarnation=row.incarnation, alive=left > 0, draining=row.draining, note=row.note,
        held=tuple(task.id for task in _sorted(tx, tx.tasks(held))), lease_left=left, started_at=iso(row.started),
    )  # fmt: skip


_FIELDS = ("output", "manifest_sha256", "size", "count", "schema_version", "publishes", "text_sha256")


def known(store: Store, owner: str, keys: Collection[str]) -> dict[str, Result]:
    """Which of these results exist."""
    wanted = {result_key(owner, key): key for key in keys}
    found = {wanted[key]: json.loads(str(item["body"])) for key, item in store.table.fetch(wanted).items()}
    return {key: Result(key=key, **dict(zip(_FIELDS, row, strict=False))) for key, row in found.items()}


def set_aside(store: Store, owner: str, keys: Collection[str], reason: str, note_only: bool = False) -> int:  # noqa: ARG001 - nobody reads the reason
    """Take results out; how many there were."""
    found = known(store, owner, set(keys))
    if not note_only:
        store.save("set_aside", gone=[result_key(owner, key) for key in found])
    return len(found)
