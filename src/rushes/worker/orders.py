"""Orders: what the core tells the shell to do."""

from collections.abc import Mapping
from dataclasses import dataclass

from rushes.domain.task import Failure, Finish, Lease


@dataclass(frozen=True, slots=True)
class Claim:
    """Ask the ledger for work."""

    lanes: tuple[str, ...]
    n: int


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
class Rebirth:
    """The worker's row is over: go on as a new incarnation."""


@dataclass(frozen=True, slots=True)
class Leave:
    """Everything is handed back: strike out the worker's row and end."""


Deed = Claim | Renew | Start | Kill | Complete | Fail | GiveBack | Sweep | Rebirth | Leave
Letter = Complete | Fail | GiveBack  # bookkeeping that must reach the ledger, or the lease is lost
