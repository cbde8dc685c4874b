"""A job's history on DynamoDB: numbered events, log lines of its tasks, and the deletion of old ones."""

import json
from collections.abc import Collection, Sequence

from rushes.aws.table import Item, key_of
from rushes.domain.event import Event, EventType
from rushes.domain.job import Job
from rushes.ledger.clock import iso
from rushes.ledger.dynamodb.keys import job_key, task_key
from rushes.ledger.dynamodb.queries import job_of
from rushes.ledger.dynamodb.rows import encode
from rushes.ledger.dynamodb.store import Store
from rushes.ledger.rules import LOG_LINES, with_truncation

_DAY = 86_400
_LOG_DAYS = 30
Line = tuple[int, tuple[int, str]]  # its number, when, what


# Events
def events(
    store: Store, job: str, after: int = 0, types: Collection[EventType] = (), task: str = "", limit: int = 500
) -> tuple[Event, ...]:
    """Numbered events, a page; or log lines of a task."""
    if task and set(types) == {EventType.LOG}:
        return log_lines(store, job, task, after, limit)
    found: list[Event] = []
    for item in store.table.query(f"job#{job}", f"event#{after + 1:010d}", "event#~"):
        rows = json.loads(str(item["body"]))
        last = int(str(item["sk"]).removeprefix("event#"))
        for number, (type, at, of, data) in enumerate(rows, last - len(rows) + 1):
            fits = (not types or type in types) and task in ("", of) and number > after
            found += [Event(job, number, EventType(type), at, of, data)] if fits else []
        if len(found) >= limit:
            break
    return tuple(found[:limit]) if types or task else with_truncation(found[:limit], after, limit)


def trim(store: Store, id: str, seconds: int) -> Job:
    """Drop events and log lines that are at least so old; the last event of the job stays.

    Raises:
        NotFound: no such job.
    """
    tx = store.begin()
    job, before = tx.job(id), tx.wall - 1000 * seconds
    items = list(store.table.query(f"job#{id}", "event#", "event#~"))
    old = [item for item in items if json.loads(str(item["body"]))[-1][1] <= iso(before)]
    kept = [_last_event(item) for item in old if item["sk"] == f"event#{job.last_event:010d}"]
    gone = [key_of(item) for item in old if key_of(item) not in set(map(key_of, kept))]
    store.save("control", kept, gone)
    for row in tx.tasks_of(id):
        _trim_log(store, row.id, before)
    return job_of(tx, id)


def _last_event(item: Item) -> Item:
    """An item of events without all but its last one."""
    return {**item, "body": encode(json.loads(str(item["body"]))[-1:])}


def _trim_log(store: Store, task: str, before: int) -> None:
    items = [(item, json.loads(str(item["body"]))) for item in store.table.query(f"log#{task}")]
    old = [(item, [line for line in lines if line[1][0] > before]) for item, lines in items]
    gone = [key_of(item) for item, young in old if not young]
    if gone:  # lines of one item came together
        store.save("control", gone=gone)


# Log lines
def log(store: Store, task: str, fence: int, first: int, lines: Sequence[str]) -> None:
    """Keep lines that are not there yet."""
    if not lines or store.begin(store.recall([task_key(task), job_key(task.partition(".")[0])])).task(task) is None:
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
        bounds = _log_rank(fence, 0), _log_rank(fence, last)
        item = next(store.table.query(f"log#{task}", *bounds, newest=True, limit=1), None)
        if item is None:
            break
        numbers = [n for n, _ in json.loads(str(item["body"]))]
        known.update(numbers)
        last = numbers[0] - 1
    return known


def _log_item(store: Store, task: str, fence: int, run: Sequence[Line]) -> Item:
    expires = store.wall() // 1000 + _LOG_DAYS * _DAY
    return {"pk": f"log#{task}", "sk": _log_rank(fence, run[0][0]), "body": json.dumps(run), "expires": expires}


def log_lines(store: Store, job: str, task: str, after: int, limit: int) -> tuple[Event, ...]:
    """The lines of the latest attempt."""
    last = next(store.table.query(f"log#{task}", newest=True, limit=1), None)
    if last is None:
        return ()
    fence = int(str(last["sk"]).partition("#")[0])
    found = store.table.query(f"log#{task}", _log_rank(fence, 0), _log_rank(fence, 10**12 - 1))
    lines = dict(line for item in found for line in json.loads(str(item["body"])))
    kept = [n for n in sorted(lines) if n > max(after, max(lines) - LOG_LINES)]
    return tuple(
        Event(job, n, EventType.LOG, iso(lines[n][0]), task, {"fence": fence, "line": lines[n][1]})
        for n in kept[:limit]
    )


def _log_rank(fence: int, number: int) -> str:
    return f"{fence:08d}#{number:012d}"
