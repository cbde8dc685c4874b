"""What readers ask a ledger on DynamoDB: no scan, every list by an index, rows as they are now."""

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial

from rushes.aws.changes import moved
from rushes.aws.table import Item
from rushes.domain.errors import NotFound
from rushes.domain.event import Event, EventType
from rushes.domain.job import Job, JobState
from rushes.domain.result import Result
from rushes.domain.task import Task, TaskState
from rushes.domain.worker import Worker
from rushes.ledger.clock import iso
from rushes.ledger.dynamodb_rows import (
    HELD,
    LEFT,
    OWED,
    WORKERS,
    JobRow,
    TaskRow,
    WorkerRow,
    about_key,
    job_key,
    task_key,
    unpack,
)
from rushes.ledger.dynamodb_store import Store
from rushes.ledger.dynamodb_texts import near
from rushes.ledger.dynamodb_turn import Turn
from rushes.ledger.port import Page

LOG_LINES = 1000
_DAY = 86_400
_LOG_DAYS = 30
Line = tuple[int, tuple[int, str]]  # its number, when, what


def one_job(turn: Turn, id: str) -> Job:
    """A job as readers see it. Raises NotFound."""
    turn.load([job_key(id), about_key(id)])
    job, about = turn.job(id), turn.about(id)
    if job is None or about is None:
        raise NotFound(f"no job {id}")
    return about.seen(job)


def jobs(store: Store, owner: str, state: JobState | None, oldest_first: bool, cursor: str, limit: int) -> Page[Job]:
    """An owner's jobs, a page."""
    index, sort = ("by_state", "since") if state else ("by_owner", "age")
    part = f"jobs#{owner}#{state.value}" if state else f"jobs#{owner}"
    bounds = {"low" if oldest_first else "high": cursor} if cursor else {}
    found = store.table.query(part, index=index, limit=limit + 1, newest=not oldest_first, **bounds)
    items = [item for item in found if item[sort] != cursor][:limit]
    ids = [str(item["pk"]).removeprefix("job#") for item in items]
    turn = _loaded(store, ids)
    return Page(tuple(one_job(turn, id) for id in ids), str(items[-1][sort]) if len(items) == limit else "")


def named_jobs(store: Store, owner: str, ids: Collection[str]) -> Page[Job]:
    """An owner's jobs by their ids."""
    turn = _loaded(store, ids)
    found = [one_job(turn, id) for id in dict.fromkeys(ids) if turn.job(id) and turn.about(id)]
    return Page(tuple(job for job in found if job.owner == owner))


def _loaded(store: Store, ids: Collection[str]) -> Turn:
    turn = store.turn()
    turn.load([key for id in ids for key in (job_key(id), about_key(id))])
    return turn


def tasks(
    store: Store, job: str, state: TaskState | None, stage: str, ids: Collection[str], cursor: str, limit: int
) -> Page[Task]:
    """Tasks in plan order, a page."""
    page = _page(store, job, state, stage, ids, cursor, limit)
    specs = near(store.table, ((task.job, task.spec) for task in page.rows))
    return replace(page, rows=tuple(replace(task, spec=specs[task.spec]) for task in page.rows))


def _page(
    store: Store, job: str, state: TaskState | None, stage: str, ids: Collection[str], cursor: str, limit: int
) -> Page[Task]:
    found: list[Task] = []
    begin = not cursor
    for task in _every_task(store, job, state, ids, cursor):
        if begin and state in (None, task.state) and stage in ("", task.stage) and job in ("", task.job):
            found.append(task)
            if len(found) == limit:
                return Page(tuple(found), task.id)
        begin = begin or task.id == cursor
    return Page(tuple(found))


