"""The rows of a ledger on DynamoDB: plain values, and how each becomes an item and which lists it is in.

What a claim sets or asks for is an attribute of its own, the rest is one text: an item is written whole, at one price.
"""

import json
from collections.abc import Collection
from dataclasses import asdict, dataclass, field, fields
from typing import Any, TypeVar

from rushes.aws.table import Item, Key
from rushes.domain.job import FINAL, Counts, Job, JobState, NewJob
from rushes.domain.keys import JSON
from rushes.domain.task import LEASE_SECONDS, Draft, Failure, Lease, Need, Task, TaskState
from rushes.domain.worker import Incarnation
from rushes.ledger.clock import iso, iso_or_none
from rushes.ledger.dynamodb import keys
from rushes.ledger.dynamodb.keys import DUE, HELD, OWED, PARKED, UNFINISHED, WORKERS
from rushes.ledger.dynamodb.texts import compress_json, decompress_json
from rushes.ledger.rules import TaskStatus, visible_state

R = TypeVar("R")
TOMBSTONE_SECONDS = 7 * 86_400  # a worker that slept so long enters as a new one; its fences are stale all the same
_CLAIMED = ("state", "fence", "worker", "claim_id", "outcome", "progress", "started")
encode = json.JSONEncoder(separators=(",", ":")).encode  # ASCII: names may hold bytes that are no text


def pack(row: Any, own: Collection[str] = ()) -> Item:
    """A row as an item: `own` fields as attributes, the others as one text."""
    values = {f.name: _readable(getattr(row, f.name)) for f in fields(row) if f.name != "rev"}
    item: Item = {"pk": row.key[0], "sk": row.key[1], "rev": row.rev}
    item |= {name: value for name in own if (value := values.pop(name)) is not None}
    return item | {"body": compress_json(encode(values))}


def _readable(value: Any) -> Any:
    """Python reads no number of more than 4,300 digits, but any in hex: a bit for each of 15,000 needs."""
    return hex(value) if type(value) is int and value.bit_length() > 64 else value


def unpack(cls: type[R], item: Item) -> R:
    """The row of an item."""
    names = {f.name for f in fields(cls)}  # type: ignore[arg-type]  # rows are dataclasses
    own = {name: value for name, value in item.items() if name in names}
    return cls(**own, **json.loads(decompress_json(str(item["body"]))))


