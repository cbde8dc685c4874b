"""Jobs: one video through one recipe; what a person submits, watches, pauses and cancels."""

from dataclasses import dataclass
from enum import StrEnum

TRIAL = "trial"  # the recipe of what an estimate tries out


class JobState(StrEnum):
    """Derived from the tasks and kept on the job row in the same transaction."""

    CREATED = "created"  # its file is awaited, or nobody has begun
    CHUNKING = "chunking_in_progress"  # probe is leased
    RUNNING = "chunking_complete"  # the plan is open
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


FINAL = frozenset({JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED})


class JobCommand(StrEnum):
    """What `control` can be told."""

    PAUSE = "pause"
    PAUSE_NOW = "pause_now"
    RESUME = "resume"
    CANCEL = "cancel"
    PRIORITY = "priority"
    TRIM = "trim"  # drop events and log lines that are at least so many seconds old
    FORGET = "forget"  # drop a finished job: its row, tasks and events
    DRAIN = "drain"  # a worker
    LEAVE = "leave"  # a worker that has handed everything back


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job as it is submitted; the same request id of the same owner is the same job."""

    id: str
    owner: str
    request_id: str
    name: str  # what people call it: the file's name
    recipe: str
    payload: str  # opaque to the ledger
    priority: int = 0
    team: str = ""
    queue: str = ""  # where it was put: the lane of its first task, or a queue of one's own


@dataclass(frozen=True, slots=True)
class Counts:
    """The counters on a job row. `live` counts tasks that are ready or leased; cancelled ones are not in `total`."""

    total: int = 0
    done: int = 0
    dead: int = 0
    live: int = 0
    losses: int = 0
    failures: int = 0


@dataclass(frozen=True, slots=True)
class Job:
    """One video through one recipe."""

    id: str
    owner: str
    team: str
    request_id: str
    name: str
    recipe: str
    payload: str
    facts: str  # what the first task found, opaque to the ledger; "" until the plan is open
    state: JobState
    paused: bool
    priority: int
    counts: Counts
    last_event: int
    created_at: str
    started_at: str | None = None
    finished_at: str | None = None
    cancelled_stages: tuple[str, ...] = ()  # those that were cancelled by themselves, also before the plan is open
    queue: str = ""


def job_state(counts: Counts, *, opened: bool, chunking: bool, cancelled: bool) -> JobState:
    """The state that the counters mean; the only place where it is decided."""
    if cancelled:
        return JobState.CANCELLED
    if opened and counts.done == counts.total:
        return JobState.COMPLETED
    if counts.dead and not counts.live:
        return JobState.FAILED
    if opened:
        return JobState.RUNNING
    return JobState.CHUNKING if chunking else JobState.CREATED
