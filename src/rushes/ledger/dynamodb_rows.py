"""The rows of a ledger on DynamoDB: plain values, and how each becomes an item and where it is listed.

What a claim sets or asks for is an attribute of its own, the rest is one text: an item is written whole, at one price.
"""

import json
from collections.abc import Collection
from dataclasses import asdict, dataclass, field, fields
from typing import Any, TypeVar

from rushes.aws.table import Item, Key
from rushes.domain.job import FINAL, Counts, Job, JobState, NewJob
from rushes.domain.keys import JSON
from rushes.domain.task import Draft, Failure, Lease, Need, Task, TaskState, Verdict
from rushes.domain.worker import Incarnation
from rushes.ledger.clock import iso, iso_or_none
from rushes.ledger.dynamodb_texts import loosened, squeezed

R = TypeVar("R")
WORKERS, OWED, LEFT, DUE, PARKED, HELD = "workers", "owed", "left", "due", "parked", "held"
encode = json.JSONEncoder(separators=(",", ":")).encode  # ASCII: names may hold bytes that are no text


def job_key(job: str) -> Key:
    """Where a job's counters and state are: what every completion writes, so it is small."""
    return f"job#{job}", "job"


def about_key(job: str) -> Key:
    """Where the rest of a job is."""
    return f"job#{job}", "about"


def task_key(task: str) -> Key:
    """Where a task is: with its job, which its id begins with."""
    return f"job#{task.partition('.')[0]}", f"task#{task}"


def ready_place(lane: str) -> str:
    """The list of tasks that a claim in that lane may take."""
    return f"ready#{lane}"


def held_rank(worker: str, job: "JobRow", task: str) -> str:
    """Where a task is in the list of all that is held: by worker, so that what nobody knows of is found as well."""
    return f"{worker}#{job.number:012d}#{task}"


def pack(row: Any, key: Key, own: Collection[str] = ()) -> Item:
    """A row as an item: `own` fields as attributes, the others as one text."""
    values = {f.name: _kept(getattr(row, f.name)) for f in fields(row) if f.name != "rev"}
    item: Item = {"pk": key[0], "sk": key[1], "rev": row.rev}
    item |= {name: value for name in own if (value := values.pop(name)) is not None}
    return item | {"body": squeezed(encode(values))}


def _kept(value: Any) -> Any:
    """Python reads no number of more than 4,300 digits, but any in hex: a bit for each of 15,000 needs."""
    return hex(value) if type(value) is int and value.bit_length() > 64 else value


def unpack(cls: type[R], item: Item) -> R:
    """The row of an item."""
    names = {f.name for f in fields(cls)}  # type: ignore[arg-type]  # rows are dataclasses
    own = {name: value for name, value in item.items() if name in names}
    return cls(**own, **json.loads(loosened(str(item["body"]))))