@dataclass(slots=True)
class TaskRow:
    """A task; `state` knows nothing of its whole job being cancelled. One without a stage is only waited for."""

    id: str
    job: str
    stage: str = ""
    chunk: int | None = None
    lane: str = "cpu"
    order: int = 0
    spec: str = ""  # a long one is kept elsewhere
    first: bool = False
    dependants: dict[str, int] = field(default_factory=dict)  # who needs it, and which of its needs it is
    unmet: int = 0  # a bit per need
    epoch: int = 0  # of the job: a lease of before its cancellation is over
    due: int | None = None
    failures: int = 0
    losses: int = 0
    adopted: bool = False
    failure: dict[str, JSON] | None = None
    created: int = 0
    finished: int | None = None
    rev: int = 0
    state: TaskState = TaskState.WAITING
    fence: int = 0
    worker: str = ""
    claim_id: str = ""  # of the claim that leased it
    outcome: str = ""  # of the last attempt: done, failed, lost, given_back
    progress: str = "0.0"
    started: int | None = None

    def __post_init__(self) -> None:
        self.state = TaskState(self.state)
        self.unmet = int(str(self.unmet), 0)

    @property
    def key(self) -> Key:
        return keys.task_key(self.id)

    @property
    def plan_order(self) -> tuple[int, int, str]:
        return 0 if self.first else 1, self.order, self.id

    def item(self, job: "JobRow | None") -> Item:
        """The task, in the list that its state and its job put it in."""
        item = pack(self, _CLAIMED)
        listed = "" if job is None else self._list(job)
        if job is None or not listed:
            return item
        if listed == HELD:
            rank = keys.held_rank(self.worker, job.number, self.id)
        else:
            rank = f"{self.due:015d}#{self.id}" if listed in (DUE, PARKED) else self.rank(job)
        return item | {"list_name": listed, "rank": rank}

    def rank(self, job: "JobRow") -> str:
        """The order of claims."""
        group, order, id = self.plan_order
        return f"{10**6 - job.priority:07d}#{job.number:012d}#{group}{order:08d}#{id}"

    def _list(self, job: "JobRow") -> str:
        if self.state is TaskState.LEASED:
            return HELD
        if self.state is not TaskState.READY:
            return ""
        if self.due is not None:
            return PARKED if job.stopped else DUE
        return "" if job.stopped else keys.ready_list(self.lane)

    def status(self, job: "JobRow") -> TaskStatus:
        """Where it and its job stand."""
        return TaskStatus(
            self.id, self.stage, self.chunk, self.state, self.fence, self.worker or None, self.outcome, self.losses,
            job.cancelled, job.paused,
        )  # fmt: skip

    def lease(self, spec: str) -> Lease:
        """What its worker is given."""
        return Lease(
            task=self.id, fence=self.fence, job=self.job, stage=self.stage, chunk=self.chunk, lane=self.lane,
            spec=spec, failures=self.failures, losses=self.losses,
        )  # fmt: skip

    def task(self, job: "JobRow", wall: int) -> Task:
        """The task as readers see it."""
        failure = None if self.failure is None or self.state is TaskState.DONE else Failure.from_json(self.failure)
        return Task(
            id=self.id, job=self.job, stage=self.stage, chunk=self.chunk, lane=self.lane, order=self.order,
            state=visible_state(self.state, cancelled=job.cancelled), fence=self.fence, failures=self.failures,
            losses=self.losses, unmet=self.unmet.bit_count(), spec=self.spec, worker=self.worker or None,
            parked=self.state is TaskState.READY and job.stopped and not job.cancelled,
            due_in=None if self.due is None else max(0.0, (self.due - wall) / 1000), progress=float(self.progress),
            created_at=iso(self.created), started_at=iso_or_none(self.started), finished_at=iso_or_none(self.finished),
            failure=failure, adopted=self.adopted,
        )  # fmt: skip


@dataclass(slots=True)
class JobRow:
    """What changes of a job; `owed` is what its last transaction could not reach."""

    id: str
    owner: str
    number: int
    priority: int
    created: int
    first: str
    state: JobState = JobState.CREATED
    paused: int = 0  # 2: what runs is given back
    cancelled: bool = False
    epoch: int = 0
    opened: bool = False
    chunking: bool = False
    total: int = 0
    done: int = 0
    dead: int = 0
    live: int = 0
    losses: int = 0
    failures: int = 0
    last_event: int = 0
    changed_at: str = ""  # when the last event came, and its number
    started: int | None = None
    finished: int | None = None
    owed: list[dict[str, JSON]] = field(default_factory=list)
    cancelled_stages: list[str] = field(default_factory=list)
    rev: int = 0

    def __post_init__(self) -> None:
        self.state = JobState(self.state)

    @property
    def key(self) -> Key:
        return keys.job_key(self.id)

    @property
    def stopped(self) -> bool:
        """Whether its ready tasks are parked."""
        return bool(self.paused or self.cancelled)

    @property
    def counts(self) -> Counts:
        return Counts(self.total, self.done, self.dead, self.live, self.losses, self.failures)

    def item(self) -> Item:
        """The job, in every list that it is in."""
        age = f"{self.number:012d}"
        item = pack(self, ("changed_at",)) | {"of_owner": f"jobs#{self.owner}", "age": age, "of_change": "jobs"}
        since = f"{self.finished:015d}#{age}" if self.state in FINAL and self.finished is not None else age
        item |= {"of_state": f"jobs#{self.owner}#{self.state.value}", "since": since}
        if self.state is JobState.COMPLETED and not self.owed:
            return item
        return item | {"list_name": OWED if self.owed else UNFINISHED, "rank": self.id}


