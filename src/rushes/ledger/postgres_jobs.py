"""The job rows that a transaction on PostgreSQL changes: locked in order, read once, written once."""

from collections.abc import Collection
from typing import Any

from rushes.domain.errors import NotFound
from rushes.domain.job import JobState
from rushes.ledger.open_job import PLACES, OpenJob
from rushes.postgres.columns import numbers, texts
from rushes.postgres.store import Cursor, Row, Transaction

_SAVED = ("number", "told", "priority", "paused", "cancelled", "opened", "total", "done", "dead", "live",
          "losses", "failures", "last_event", "started", "finished")  # fmt: skip


class JobRows:
    """Job rows by number; `save` writes them all with the commit."""

    def __init__(self, turn: Transaction) -> None:
        self._turn = turn
        self._rows: dict[int, OpenJob] = {}

    def load(self, wanted: Collection[int], patient: bool = True) -> None:
        """Hold the rows that are not here yet, in order; without patience only those that nobody holds."""
        missing = set(wanted) - self._rows.keys()
        if missing:
            self.take(self.ask(missing, patient))

    def ask(self, wanted: Collection[int], patient: bool = True) -> Cursor:
        """The same, and nobody waits: what will answer with the rows, for `take`."""
        return self._turn.run("hold_jobs" if patient else "hold_free_jobs", numbers=numbers(sorted(wanted)))

    def take(self, asked: Cursor) -> None:
        """Rows that were asked for."""
        self._keep(self._turn.rows(asked))

    def find(self, id: str) -> OpenJob:
        """The row of a job by its id.

        Raises:
            NotFound: no such job.
        """
        for job in self._keep(self._turn.all("hold_job", id=id)):
            return job
        raise NotFound(f"no job {id}")

    def made(self, job: OpenJob) -> OpenJob:
        """A job that this transaction has made."""
        return self._rows.setdefault(job.number, job)

    def of(self, key: int) -> OpenJob:
        """The row of the job of a task."""
        return self._rows[key >> PLACES]

    def needed(self) -> bool:
        """Whether a task of another job needs one of these jobs' tasks."""
        return any(job.needed for job in self._rows.values())

    def __contains__(self, key: int) -> bool:
        return key >> PLACES in self._rows

    def save(self) -> None:
        """Settle and write every row, with its events."""
        for job in self._rows.values():
            job.settle(self._turn.wall)
        if not self._rows:
            return
        state, *columns = zip(*map(_row, self._rows.values()), strict=True)
        told = [event for job in self._rows.values() for event in job.events]
        number, seq, n, type, at, task, body = zip(*told, strict=True) if told else [()] * 7
        counts = {"job": numbers(number), "seq": numbers(seq), "n": numbers(n), "at": numbers(at)}
        words = {"type": texts(type), "task": texts([one or "" for one in task]), "body": texts(body)}
        saved = dict(zip(_SAVED, map(numbers, columns), strict=True))
        self._turn.run("jobs_save", state=texts(state), **saved, **counts, **words)

    def _keep(self, rows: list[Row]) -> list[OpenJob]:
        found = [OpenJob(number, id, owner, JobState(state), *rest) for number, id, owner, state, *rest in rows]
        for job in found:
            self._rows.setdefault(job.number, job)
        return [self._rows[job.number] for job in found]


def _row(job: OpenJob) -> tuple[Any, ...]:
    """Its state, and the columns that _SAVED names."""
    return (
        job.state, job.number, bool(job.events), job.priority, job.paused, job.cancelled, job.opened, job.total,
        job.done, job.dead, job.live, job.losses, job.failures, job.last_event, job.started, job.finished,
    )  # fmt: skip
