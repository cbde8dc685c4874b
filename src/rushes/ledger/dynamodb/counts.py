"""What tasks add up to on DynamoDB: of named jobs by reading them, of what is ready by the lists that claims read."""

from collections.abc import Collection
from itertools import islice

from rushes.aws.table import Item
from rushes.domain.grouping import grouped
from rushes.domain.keys import parse_task_id
from rushes.ledger.counts import MOST_READY, count_tasks
from rushes.ledger.dynamodb.keys import ready_list, task_of
from rushes.ledger.dynamodb.queries import workers_and_lanes
from rushes.ledger.dynamodb.store import Store
from rushes.ledger.port import StageCount


def counts(store: Store, jobs: Collection[str] = ()) -> tuple[StageCount, ...]:
    """By lane and stage."""
    return _of_jobs(store, jobs) if jobs else _ready(store)


def _of_jobs(store: Store, jobs: Collection[str]) -> tuple[StageCount, ...]:
    tx = store.begin()
    rows = [row for job in dict.fromkeys(jobs) for row in tx.tasks_of(job)]
    return count_tasks((row.task(tx.job(row.job), tx.wall) for row in rows), tx.wall)


def _ready(store: Store) -> tuple[StageCount, ...]:
    """The lists have ids only: of each stage the oldest is read, for its age."""
    found: dict[tuple[str, str], list[Item]] = {}
    for lane in workers_and_lanes(store)[1]:
        items = islice(store.table.query(ready_list(lane), index="by_list"), MOST_READY)
        found |= {(lane, stage): some for stage, some in grouped(items, _stage).items()}
    oldest = {key: task_of(min(items, key=_age)) for key, items in sorted(found.items())}
    tx = store.begin()
    tx.load_tasks(oldest.values())
    ages = {row.id: max(0, tx.wall - row.created) / 1000 for row in tx.tasks(oldest.values())}
    return tuple(StageCount(*key, len(found[key]), ages.get(task, 0.0)) for key, task in oldest.items())


def _stage(item: Item) -> str:
    return parse_task_id(task_of(item))[1]


def _age(item: Item) -> str:
    """Of the job, by its number: priority does not count."""
    return str(item["rank"]).partition("#")[2]
