"""The job rows that a transaction changes: read once, written once, their events numbered in between."""

from collections.abc import Collection, Iterator

from rushes.domain.errors import NotFound
from rushes.domain.job import JobState
from rushes.ledger.open_job import PLACES, EventRow, OpenJob
from rushes.ledger.sqlite_store import Row, Transaction, encode


class JobRows:
    """Job rows by number; `save` writes them all."""

    def __init__(self, turn: Transaction) -> None:
        self._turn = turn
        self._rows: dict[int, OpenJob] = {}

    def load(self, numbers: Collection[int]) -> None:
        """Read the rows that are not here yet."""
        missing = sorted(set(numbers) - self._rows.keys())
        if missing:
            self._keep(self._turn.run("job_rows", encode(missing)))

    def find(self, id: str) -> OpenJob:
        """The row of a job by its id.

        Raises:
            NotFound: no such job.
        """
        for job in self._keep(self._turn.run("job_row", id)):
            return job
        raise NotFound(f"no job {id}")

    def of(self, key: int) -> OpenJob:
        """The row of the job of a task."""
        number = key >> PLACES
        if number not in self._rows:
            self.load((number,))
        return self._rows[number]

    def save(self) -> None:
        """Settle and write every row, with its events."""
        events: list[EventRow] = []
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
