"""Counts of tasks by lane and stage, for ledgers whose store cannot aggregate."""

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from datetime import datetime

from rushes.domain.grouping import grouped
from rushes.domain.task import Task, TaskState
from rushes.ledger.clock import iso
from rushes.ledger.port import StageCount

MOST_READY = 100_000  # tasks that are looked at, where nobody knows how many there are
_SUMS = tuple(f.name for f in fields(StageCount) if f.name not in ("lane", "stage", "oldest_seconds"))


def count_tasks(tasks: Iterable[Task], wall: int) -> tuple[StageCount, ...]:
    """Their sums at that moment (milliseconds since 1970)."""
    by_stage = grouped(tasks, lambda task: (task.lane, task.stage))
    return tuple(_count(lane, stage, some, iso(wall)) for (lane, stage), some in sorted(by_stage.items()))


def only_ready(counts: Iterable[StageCount]) -> tuple[StageCount, ...]:
    """The same without what they say of attempts."""
    return tuple(StageCount(c.lane, c.stage, c.ready, c.oldest_seconds) for c in counts)


def add_up(counts: Iterable[StageCount]) -> tuple[StageCount, ...]:
    """Counts of several ledgers as one."""
    by_stage = grouped(counts, lambda count: (count.lane, count.stage))
    return tuple(_sum(some) for _, some in sorted(by_stage.items()))


def _sum(counts: Sequence[StageCount]) -> StageCount:
    sums = {name: sum(getattr(count, name) for count in counts) for name in _SUMS}
    return replace(counts[0], **sums, oldest_seconds=max(count.oldest_seconds for count in counts))


def _count(lane: str, stage: str, tasks: Sequence[Task], now: str) -> StageCount:
    ready = [t for t in tasks if t.state is TaskState.READY and not t.parked and t.due_in is None]
    done = [t for t in tasks if t.state is TaskState.DONE and not t.adopted]
    return StageCount(
        lane,
        stage,
        len(ready),
        max((_between(t.created_at, now) for t in ready), default=0.0),
        len(done),
        sum(t.state is TaskState.DEAD for t in tasks),
        sum(t.failures for t in tasks),
        sum(max(0, t.failures - (t.state is TaskState.DEAD)) for t in tasks),
        sum(t.losses for t in tasks),
        sum(_between(t.started_at, t.finished_at) for t in done if t.started_at and t.finished_at),
    )


def _between(start: str, end: str) -> float:
    return max(0.0, (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds())
