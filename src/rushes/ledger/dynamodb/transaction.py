"""One transaction on DynamoDB: rows as read and as they shall be, written together or not at all.

Every row has a revision that must still be the one that was read; a refusal carries what is there now.
"""

from collections.abc import Iterable, Mapping
from typing import TypeVar

from rushes.aws.table import TRANSACTION, Item, Key, Table, Write
from rushes.domain.keys import JSON
from rushes.domain.task import Draft, TaskState
from rushes.ledger.clock import iso
from rushes.ledger.dynamodb import keys
from rushes.ledger.dynamodb.keys import details_key, job_key, task_key
from rushes.ledger.dynamodb.rows import BlobKeyRow, JobDetails, JobRow, LanesRow, TaskRow, WorkerRow, encode, unpack
from rushes.ledger.rules import NewEvent, no_job
from rushes.telemetry import effect

Row = TaskRow | JobRow | JobDetails | WorkerRow | BlobKeyRow | LanesRow
R = TypeVar("R", TaskRow, JobRow, JobDetails, WorkerRow, BlobKeyRow, LanesRow)
Plans = dict[tuple[str, int], list[Draft]]
PAGE = TRANSACTION - 10  # one more step may touch a few rows


class Transaction:
    """The rows that one verb reads and changes."""

    def __init__(self, table: Table, wall: int, stamp: str, cached: Mapping[Key, Item | None], plans: Plans) -> None:
        """`cached` items may be old: whoever writes them finds out. `plans` keeps the plan that is being opened."""
        self.table, self.wall, self.plans, self._stamp = table, wall, plans, stamp
        self._items: dict[Key, Item | None] = dict(cached)
        self._cached = set(cached)
        self._rows: dict[Key, Row] = {}
        self._changed: dict[Key, Row] = {}
        self._events: dict[str, list[JSON]] = {}
        self._once: dict[Key, Write] = {}
        self._dropped: list[Write] = []
        self.written: dict[Key, Item] = {}

    # Reading
    def load(self, keys: Iterable[Key]) -> None:
        """Read what was not read yet, at once."""
        wanted = [key for key in dict.fromkeys(keys) if key not in self._items]
        if wanted:
            found = self.table.fetch(wanted)
            self._items |= {key: found.get(key) for key in wanted}

    def load_tasks(self, tasks: Iterable[str]) -> None:
        """Read tasks and their jobs, at once."""
        self.load(key for task in tasks for key in (task_key(task), job_key(task.partition(".")[0])))

    def reload(self, keys: Iterable[Key]) -> None:
        """Read these again if they are only known from the cache."""
        old = {key for key in keys if key in self._cached and key not in self._changed}
        for key in old:
            del self._items[key]
            self._rows.pop(key, None)
            self._cached.remove(key)
        self.load(old)

    def item(self, key: Key) -> Item | None:
        """An item as it was read."""
        return self._items[key]

    def expect_absent(self, key: Key) -> None:
        """This is not there, as far as anybody knows; whoever writes it finds out."""
        self._items.setdefault(key, None)

    def job(self, id: str) -> JobRow:
        """A job.

        Raises:
            NotFound: no such job.
        """
        row = self.find_job(id)
        if row is None:
            raise no_job(id)
        return row

    def find_job(self, id: str) -> JobRow | None:
        """A job, if it is there."""
        return self._row(JobRow, job_key(id))

    def details(self, id: str) -> JobDetails | None:
        """The rest of a job."""
        return self._row(JobDetails, details_key(id))

    def task(self, id: str) -> TaskRow | None:
        """A task; one that was leased before its job was cancelled is leased no more (`relist` writes it so)."""
        self.load_tasks([id])
        row = self._row(TaskRow, task_key(id))
        if row is None or not row.stage:
            return None
        epoch = self.job(row.job).epoch
        if row.epoch != epoch and row.state is TaskState.LEASED:
            row.state, row.worker, row.progress = TaskState.READY, "", "0.0"
        row.epoch = epoch
        return row

    def tasks(self, ids: Iterable[str]) -> list[TaskRow]:
        """Those of these tasks that are there, read at once."""
        ids = list(ids)
        self.load_tasks(ids)
        return [row for id in ids if (row := self.task(id))]

    def tasks_of(self, job: str, begin: str = "") -> list[TaskRow]:
        """Every task of a job, or those from one on, in order of id; the job itself is read with them."""
        partition, low = task_key(f"{job}.")[0], f"task#{begin or ' '}"
        for item in self.table.query(partition, low if job_key(job) in self._items else "job", "task#~"):
            self._items.setdefault((str(item["pk"]), str(item["sk"])), item)
        ids = [sk.removeprefix("task#") for pk, sk in sorted(self._items) if pk == partition and low <= sk < "task#~"]
        return self.tasks(ids) if self.find_job(job) else []

    def task_or_stub(self, id: str) -> TaskRow:
        """A task that somebody needs, perhaps one that is not there yet."""
        return self._row(TaskRow, task_key(id)) or self._keep(TaskRow(id, id.partition(".")[0]))

    def worker(self, id: str) -> WorkerRow | None:
        """A worker, if it is there."""
        return self._row(WorkerRow, keys.worker_key(id))

    def blob_key(self, name: str) -> BlobKeyRow:
        """A blob key, also one that nobody has needed before."""
        return self._row(BlobKeyRow, keys.blob_key(name)) or self._keep(BlobKeyRow(name))

    def lanes(self) -> LanesRow:
        """Every lane."""
        return self._row(LanesRow, LanesRow.key) or self._keep(LanesRow())

    # Writing
    @property
    def full(self) -> bool:
        """Whether what is left to do must be owed."""
        jobs = sum(isinstance(row, JobRow) for row in self._changed.values())
        return len(self._changed) + jobs + len(self._once) >= PAGE

    def put(self, row: Row) -> None:
        """Write this row with the commit."""
        self._changed[row.key] = row

    def add(self, row: R) -> R:
        """Write a row that is not there yet."""
        self.expect_absent(row.key)
        self.put(self._keep(row))
        return row

    def relist(self, row: TaskRow) -> None:
        """Write a task that is not listed as its job wants it."""
        old = self._items.get(row.key)
        if old is None or row.item(self.job(row.job)) != old:
            self.put(row)

    def add_event(self, job: JobRow, event: NewEvent, task: str | None = None) -> None:
        """Number an event and write it with the commit."""
        type, data = event
        job.last_event += 1
        job.changed_at = f"{max(self._stamp, job.changed_at.partition('#')[0])}#{job.last_event}"
        self._events.setdefault(job.id, []).append([type.value, iso(self.wall), task, data])
        self.put(job)

    def drop(self, row: Row) -> None:
        """Delete this row with the commit."""
        self._changed.pop(row.key, None)
        self._dropped.append(self.table.drop(row.key, row.rev))

    def put_once(self, key: Key, doc: JSON) -> None:
        """Write a row that never changes: the first one stays."""
        self._once.setdefault(key, self.table.once(key, "body", encode(doc)))

    def commit(self, verb: str) -> None:
        """Write all that was put.

        Raises:
            TransactionCancelled: somebody else was quicker.
        """
        puts = [self._write(row) for row in self._changed.values()]
        events = [self._write_events(job, some) for job, some in self._events.items()]
        if puts or self._once or self._dropped:
            with effect(f"ledger.{verb}"):
                self.table.commit([*puts, *events, *self._once.values(), *self._dropped])

    def _write(self, row: Row) -> Write:
        expected = None if self._items[row.key] is None else row.rev
        row.rev += 1
        item = row.item(self.find_job(row.job)) if isinstance(row, TaskRow) else row.item()
        self.written[row.key] = item
        return self.table.put(item, expected)

    def _write_events(self, job: str, events: list[JSON]) -> Write:
        """Events of one transaction are one item, named by the last."""
        item: Item = {"pk": f"job#{job}", "sk": f"event#{self.job(job).last_event:010d}", "body": encode(events)}
        return self.table.put(item, None)

    def _row(self, cls: type[R], key: Key) -> R | None:
        self.load([key])
        row, item = self._rows.get(key), self._items[key]
        if row is None and item is not None:
            row = self._rows[key] = unpack(cls, item)
        return row if isinstance(row, cls) else None

    def _keep(self, row: R) -> R:
        self._rows[row.key] = row
        return row
