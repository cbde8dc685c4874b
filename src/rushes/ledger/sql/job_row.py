"""Job rows in a transaction: locked in order, read once, written once, their events numbered in between."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from rushes.domain.event import EventType
from rushes.domain.job import Counts, JobState
from rushes.domain.keys import JSON
from rushes.ledger import rules
from rushes.ledger.rules import TaskStatus
from rushes.ledger.sql.transaction import Row, Transaction, encode

PLACE_BITS = 20  # a task's key is its job's number and, in these bits, its place in the plan
PLACE = (1 << PLACE_BITS) - 1  # key & PLACE == 0: the task that opens the plan
_SAVED = ("number", "state", "priority", "paused", "cancelled", "opened", "total", "done", "dead", "live", "losses",
          "failures", "last_event", "finished")  # fmt: skip


@dataclass(slots=True)
class JobRow:
    """One job row; the first fields are in the order of the table's first columns."""

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
    finished: int | None
    cancelled_stages: list[str] = field(default_factory=list)
    at: int = 0  # when it was held
    events: list[dict[str, object]] = field(default_factory=list)

    @property
    def counts(self) -> Counts:
        """Its tasks by state."""
        return Counts(self.total, self.done, self.dead, self.live, self.losses, self.failures)

    @property
    def chunking(self) -> bool:
        """Never: a claim writes no job row, so that readers look at the first task instead."""
        return False

    @property
    def stopped(self) -> bool:
        """Whether its ready tasks are parked."""
        return bool(self.paused or self.cancelled)

    @property
    def keys(self) -> dict[str, int]:
        """The first and the last key that a task of it can have."""
        return {"first": self.number << PLACE_BITS, "last": (self.number << PLACE_BITS) + PLACE}

    def record(self, type: EventType, data: JSON, task: str | None = None) -> None:
        """Number an event; it is written with the row."""
        self.last_event += 1
        row = {"job": self.number, "seq": self.last_event, "type": type.value, "at": self.at}
        self.events.append({**row, "task": task, "body": encode(data)})

    def values(self) -> dict[str, object]:
        """What `save_job` writes."""
        values = {name: getattr(self, name) for name in _SAVED}
        return values | {"cancelled_stages": " ".join(self.cancelled_stages), "changed": bool(self.events)}


class JobRows:
    """The job rows that a transaction holds, by number."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self._rows: dict[int, JobRow] = {}

    def load(self, numbers: Iterable[int]) -> None:
        """Hold the rows that are not here yet, in order."""
        missing = set(numbers) - self._rows.keys()
        if missing:
            self.keep(self._tx.all("job_rows", numbers=sorted(missing)))

    def load_of(self, tasks: Collection[str], *, wait: bool = True) -> None:
        """Hold the rows of these tasks' jobs, and of jobs that need them; without `wait` those that nobody holds."""
        self.keep(self._tx.all("jobs_of" if wait else "free_jobs_of", ids=list(tasks)))

    def find(self, id: str) -> JobRow:
        """Hold the row of a job by its id.

        Raises:
            NotFound: no such job.
        """
        for job in self.keep(self._tx.all("job_row", id=id)):
            return job
        raise rules.no_job(id)

    def of(self, key: int) -> JobRow:
        """The row of a task's job."""
        number = key >> PLACE_BITS
        if number not in self._rows:
            self.load((number,))
        return self._rows[number]

    def __iter__(self) -> Iterator[JobRow]:
        return iter(self._rows.values())

    def __contains__(self, key: int) -> bool:
        return key >> PLACE_BITS in self._rows

    def save(self) -> None:
        """Write every row with its state and its new events."""
        for job in self._rows.values():
            event = rules.settle(job, job.at)
            if event:
                job.record(*event)
        self._tx.insert("event", [event for job in self._rows.values() for event in job.events])
        self._tx.many("save_job", [job.values() for job in self._rows.values()])

    def keep(self, rows: Sequence[Row]) -> list[JobRow]:
        """Rows that a statement has held."""
        found = [JobRow(*row[:16]) for row in rows]
        for job, row in zip(found, rows, strict=True):
            job.state, job.at = JobState(job.state), self._tx.at or row[-1]
            job.cancelled_stages = row[-2].split()
        return [self._rows.setdefault(job.number, job) for job in found]


def task_statuses(tx: Transaction, ids: Iterable[str]) -> dict[str, TaskStatus]:
    """Where these tasks stand; those that do not exist are left out."""
    return {row[0]: TaskStatus(*row) for row in tx.all("task_statuses", ids=list(ids))}


def held_tasks(tx: Transaction, jobs: JobRows, ids: Collection[str], *, wait: bool = True) -> dict[str, TaskStatus]:
    """The same with their jobs held: as they stand, they stay."""
    jobs.load_of(ids, wait=wait)
    return {id: status for id, status in task_statuses(tx, ids).items() if status.key in jobs}
