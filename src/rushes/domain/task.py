"""Tasks: one stage on one chunk, leased to one worker at a time."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from rushes.domain.errors import NeverWorks
from rushes.domain.keys import JSON, canonical
from rushes.domain.result import Result
from rushes.domain.span import Span

LEASE_SECONDS = 30.0
RENEW_SECONDS = 10.0
BACKOFF_SECONDS = (60.0, 300.0, 900.0)  # 1 + 3 tries
STUB, ANY_ENGINE = "stub", "any"  # which engine a task asks for: made-up answers, or that of the worker which takes it
MAX_LOSSES = 10  # then the task is dead-lettered: it kills its worker


class TaskState(StrEnum):
    """Where a task stands."""

    WAITING = "waiting"
    READY = "ready"
    LEASED = "leased"
    DONE = "done"
    DEAD = "dead"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Need:
    """A task or a blob key that must be there first."""

    ref: str
    is_key: bool = False  # a blob key, met by `arrived`; else a task id, met by its completion


@dataclass(frozen=True, slots=True)
class Draft:
    """A task as a plan writes it; no claim sees it until the plan is opened.

    `order` is its place in the plan: earlier ones are claimed first. `spec` is opaque to the ledger.
    An `adopted` draft is done from the start, because its results exist.
    """

    id: str
    job: str
    stage: str
    chunk: int | None
    spec: str
    lane: str = "cpu"
    order: int = 0
    needs: tuple[Need, ...] = ()
    adopted: bool = False


class Lease(NamedTuple):  # a tuple: batches make thousands, and a frozen dataclass takes four times as long
    """The right of one worker to one task; the fence grows with every lease of the task."""

    task: str
    fence: int
    job: str
    stage: str
    chunk: int | None
    lane: str
    spec: str
    failures: int
    losses: int
    token: int = 0  # the fencing token of the film's lock, in a home that has one


class Finish(NamedTuple):
    """What a worker says when a task is done: its results, and how long it took."""

    task: str
    fence: int
    results: tuple[Result, ...] = ()
    adopted: bool = False  # nothing was run: the results were there
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt failed, kept with the task and shown to people."""

    kind: str  # the class of the error: BadMedia, SlotDied, ...
    message: str
    hint: str
    verdict: str
    lines: tuple[str, ...] = ()  # the last log lines
    signal: int | None = None
    at: str = ""  # when, by the clock of the worker
    retry_count: int = 0  # failures before this one

    @staticmethod
    def from_json(doc: JSON) -> "Failure":
        """The inverse of asdict after json.dumps and json.loads."""
        return Failure(**{**doc, "lines": tuple(doc["lines"])})


class Verdict(StrEnum):
    """The ledger's answer to one finish, failure or hand-back."""

    OK = "ok"  # recorded now, or recorded before by this very fence
    LOST = "lost"  # the fence is stale: write nothing more
    CANCELLED = "cancelled"  # the job is cancelled: write nothing more


class LeaseStatus(StrEnum):
    """What a renewal says of each task that the worker holds."""

    KEEP = "keep"
    CANCELLED = "cancelled"
    GIVE_BACK = "give_back"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Task:
    """One stage on one chunk, or on the whole video; the unit that is leased."""

    id: str
    job: str
    stage: str
    chunk: int | None
    lane: str
    order: int
    state: TaskState
    fence: int
    failures: int
    losses: int
    unmet: int  # needs not met yet
    spec: str
    worker: str | None = None
    parked: bool = False  # ready, but its job is paused
    due_in: float | None = None  # seconds until it may be tried again
    progress: float = 0.0
    created_at: str = ""
    started_at: str | None = None
    finished_at: str | None = None
    failure: Failure | None = None
    adopted: bool = False

    @property
    def awaits_answer(self) -> bool:
        """Whether an asynchronous engine was asked: it continues when the answer arrives."""
        return bool(self.due_in) and self.failure is None

    @property
    def question(self) -> Mapping[str, JSON]:
        """What its spec says; nothing if that is no document."""
        try:
            doc = json.loads(self.spec or "{}")
        except ValueError:
            return {}
        return doc if isinstance(doc, dict) else {}

    @property
    def span(self) -> Span | None:
        """The part of the video that it works on; None if that is all of it."""
        doc = self.question.get("span")
        return Span.from_json(doc) if doc else None


def parse_spec(text: str, names: Iterable[str] = ()) -> dict[str, JSON]:
    """The spec of a task, which has its owner, its results, and all that `names` name.

    Raises:
        NeverWorks: it is not one, so no attempt can help.
    """
    hint = "Submit the video again to plan it with this version."
    try:
        spec: dict[str, JSON] = json.loads(text)
        missing = [name for name in ("owner", *names) if name not in spec]
        keys = [*spec["results"].values()]
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise NeverWorks(f"the spec of the task cannot be read: {e!r}", hint) from e
    if missing or not all(isinstance(key, str) for key in keys):
        raise NeverWorks(f"the spec of the task lacks {', '.join(missing) or 'keys of results'}", hint)
    return spec


def with_trace(spec: str, trace: str) -> str:
    """The same spec with the trace context (W3C) of its job; it is no part of any question."""
    return canonical({**json.loads(spec), "trace": trace}).decode("ascii") if trace else spec


def trace_of(spec: str) -> str:
    """The trace context of a task's job, "" if it has none."""
    return str(json.loads(spec).get("trace", "")) if '"trace"' in spec else ""


def retry_delay(failures: int, jitter: float) -> float | None:
    """Seconds before the next try after that many failures, or None when tries are used up. jitter in 0..1."""
    if failures > len(BACKOFF_SECONDS):
        return None
    return BACKOFF_SECONDS[failures - 1] * (0.8 + 0.4 * jitter)
