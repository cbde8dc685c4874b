"""Commands: what the core tells the shell to do."""

from collections.abc import Mapping
from dataclasses import dataclass

from rushes.domain.task import Failure, Finish, Lease


@dataclass(frozen=True, slots=True)
class Claim:
    """Ask the ledger for work: for these ids, or for any when none are named."""

    lanes: tuple[str, ...]
    n: int
    hinted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Listen:
    """Wait for hints in those lanes, for up to n tasks."""

    lanes: tuple[str, ...]
    n: int
    seconds: float


@dataclass(frozen=True, slots=True)
class PassOn:
    """Announce hints again that this worker has no free slot for."""

    tasks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Renew:
    """Keep the lease."""

    holding: Mapping[str, int]
    progress: Mapping[str, float]
    note: str


@dataclass(frozen=True, slots=True)
class Start:
    """Run a task in a slot."""

    slot: int
    lease: Lease


@dataclass(frozen=True, slots=True)
class Kill:
    """Kill what a slot runs; nothing it still says about that task counts."""

    slot: int
    reason: str


@dataclass(frozen=True, slots=True)
class ReportLongTask:
    """Log that a task runs long; it is not killed."""

    lease: Lease
    seconds: float


@dataclass(frozen=True, slots=True)
class Complete:
    """Tell the ledger that a task is done."""

    lease: Lease
    finish: Finish


@dataclass(frozen=True, slots=True)
class Fail:
    """Tell the ledger that an attempt failed; the task is dead when delay is None."""

    lease: Lease
    failure: Failure
    delay: float | None


@dataclass(frozen=True, slots=True)
class GiveBack:
    """Give a task back, claimable at once or after so many seconds."""

    lease: Lease
    reason: str
    delay: float = 0.0


@dataclass(frozen=True, slots=True)
class Sweep:
    """Release what dead workers held, and pay what is owed."""


@dataclass(frozen=True, slots=True)
class NewIncarnation:
    """The worker's row is over: go on as a new incarnation."""


@dataclass(frozen=True, slots=True)
class Leave:
    """Everything is given back: delete the worker's row and end."""


OutboxEntry = Complete | Fail | GiveBack  # outcomes that must reach the ledger, or the lease is lost
Command = Claim | Listen | PassOn | Renew | Start | Kill | ReportLongTask | OutboxEntry | Sweep | NewIncarnation | Leave
