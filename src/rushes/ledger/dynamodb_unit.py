"""One transaction on DynamoDB: rows as they were seen and as they shall be, written together or not at all.

Every row has a revision that must still be the one that was seen; whoever is refused is told what stands there now.
"""

from collections.abc import Iterable, Mapping
from typing import TypeVar

from rushes.aws.table import TRANSACTION, Item, Key, Table, Write
from rushes.domain.event import EventType
from rushes.domain.keys import JSON
from rushes.domain.task import TaskState
from rushes.ledger.clock import iso
from rushes.ledger.dynamodb_rows import (
    AboutRow,
    JobRow,
    KeyRow,
    LanesRow,
    TaskRow,
    WorkerRow,
    about_key,
    encode,
    job_key,
    task_key,
    unpack,
)
from rushes.telemetry import effect

Row = TaskRow | JobRow | AboutRow | WorkerRow | KeyRow | LanesRow
R = TypeVar("R", TaskRow, JobRow, AboutRow, WorkerRow, KeyRow, LanesRow)
PAGE = TRANSACTION - 10  # one more step may touch a few rows


class Unit:
    """The rows that one verb looks at and changes."""

    def __init__(self, table: Table, wall: int, stamp: str, seen: Mapping[Key, Item | None]) -> None:
        """`seen` are items of before: right or not, whoever writes them finds out."""
        self.table, self.wall, self._stamp = table, wall, stamp
        self._old: dict[Key, Item | None] = dict(seen)
        self._doubtful = set(seen)
        self._rows: dict[Key, Row] = {}
        self._touched: dict[Key, Row] = {}
        self._told: dict[str, list[JSON]] = {}
        self._once: dict[Key, Write] = {}
        self.written: dict[Key, Item] = {}

    # Looking
    def load(self, keys: Iterable[Key]) -> None:
        """Read what was not seen yet, at once."""
        wanted = [key for key in dict.fromkeys(keys) if key not in self._old]
        if wanted:
            found = self.table.fetch(wanted)
            self._old |= {key: found.get(key) for key in wanted}

    def load_tasks(self, tasks: Iterable[str]) -> None:
        """Read tasks and their jobs, at once."""
        self.load(key for task in tasks for key in (task_key(task), job_key(task.partition(".")[0])))

    def sure(self, keys: Iterable[Key]) -> None:
        """Read these again if they are only known from before."""
        doubtful = {key for key in keys if key in self._doubtful and key not in self._touched}
        for key in doubtful:
            del self._old[key]
            self._rows.pop(key, None)
            self._doubtful.remove(key)
        self.load(doubtful)

    def seen(self, key: Key) -> Item | None:
        """An item as it was read."""
        return self._old[key]

    def absent(self, key: Key) -> None:
        """This is not there, as far as anybody knows; whoever writes it finds out."""
        self._old.setdefault(key, None)

    def new(self, row: R) -> R:
        """A row that is not there yet."""
        self.absent(row.key)
        self._rows[row.key] = row
        self.touch(row)
        return row

    def tasks_of(self, job: str, begin: str = "") -> list[TaskRow]:
        """Every task of a job, or those from one on, in order of id; the job itself is read with them."""
        partition, low = task_key(f"{job}.")[0], f"task#{begin or ' '}"
        for item in self.table.query(partition, low if job_key(job) in self._old else "job", "task#~"):
            self._old.setdefault((str(item["pk"]), str(item["sk"])), item)
        ids = [sk.removeprefix("task#") for pk, sk in sorted(self._old) if pk == partition and low <= sk < "task#~"]
        return [row for id in ids if self.job(job) and (row := self.task(id))]

    def job(self, id: str) -> JobRow | None:
        """A job."""
        return self._row(JobRow, job_key(id))

    def its(self, row: TaskRow) -> JobRow:
        """The job of a task."""
        job = self.job(row.job)
        if job is None:
            raise LookupError(row.job)
        return job

    def about(self, id: str) -> AboutRow | None:
        """The rest of a job."""
        return self._row(AboutRow, about_key(id))

    def worker(self, id: str) -> WorkerRow | None:
        """A worker."""
        return self._row(WorkerRow, (f"worker#{id}", "worker"))

    def named(self, name: str) -> KeyRow:
        """A blob key, made when nobody spoke of it before."""
        return self._row(KeyRow, (f"key#{name}", "key")) or self._kept(KeyRow(name))

    def wanted(self, id: str) -> TaskRow:
        """A task that somebody needs, perhaps one that is not there yet."""
        return self._row(TaskRow, task_key(id)) or self._kept(TaskRow(id, id.partition(".")[0]))

    def lanes(self) -> LanesRow:
        """Every lane."""
        return self._row(LanesRow, LanesRow.key) or self._kept(LanesRow())

    def task(self, id: str) -> TaskRow | None:
        """A task as its job makes it: a lease of before the job was cancelled is none (`agree` writes it so)."""
        row = self._row(TaskRow, task_key(id))
        if row is None or not row.stage:
            return None
        epoch = self.its(row).epoch
        if row.epoch != epoch and row.state is TaskState.LEASED:
            row.state, row.worker, row.progress = TaskState.READY, "", "0.0"
        row.epoch = epoch
        return row

    # Changing
    @property
    def full(self) -> bool:
        """Whether what is left to do must be owed."""
        jobs = sum(isinstance(row, JobRow) for row in self._touched.values())
        return len(self._touched) + jobs + len(self._once) >= PAGE

    def touch(self, row: Row) -> None:
        """This row is to be written."""
        self._touched[row.key] = row

    def agree(self, row: TaskRow) -> None:
        """Write a task that is not listed as its job wants it."""
        old = self._old.get(row.key)
        if old is None or row.item(self.its(row)) != old:
            self.touch(row)

    def tell(self, job: JobRow, type: EventType, data: dict[str, JSON], task: str | None = None) -> None:
        """One event."""
        job.seq += 1
        job.moved = f"{max(self._stamp, job.moved.partition('#')[0])}#{job.seq}"
        self._told.setdefault(job.id, []).append([type.value, iso(self.wall), task, data])
        self.touch(job)

    def once(self, key: Key, doc: JSON) -> None:
        """A row that never changes: the first one stays."""
        self._once.setdefault(key, self.table.once(key, "body", encode(doc)))

    def commit(self, verb: str) -> None:
        """Write all that was touched.

        Raises:
            Refusal: somebody else was quicker.
        """
        puts = [self._put(row) for row in self._touched.values()]
        events = [self._event(job, told) for job, told in self._told.items()]
        if puts or self._once:
            with effect(f"ledger.{verb}"):
                self.table.commit([*puts, *events, *self._once.values()])

    def _put(self, row: Row) -> Write:
        old = self._old[row.key]
        seen = None if old is None else row.rev
        row.rev += 1
        item = row.item(self.job(row.job)) if isinstance(row, TaskRow) else row.item()
        self.written[row.key] = item
        return self.table.put(item, seen)

    def _event(self, job: str, told: list[JSON]) -> Write:
        """Events of one transaction are one item, named by the last."""
        row = self.job(job)
        last = 0 if row is None else row.seq
        item: Item = {"pk": f"job#{job}", "sk": f"event#{last:010d}", "body": encode(told)}
        return self.table.put(item, None)

    def _row(self, cls: type[R], key: Key) -> R | None:
        self.load([key])
        row, item = self._rows.get(key), self._old[key]
        if row is None and item is not None:
            row = self._rows[key] = unpack(cls, item)
        return row if isinstance(row, cls) else None

    def _kept(self, row: R) -> R:
        self._rows[row.key] = row
        return row