@dataclass(slots=True)
class TaskRow:
    """A task; `state` knows nothing of its job being cancelled. One without a stage is only waited for."""

    id: str
    job: str
    stage: str = ""
    chunk: int | None = None
    lane: str = "cpu"
    order: int = 0
    spec: str = ""  # a long one is kept elsewhere
    first: bool = False
    then: dict[str, int] = field(default_factory=dict)  # who needs it, and which of its needs it is
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
    take: str = ""  # which claim leased it
    outcome: str = ""  # of the last attempt: done, failed, lost, given_back
    progress: str = "0.0"
    started: int | None = None

    def __post_init__(self) -> None:
        self.state = TaskState(self.state)
        self.unmet = int(str(self.unmet), 0)

    @property
    def key(self) -> Key:
        """Where it is."""
        return task_key(self.id)

    @property
    def at(self) -> tuple[int, int, str]:
        """Its place in the plan."""
        return 0 if self.first else 1, self.order, self.id

    def item(self, job: "JobRow | None") -> Item:
        """The task, listed where its job wants it."""
        item = pack(self, self.key, ("state", "fence", "worker", "take", "outcome", "progress", "started"))
        place = "" if job is None else self._place(job)
        if job is None or not place:
            return item
        if place == HELD:
            return item | {"place": place, "rank": held_rank(self.worker, job, self.id)}
        due = place in (DUE, PARKED)
        return item | {"place": place, "rank": f"{self.due:015d}#{self.id}" if due else self.rank(job)}

    def rank(self, job: "JobRow") -> str:
        """The order of claims."""
        begins, order, id = self.at
        return f"{10**6 - job.priority:07d}#{job.number:012d}#{begins}{order:08d}#{id}"

    def _place(self, job: "JobRow") -> str:
        if self.state is TaskState.LEASED:
            return HELD
        if self.state is not TaskState.READY:
            return ""
        if self.due is not None:
            return PARKED if job.stopped else DUE
        return "" if job.stopped else ready_place(self.lane)

    def held_by(self, worker: str | None, fence: int) -> bool:
        """Whether that lease is the one that counts."""
        return self.state is TaskState.LEASED and self.fence == fence and worker in (None, self.worker)

    def said(self, fence: int, outcome: str, cancelled: bool) -> Verdict:
        """The answer to a lease that holds no more."""
        if self.fence == fence and self.state is not TaskState.LEASED and self.outcome == outcome:
            return Verdict.OK
        return Verdict.CANCELLED if cancelled else Verdict.LOST

    def told(self, **more: JSON) -> dict[str, JSON]:
        """What an event about its attempt says."""
        about = {"stage": self.stage, "chunk": self.chunk, "fence": self.fence, "worker": self.worker or None}
        return {**about, **more}

    def lease(self, spec: str) -> Lease:
        """What its worker is given."""
        return Lease(
            task=self.id, fence=self.fence, job=self.job, stage=self.stage, chunk=self.chunk, lane=self.lane,
            spec=spec, failures=self.failures, losses=self.losses,
        )  # fmt: skip

    def seen(self, job: "JobRow", wall: int) -> Task:
        """The task as readers see it."""
        gone = job.cancelled and self.state not in (TaskState.DONE, TaskState.DEAD)
        failure = None if self.failure is None or self.state is TaskState.DONE else Failure.from_json(self.failure)
        return Task(
            id=self.id, job=self.job, stage=self.stage, chunk=self.chunk, lane=self.lane, order=self.order,
            state=TaskState.CANCELLED if gone else self.state, fence=self.fence, failures=self.failures,
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
    seq: int = 0
    moved: str = ""  # when the last event came, and its number
    started: int | None = None
    finished: int | None = None
    owed: list[dict[str, JSON]] = field(default_factory=list)
    rev: int = 0

    def __post_init__(self) -> None:
        self.state = JobState(self.state)

    @property
    def key(self) -> Key:
        """Where it is."""
        return job_key(self.id)

    @property
    def stopped(self) -> bool:
        """Whether its ready tasks are parked."""
        return bool(self.paused or self.cancelled)

    @property
    def counts(self) -> Counts:
        """Its counters."""
        return Counts(self.total, self.done, self.dead, self.live, self.losses, self.failures)

    def item(self) -> Item:
        """The job, in every list that it is in."""
        age = f"{self.number:012d}"
        item = pack(self, self.key, ("moved",)) | {"of_owner": f"jobs#{self.owner}", "age": age, "of_change": "jobs"}
        since = f"{self.finished:015d}#{age}" if self.state in FINAL and self.finished is not None else age
        item |= {"of_state": f"jobs#{self.owner}#{self.state.value}", "since": since}
        if self.state is JobState.COMPLETED and not self.owed:
            return item
        return item | {"place": OWED if self.owed else LEFT, "rank": self.id}


@dataclass(slots=True)
class AboutRow:
    """What stays of a job as it was submitted, and what its first task found."""

    new: dict[str, JSON]
    facts: str = ""
    rev: int = 0

    @property
    def key(self) -> Key:
        """Where it is."""
        return about_key(self.new["id"])

    def item(self) -> Item:
        """The item."""
        return pack(self, self.key)

    def seen(self, job: JobRow) -> Job:
        """The job as readers see it."""
        new = NewJob(**self.new)
        return Job(
            id=new.id, owner=new.owner, team=new.team, request_id=new.request_id, name=new.name, recipe=new.recipe,
            payload=new.payload, facts=self.facts, state=job.state, paused=bool(job.paused), priority=job.priority,
            counts=job.counts, last_event=job.seq, created_at=iso(job.created), started_at=iso_or_none(job.started),
            finished_at=iso_or_none(job.finished),
        )  # fmt: skip


@dataclass(slots=True)
class WorkerRow:
    """A worker incarnation; `beat` grows with every renewal, and who sees it stand still for a lease calls it over."""

    who: dict[str, JSON]
    number: int
    started: int
    beat: int = 0
    note: str = ""
    draining: bool = False
    left: bool = False
    over: bool = False
    clean: bool = False  # over, and nothing was found in its hands a lease later
    expires: int | None = None
    rev: int = 0

    @property
    def id(self) -> str:
        """Its name."""
        return str(self.who["id"])

    @property
    def key(self) -> Key:
        """Where it is."""
        return f"worker#{self.id}", "worker"

    @property
    def incarnation(self) -> Incarnation:
        """Who it is."""
        return Incarnation(**{**self.who, "lanes": tuple(self.who["lanes"])})

    def item(self) -> Item:
        """The worker, listed until there is nothing more to find."""
        item = pack(self, self.key, ("expires",))
        return item if self.clean else item | {"place": WORKERS, "rank": f"{self.number:012d}"}


@dataclass(slots=True)
class KeyRow:
    """A blob key that tasks need, or that has arrived."""

    name: str
    there: bool = False
    etags: list[str] = field(default_factory=list)
    then: dict[str, int] = field(default_factory=dict)
    rev: int = 0

    @property
    def key(self) -> Key:
        """Where it is."""
        return f"key#{self.name}", "key"

    def item(self) -> Item:
        """The item."""
        return pack(self, self.key)


@dataclass(slots=True)
class LanesRow:
    """Every lane that a task was ever in."""

    lanes: list[str] = field(default_factory=list)
    rev: int = 0
    key = ("lanes", "lanes")

    def item(self) -> Item:
        """The item."""
        return pack(self, self.key)


def draft_item(draft: Draft, fence: int, expires: int) -> Item:
    """A draft as an item that only its attempt's completion looks at."""
    sk = f"draft#{fence:08d}#{draft.id}"
    return {"pk": f"job#{draft.job}", "sk": sk, "body": squeezed(encode(asdict(draft))), "expires": expires}


def plan_item(job: str, fence: int, facts: str, expires: int) -> Item:
    """What an attempt found out, beside its drafts."""
    return {"pk": f"job#{job}", "sk": f"plan#{fence:08d}", "body": squeezed(encode(facts)), "expires": expires}


def draft_of(item: Item) -> Draft:
    """The draft of an item."""
    doc = json.loads(loosened(str(item["body"])))
    return Draft(**{**doc, "needs": tuple(Need(**need) for need in doc["needs"])})


def failure_doc(failure: Failure) -> dict[str, JSON]:
    """A failure as it is kept."""
    return asdict(failure)