def _every_task(store: Store, job: str, state: TaskState | None, ids: Collection[str], cursor: str) -> Iterator[Task]:
    turn = store.turn()
    if ids:
        turn.load([key for id in ids for key in (task_key(id), job_key(id.partition(".")[0]))])
        yield from _seen(turn, [row for id in set(ids) if (row := turn.task(id))])
    elif job:
        yield from _seen(turn, turn.tasks_of(job))
    else:
        begin = cursor.partition(".")[0]
        jobs = _jobs(store, turn, state, begin)
        at = next((n for n, one in enumerate(jobs) if one.id == begin), 0)
        for one in jobs[at:]:
            if _may_have(one, state) or one.id == begin:
                yield from _seen(turn, turn.tasks_of(one.id))


def _seen(turn: Turn, rows: Sequence[TaskRow]) -> Iterator[Task]:
    for row in sorted(rows, key=lambda row: (turn.its(row).number, row.at)):
        yield row.seen(turn.its(row), turn.wall)


def _jobs(store: Store, turn: Turn, state: TaskState | None, begin: str) -> list[JobRow]:
    """Where a list begins and every job that may have such tasks, by age: of those that are complete, all are done."""
    lists = [("jobs", "by_change")] if state in (None, TaskState.DONE) else [(LEFT, "by_place"), (OWED, "by_place")]
    found = [item for part, index in lists for item in store.table.query(part, index=index)]
    ids = {str(item["pk"]).removeprefix("job#") for item in found} | ({begin} if begin else set())
    turn.load(map(job_key, ids))
    return sorted((row for id in ids if (row := turn.job(id))), key=lambda row: row.number)


def _may_have(job: JobRow, state: TaskState | None) -> bool:
    """Whether a job's counters leave room for a task in that state."""
    if state is TaskState.DONE:
        return job.done > 0
    if state is TaskState.DEAD:
        return job.dead > 0
    if state in (TaskState.READY, TaskState.LEASED):
        return job.live > 0
    return state is not TaskState.CANCELLED or job.cancelled


def events(
    store: Store, job: str, after: int, types: Collection[EventType], task: str, limit: int
) -> tuple[Event, ...]:
    """Numbered events, a page."""
    found: list[Event] = []
    for item in store.table.query(f"job#{job}", f"event#{after + 1:010d}", "event#~"):
        told = json.loads(str(item["body"]))
        last = int(str(item["sk"]).removeprefix("event#"))
        for number, (type, at, of, data) in enumerate(told, last - len(told) + 1):
            fits = (not types or type in types) and task in ("", of) and number > after
            found += [Event(job, number, EventType(type), at, of, data)] if fits else []
        if len(found) >= limit:
            break
    return tuple(found[:limit])


# Log lines: an item per run of lines, each as it came first
def log(store: Store, task: str, fence: int, first: int, lines: Sequence[str]) -> None:
    """Keep lines that are not there yet."""
    if not lines or store.turn(store.recall([task_key(task), job_key(task.partition(".")[0])])).task(task) is None:
        return
    known = _kept(store, task, fence, first, first + len(lines) - 1)
    runs: list[list[Line]] = []
    for n, line in enumerate(lines, first):
        if n not in known:
            runs += [] if runs and runs[-1][-1][0] == n - 1 else [[]]
            runs[-1].append((n, (store.wall(), line)))
    store.save("log", [_log_item(store, task, fence, run) for run in runs])


def _kept(store: Store, task: str, fence: int, first: int, last: int) -> set[int]:
    """Which of these lines are there; items hold runs that never overlap, so no look goes beyond the first line's."""
    known: set[int] = set()
    while last >= first:
        bounds = _log_at(fence, 0), _log_at(fence, last)
        item = next(store.table.query(f"log#{task}", *bounds, newest=True, limit=1), None)
        if item is None:
            break
        numbers = [n for n, _ in json.loads(str(item["body"]))]
        known.update(numbers)
        last = numbers[0] - 1
    return known


def _log_item(store: Store, task: str, fence: int, run: Sequence[Line]) -> Item:
    expires = store.wall() // 1000 + _LOG_DAYS * _DAY
    return {"pk": f"log#{task}", "sk": _log_at(fence, run[0][0]), "body": json.dumps(run), "expires": expires}