@dataclass(slots=True)
class JobDetails:
    """What stays of a job as it was submitted, and what its first task found."""

    new: dict[str, JSON]
    facts: str = ""
    number: int = 0
    rev: int = 0

    @property
    def key(self) -> Key:
        return keys.details_key(self.new["id"])

    def item(self) -> Item:
        """The details, in the list of the job's queue."""
        queue = self.new.get("queue")
        listed = {"of_owner": keys.queue_list(self.new["owner"], queue), "age": f"{self.number:012d}"} if queue else {}
        return pack(self) | listed

    def job(self, row: JobRow) -> Job:
        """The job as readers see it."""
        new = NewJob(**self.new)
        return Job(
            id=new.id, owner=new.owner, team=new.team, request_id=new.request_id, name=new.name, recipe=new.recipe,
            payload=new.payload, facts=self.facts, state=row.state, paused=bool(row.paused), priority=row.priority,
            counts=row.counts, last_event=row.last_event, created_at=iso(row.created),
            started_at=iso_or_none(row.started), finished_at=iso_or_none(row.finished),
            cancelled_stages=tuple(row.cancelled_stages), queue=new.queue,
        )  # fmt: skip


@dataclass(slots=True)
class WorkerRow:
    """A worker incarnation; `heartbeat` grows with every renewal; whoever sees it stand still for a lease ends it."""

    who: dict[str, JSON]
    number: int
    started: int
    heartbeat: int = 0
    note: str = ""
    draining: bool = False
    left: bool = False
    over: bool = False
    retired: bool = False  # over, and nothing was found in its hands a lease later
    expires: int | None = None
    rev: int = 0

    @property
    def id(self) -> str:
        return str(self.who["id"])

    @property
    def key(self) -> Key:
        return keys.worker_key(self.id)

    @property
    def lease_seconds(self) -> float:
        """How long it may be silent."""
        return float(self.who.get("lease_seconds", LEASE_SECONDS))

    @property
    def incarnation(self) -> Incarnation:
        return Incarnation(**{**self.who, "lanes": tuple(self.who["lanes"])})

    def end(self, wall: int) -> None:
        """Its lease is over for good; the row is kept for a while, so that it finds out."""
        self.over, self.expires = True, wall // 1000 + TOMBSTONE_SECONDS

    def item(self) -> Item:
        """The worker, listed until there is nothing more to find."""
        item = pack(self, ("expires",))
        return item if self.retired else item | {"list_name": WORKERS, "rank": f"{self.number:012d}"}


@dataclass(slots=True)
class BlobKeyRow:
    """A blob key that tasks need, or that has arrived."""

    name: str
    arrived: bool = False
    etags: list[str] = field(default_factory=list)
    dependants: dict[str, int] = field(default_factory=dict)
    expires: int | None = None
    rev: int = 0

    @property
    def key(self) -> Key:
        return keys.blob_key(self.name)

    def item(self) -> Item:
        return pack(self, ("expires",))


@dataclass(slots=True)
class LanesRow:
    """Every lane that a task was ever in."""

    lanes: list[str] = field(default_factory=list)
    rev: int = 0
    key = ("lanes", "lanes")

    def item(self) -> Item:
        return pack(self)


def draft_item(draft: Draft, fence: int, expires: int) -> Item:
    """A draft as an item that only its attempt's completion looks at."""
    sk = f"draft#{fence:08d}#{draft.id}"
    return {"pk": f"job#{draft.job}", "sk": sk, "body": compress_json(encode(asdict(draft))), "expires": expires}


def draft_of(item: Item) -> Draft:
    """The draft of an item."""
    doc = json.loads(decompress_json(str(item["body"])))
    return Draft(**{**doc, "needs": tuple(Need(**need) for need in doc["needs"])})
