"""Events: numbered facts of a job's history, replayable from any number."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from rushes.domain.keys import JSON


class EventType(StrEnum):
    """Everything that can stand in a job's history; none for a start, which stands on the row."""

    SUBMITTED = "submitted"
    PLANNED = "planned"
    DONE = "done"
    ADOPTED = "adopted"
    FAILED = "failed"
    LOST = "lost"
    GIVEN_BACK = "given_back"
    DEAD = "dead"
    REVIVED = "revived"
    PAUSED = "paused"
    RESUMED = "resumed"
    CANCELLED = "cancelled"
    PRIORITY = "priority"
    TAKEN_OVER = "taken_over"  # another machine goes on: the one before did not release the film
    FINISHED = "finished"  # the job reached a final state
    TRUNCATED = "truncated"  # never written: stands for all before `before`, which are no longer kept
    LOG = "log"  # not numbered with the others: a log line, numbered by its worker per (task, fence)


@dataclass(frozen=True, slots=True)
class Event:
    """A numbered fact of a job's history."""

    job: str
    number: int
    type: EventType
    at: str
    task: str | None = None
    data: Mapping[str, JSON] = field(default_factory=dict)