def log_lines(store: Store, job: str, task: str, after: int, limit: int) -> tuple[Event, ...]:
    """The lines of the latest attempt."""
    last = next(store.table.query(f"log#{task}", newest=True, limit=1), None)
    if last is None:
        return ()
    fence = int(str(last["sk"]).partition("#")[0])
    lines = _lines(store, task, fence)
    kept = [n for n in sorted(lines) if n > max(after, max(lines) - LOG_LINES)]
    return tuple(
        Event(job, n, EventType.LOG, iso(lines[n][0]), task, {"fence": fence, "line": lines[n][1]})
        for n in kept[:limit]
    )


def _lines(store: Store, task: str, fence: int) -> dict[int, tuple[int, str]]:
    found = store.table.query(f"log#{task}", _log_at(fence, 0), _log_at(fence, 10**12 - 1))
    return {n: (at, line) for item in found for n, (at, line) in json.loads(str(item["body"]))}


def _log_at(fence: int, number: int) -> str:
    return f"{fence:08d}#{number:012d}"


# Results
def known(store: Store, owner: str, keys: Collection[str]) -> dict[str, Result]:
    """Which of these results exist."""
    found = store.table.fetch([(f"result#{owner}#{key}", "result") for key in keys])
    rows = {pk.removeprefix(f"result#{owner}#"): json.loads(str(item["body"])) for (pk, _), item in found.items()}
    return {key: _result(key, row) for key, row in rows.items()}


def _result(key: str, row: Sequence[object]) -> Result:
    names = ("output", "manifest_sha256", "size", "count", "schema_version", "publishes")
    return Result(key=key, **dict(zip(names, row, strict=True)))  # type: ignore[arg-type]


# Changes and workers
def changed(store: Store, cursor: str) -> tuple[tuple[str, ...], str]:
    """Jobs that moved since."""
    keys, after = moved(store.table, "jobs", cursor)
    return tuple(pk.removeprefix("job#") for pk, _ in keys), after


def worker_rows(store: Store) -> list[WorkerRow]:
    """Every worker that may still hold something, in order of entering."""
    found = store.table.query(WORKERS, index="by_place")
    items = store.table.fetch([(str(item["pk"]), str(item["sk"])) for item in found])
    return sorted((unpack(WorkerRow, item) for item in items.values()), key=lambda row: row.number)


def held(store: Store, worker: str = "") -> dict[str, list[str]]:
    """The tasks that a worker holds, or all that are held, by worker."""
    all_of = partial(store.table.query, HELD, index="by_place")
    found: dict[str, list[str]] = {}
    for item in all_of(low=f"{worker}#", high=f"{worker}#~") if worker else all_of():
        found.setdefault(str(item["rank"]).rsplit("#", 2)[0], []).append(str(item["sk"]).removeprefix("task#"))
    return found


def in_plan(turn: Turn, tasks: Collection[str]) -> list[str]:
    """Those of these tasks that are there: jobs by age, then plan order."""
    turn.load_tasks(tasks)
    rows = [row for task in tasks if (row := turn.task(task))]
    return [row.id for row in sorted(rows, key=lambda row: (turn.its(row).number, row.at))]


def workers(store: Store) -> tuple[Worker, ...]:
    """Every worker that has a row."""
    rows, hold = worker_rows(store), held(store)
    turn = store.turn()
    turn.load_tasks(task for tasks in hold.values() for task in tasks)
    return tuple(_worker(store, row, in_plan(turn, hold.get(row.id, ()))) for row in rows if not row.over)


def _worker(store: Store, row: WorkerRow, tasks: Collection[str]) -> Worker:
    left = store.sightings.see(row)
    return Worker(
        incarnation=row.incarnation, alive=left > 0, draining=row.draining, note=row.note, held=tuple(tasks),
        lease_left=left, started_at=iso(row.started),
    )  # fmt: skip
