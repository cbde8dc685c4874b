"""The job rows that a transaction changes: read once, written once, their events numbered in between."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import compress, count, pairwise, repeat
from operator import ne, sub

from rushes.domain.event import EventType
from rushes.domain.job import FINAL, Counts, JobState
from rushes.domain.keys import JSON
from rushes.ledger.settle import settled
from rushes.ledger.sqlite_store import Row, Turn, encode

PLACES = 20  # bits of a task's key that say its place in the plan
FIRST = (1 << PLACES) - 1  # key & FIRST == 0: the task that opens the plan

Told = tuple[int, int, int]  # first and last key of neighbouring tasks, and their fence


@dataclass(slots=True)
class OpenJob:
    """A job row while a transaction changes it; the fields in the order of `job_rows`."""

    number: int
    id: str
    owner: str
    state: JobState
    priority: int
    paused: int
    cancelled: int
    opened: int
    chunking: int
    total: int
    done: int
    dead: int
    live: int
    losses: int
    failures: int
    last_event: int
    started: int | None
    finished: int | None
    events: list[Row] = field(default_factory=list)

    @property
    def stopped(self) -> bool:
        """Whether its ready tasks are parked."""
        return bool(self.paused or self.cancelled)

    def tell(self, type: EventType, at: int, data: dict[str, JSON], task: str | None = None) -> None:
        """One event."""
        self._add(type, at, 1, task, data)

    def tell_each(
        self, type: EventType, at: int, worker: str | None, tasks: Sequence[Told], seconds: Sequence[float]
    ) -> None:
        """An event for each of some tasks, kept as one row."""
        if tasks:
            ranges = [(first & FIRST, last - first + 1, fence) for first, last, fence in tasks]
            self._add(type, at, len(seconds), None, {"worker": worker, "runs": ranges, "seconds": seconds})

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

    def _add(self, type: EventType, at: int, n: int, task: str | None, body: JSON) -> None:
        text = encode(body)
        self.events.append((self.number, self.last_event + 1, n, type.value, at, task, text))
        self.last_event += n


def splits(keys: Sequence[int]) -> list[int]:
    """Where keys, in the order given, begin, cease to be neighbours, and end; those of two jobs never are."""
    cuts = compress(count(1), map(ne, map(sub, keys[1:], keys), repeat(1)))
    return [0, *cuts, len(keys)] if keys else []


def runs(keys: Sequence[int]) -> list[tuple[int, int]]:
    """Keys as ranges, first and last: one write for each, and a plan's tasks are mostly neighbours."""
    return [(keys[begin], keys[end - 1]) for begin, end in pairwise(splits(keys))]


class JobRows:
    """Job rows by number; `save` writes them all."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._rows: dict[int, OpenJob] = {}

    def load(self, numbers: Collection[int]) -> None:
        """Read the rows that are not here yet."""
        missing = sorted(set(numbers) - self._rows.keys())
        if missing:
            self._keep(self._turn.run("job_rows", encode(missing)))

    def find(self, id: str) -> OpenJob | None:
        """The row of a job by its id."""
        return next(iter(self._keep(self._turn.run("job_row", id))), None)

    def of(self, key: int) -> OpenJob:
        """The row of the job of a task."""
        number = key >> PLACES
        if number not in self._rows:
            self.load((number,))
        return self._rows[number]

    def save(self) -> None:
        """Settle and write every row, with its events."""
        events: list[Row] = []
        for job in self._rows.values():
            job.settle(self._turn.wall)
            events += job.events
        told = [_values(job) for job in self._rows.values() if job.events]
        quiet = [_values(job) for job in self._rows.values() if not job.events]
        self._turn.many("job_told", told)
        self._turn.many("job_quiet", quiet)
        self._turn.many("event_add", events)

    def _keep(self, rows: Iterator[Row]) -> list[OpenJob]:
        found = [OpenJob(number, id, owner, JobState(state), *rest) for number, id, owner, state, *rest in rows]
        for job in found:
            self._rows.setdefault(job.number, job)
        return [self._rows[job.number] for job in found]


def _values(job: OpenJob) -> Row:
    return (
        job.state.value, job.priority, job.paused, job.cancelled, job.opened, job.chunking, job.total, job.done,
        job.dead, job.live, job.losses, job.failures, job.last_event, job.started, job.finished, job.number,
    )  # fmt: skip
