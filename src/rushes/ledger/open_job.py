"""A job row while a transaction changes it: counters, and events that are numbered as they are told."""

import json
from dataclasses import dataclass, field

from rushes.domain.errors import Refused
from rushes.domain.event import EventType
from rushes.domain.job import FINAL, Counts, JobCommand, JobState, NewJob
from rushes.domain.keys import JSON
from rushes.ledger.settle import settled

PLACES = 20  # bits of a task's key that say its place in the plan
FIRST = (1 << PLACES) - 1  # key & FIRST == 0: the task that opens the plan
EventRow = tuple[int, int, int, str, int, str | None, str]  # job, seq, n, type, at, task, body
encode = json.JSONEncoder(separators=(",", ":")).encode  # ASCII: names may hold bytes that are no text


@dataclass(slots=True)
class OpenJob:
    """The fields in the order in which rows are read; `events` are the rows of its new ones."""

    number: int
    id: str
    owner: str
    state: JobState
    priority: int
    paused: int
    cancelled: bool
    opened: bool
    total: int
    done: int
    dead: int
    live: int
    losses: int
    failures: int
    last_event: int
    started: int | None
    finished: int | None
    chunking: bool = False  # its first task is leased; PostgreSQL looks at that task instead
    needed: bool = False  # a task of another job needs one of its tasks; only PostgreSQL must know
    events: list[EventRow] = field(default_factory=list)

    @property
    def stopped(self) -> bool:
        """Whether its ready tasks are parked."""
        return bool(self.paused or self.cancelled)

    @property
    def span(self) -> tuple[int, int]:
        """The first and the last key that a task of it can have."""
        return self.number << PLACES, (self.number << PLACES) + FIRST

    def tell(self, type: EventType, at: int, data: JSON, task: str | None = None, n: int = 1) -> None:
        """One event; or `n` of one type and moment, kept as one row: see runs."""
        self.events.append((self.number, self.last_event + 1, n, type.value, at, task, encode(data)))
        self.last_event += n

    def is_over(self, command: JobCommand) -> bool:
        """Whether it is finished, so that a command changes nothing any more.

        Raises:
            Refused: it is, and the command makes no sense.
        """
        fits = command is JobCommand.PRIORITY or (command is JobCommand.CANCEL and self.cancelled)
        if self.state in FINAL and not fits:
            hint = "A finished job can only be retried: rushes jobs retry JOB"
            raise Refused(f"job {self.id} is {self.state.value}", hint)
        return self.state in FINAL

    def steer(self, command: JobCommand, value: int, at: int) -> bool:
        """Take a command, and tell it; False if it is so already. Its tasks are to follow."""
        pause = 1 + (command is JobCommand.PAUSE_NOW)
        if command is JobCommand.CANCEL:
            self.cancelled, self.paused, self.chunking = True, 0, False
            self.tell(EventType.CANCELLED, at, {})
        elif command is JobCommand.PRIORITY and self.priority != value:
            self.priority = value
            self.tell(EventType.PRIORITY, at, {"priority": value})
        elif command is JobCommand.RESUME and self.paused:
            self.paused = 0
            self.tell(EventType.RESUMED, at, {})
        elif command in (JobCommand.PAUSE, JobCommand.PAUSE_NOW) and self.paused < pause:
            self.paused = pause
            self.tell(EventType.PAUSED, at, {"now": pause > 1})
        else:
            return False
        return True

    def settle(self, at: int) -> None:
        """State, and what a change of state owes, from the counters."""
        counts = Counts(self.total, self.done, self.dead, self.live, self.losses, self.failures)
        flags = {"opened": bool(self.opened), "chunking": bool(self.chunking), "cancelled": bool(self.cancelled)}
        before, (self.state, told) = self.state, settled(self.state, counts, **flags)
        if told:
            self.tell(told[0], at, told[1])
        if self.state is not before and self.state in FINAL:
            self.finished, self.paused = at, 0
        elif self.state not in FINAL:
            self.finished = None


def fresh(number: int, new: NewJob) -> OpenJob:
    """A job that nobody has touched."""
    return OpenJob(
        number, new.id, new.owner, JobState.CREATED, new.priority, paused=0, cancelled=False, opened=False, total=0,
        done=0, dead=0, live=0, losses=0, failures=0, last_event=0, started=None, finished=None,
    )  # fmt: skip
