"""Happenings: what the shell reports to the core."""

from collections.abc import Mapping
from dataclasses import dataclass

from rushes.domain.task import Failure, Finish, Lease, LeaseStatus
from rushes.worker.commands import OutboxEntry


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed, or somebody called."""


@dataclass(frozen=True, slots=True)
class Hinted:
    """What waiting for hints in those lanes brought: ids to claim, or none (look for yourself)."""

    lanes: tuple[str, ...]
    tasks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Claimed:
    """The ledger's answer to a claim of `asked` tasks in those lanes (of hinted ids alone, or of any)."""

    lanes: tuple[str, ...]
    leases: tuple[Lease, ...]
    asked: int
    hinted: bool = False


@dataclass(frozen=True, slots=True)
class Swept:
    """A sweep is over: lanes in which something is ready, and seconds until something that backs off is due."""

    lanes: frozenset[str]
    next_due: float | None = None


@dataclass(frozen=True, slots=True)
class RenewalCame:
    """The ledger's answer to a renewal: what to do with each task at the fence that was asked about."""

    orders: Mapping[tuple[str, int], LeaseStatus]
    drain: bool
    gone: bool


@dataclass(frozen=True, slots=True)
class Progressed:
    """A slot says how far it is."""

    task: str
    fraction: float


@dataclass(frozen=True, slots=True)
class TaskFinished:
    """A slot has made its results (or they were there)."""

    finish: Finish


@dataclass(frozen=True, slots=True)
class TaskFailed:
    """An attempt failed. `final`: no use trying again; `counts`: false for a hand-back (drained, no room)."""

    task: str
    fence: int
    failure: Failure
    jitter: float
    final: bool = False
    counts: bool = True


@dataclass(frozen=True, slots=True)
class OutboxEntryWritten:
    """A letter has reached the ledger, whatever it answered."""

    letter: OutboxEntry


@dataclass(frozen=True, slots=True)
class StoreUnavailable:
    """The ledger did not answer; or, in `doubt`, it said that the lease of this worker is over."""

    doubt: bool = False


@dataclass(frozen=True, slots=True)
class DiskSpace:
    """Whether the home's disk has room for more: so many bytes are free, so many are to stay free."""

    enough: bool
    free: int = 0
    kept: int = 0


@dataclass(frozen=True, slots=True)
class StopRequested:
    """A signal, a notice or an order to stop, with its reason: once drains, twice (or `at_once`) stops at once."""

    why: str = ""
    within: float | None = None  # the machine goes in so many seconds, whatever the grace
    at_once: bool = False


Input = (
    Tick
    | Hinted
    | Claimed
    | Swept
    | RenewalCame
    | Progressed
    | TaskFinished
    | TaskFailed
    | OutboxEntryWritten
    | StoreUnavailable
    | DiskSpace
    | StopRequested
)  # fmt: skip
