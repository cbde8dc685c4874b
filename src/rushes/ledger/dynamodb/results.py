"""Results and log lines on DynamoDB: an item per result, and one per run of lines, each as it came first."""

import json
from collections.abc import Collection, Sequence

from rushes.aws.table import Item
from rushes.domain.event import Event, EventType
from rushes.domain.result import Result
from rushes.ledger.clock import iso
from rushes.ledger.dynamodb.keys import job_key, result_key, task_key
from rushes.ledger.dynamodb.store import Store
from rushes.ledger.rules import LOG_LINES

_DAY = 86_400
_LOG_DAYS = 30
_FIELDS = ("output", "manifest_sha256", "size", "count", "schema_version", "publishes")
Line = tuple[int, tuple[int, str]]  # its number, when, what


def known(store: Store, owner: str, keys: Collection[str]) -> dict[str, Result]:
    """Which of these results exist."""
    wanted = {result_key(owner, key): key for key in keys}
    found = {wanted[key]: json.loads(str(item["body"])) for key, item in store.table.fetch(wanted).items()}
    return {key: Result(key=key, **dict(zip(_FIELDS, row, strict=True))) for key, row in found.items()}


def set_aside(store: Store, owner: str, keys: Collection[str], reason: str) -> int:  # noqa: ARG001 - nobody reads it
    """Take results out; how many there were."""
    found = known(store, owner, set(keys))
    store.save("set_aside", gone=[result_key(owner, key) for key in found])
    return len(found)


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
