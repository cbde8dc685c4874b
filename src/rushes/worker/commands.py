"""Orders: what the core tells the shell to do."""

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
    """Announce again what was hinted to this worker and has no place here."""

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
    """End what a slot runs, at once; nothing it says about that task counts any more."""

    slot: int
    why: str


@dataclass(frozen=True, slots=True)
class Report:
    """Say that a task runs long; nobody ends it for that."""

    lease: Lease
    seconds: float


@dataclass(frozen=True, slots=True)
class Complete:
    """Tell the ledger that a task is done."""

    lease: Lease
    finish: Finish


@dataclass(frozen=True, slots=True)
class Fail:
    """Tell the ledger that an attempt failed; dead when delay is None."""

    lease: Lease
    failure: Failure
    delay: float | None


@dataclass(frozen=True, slots=True)
class GiveBack:
    """Hand a task back, claimable at once."""

    lease: Lease
    reason: str


@dataclass(frozen=True, slots=True)
class Sweep:
    """Look for what dead workers left, what is due and what is owed."""


@dataclass(frozen=True, slots=True)
class NewIncarnation:
    """The worker's row is over: go on as a new incarnation."""


@dataclass(frozen=True, slots=True)
class Leave:
    """Everything is handed back: strike out the worker's row and end."""


OutboxEntry = Complete | Fail | GiveBack  # bookkeeping that must reach the ledger, or the lease is lost
Command = Claim | Listen | PassOn | Renew | Start | Kill | Report | OutboxEntry | Sweep | NewIncarnation | Leave
