"""A job row while a transaction changes it: counters, and events that are numbered as they are told."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rushes.domain.event import EventType
from rushes.domain.job import FINAL, Counts, JobState, NewJob
from rushes.domain.keys import JSON
from rushes.ledger.settle import settled

PLACES = 20  # bits of a task's key that say its place in the plan
FIRST = (1 << PLACES) - 1  # key & FIRST == 0: the task that opens the plan
encode = json.JSONEncoder(separators=(",", ":")).encode  # ASCII: names may hold bytes that are no text


@dataclass(slots=True)
class OpenJob:
    """The fields in the order in which rows are read; `told` are the rows of its new events."""

    number: int
    id: str
    owner: str
    state: JobState
    priority: int
    paused: int
    cancelled: bool
    opened: bool
    needed: bool
    total: int
    done: int
    dead: int
    live: int
    losses: int
    failures: int
    last_event: int
    started: int | None
    finished: int | None
    told: list[dict[str, Any]] = field(default_factory=list)

    @property
    def stopped(self) -> bool:
        """Whether its ready tasks are parked."""
        return bool(self.paused or self.cancelled)

    @property
    def span(self) -> tuple[int, int]:
        """The first and the last key that a task of it can have."""
        return self.number << PLACES, (self.number << PLACES) + FIRST

    def tell(self, type: EventType, at: int, data: dict[str, JSON], task: str | None = None) -> None:
        """One event."""
        self._add(type, at, 1, task, data)

    def tell_each(
        self,
        type: EventType,
        at: int,
        worker: str | None,
        tasks: Sequence[str],
        fences: Sequence[int],
        seconds: Sequence[float],
    ) -> None:
        """An event for each of some tasks (named without their job), kept as one row."""
        if tasks:
            body = {"worker": worker, "fences": fences, "seconds": seconds, "tasks": tasks}
            self._add(type, at, len(tasks), None, body)

    def settle(self, at: int) -> None:
        """State, and what a change of state owes, from the counters."""
        counts = Counts(self.total, self.done, self.dead, self.live, self.losses, self.failures)
        before = self.state
        self.state, told = settled(before, counts, opened=self.opened, chunking=False, cancelled=self.cancelled)
        if told:
            self.tell(told[0], at, told[1])
        if self.state is not before and self.state in FINAL:
            self.finished, self.paused = at, 0
        elif self.state not in FINAL:
            self.finished = None

    def _add(self, type: EventType, at: int, n: int, task: str | None, body: JSON) -> None:
        row = {"job": self.number, "seq": self.last_event + 1, "n": n, "type": type.value, "at": at, "task": task}
        self.told.append({**row, "body": encode(body)})
        self.last_event += n


def fresh(number: int, new: NewJob) -> OpenJob:
    """A job that nobody has touched."""
    return OpenJob(
        number, new.id, new.owner, JobState.CREATED, new.priority, paused=0, cancelled=False, opened=False,
        needed=False, total=0, done=0, dead=0, live=0, losses=0, failures=0, last_event=0, started=None, finished=None,
    )  # fmt: skip
