"""Inputs: what the shell reports to the core."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rushes.domain.task import Failure, Finish, Lease, LeaseStatus, Verdict
from rushes.domain.worker import DiskSpace
from rushes.worker.commands import OutboxEntry


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""


@dataclass(frozen=True, slots=True)
class Hinted:
    """The end of a wait for hints in those lanes: ids to claim, or none (then look without hints)."""

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
    """The end of a sweep: lanes in which something is ready, and seconds until the next task is due.

    `quiet`: nothing is ready, leased, owed or due anywhere.
    """

    lanes: frozenset[str]
    next_due: float | None = None
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class RenewalReply:
    """The ledger's answer to a renewal: the status of each lease that was asked about, by task and fence."""

    statuses: Mapping[tuple[str, int], LeaseStatus]
    drain: bool
    gone: bool


@dataclass(frozen=True, slots=True)
class Progressed:
    """The progress of a task in a slot, from 0 to 1."""

    task: str
    fraction: float


@dataclass(frozen=True, slots=True)
class TaskFinished:
    """The results of a task exist: a slot made them, or they were there before."""

    finish: Finish


@dataclass(frozen=True, slots=True)
class TaskFailed:
    """An attempt failed. `final`: never try again; `counts`: False for a hand-back (drained, disk full).

    `delay`: its task waits for an answer or a service, so many seconds at the most; others can be worked on.
    """

    task: str
    fence: int
    failure: Failure
    jitter: float
    final: bool = False
    counts: bool = True
    delay: float = 0.0


@dataclass(frozen=True, slots=True)
class OutboxEntryWritten:
    """An outbox entry has reached the ledger; only what it calls OK counts there."""

    entry: OutboxEntry
    verdict: Verdict = Verdict.OK


@dataclass(frozen=True, slots=True)
class StoreUnavailable:
    """A command was not carried out: try again soon; `doubt`: the lease of this worker may be over."""

    doubt: bool = False


@dataclass(frozen=True, slots=True)
class StopRequested:
    """A signal, a notice or a command to stop: the first drains, the second (or `at_once`) stops at once."""

    reason: str = ""
    within: float | None = None  # seconds until the machine goes away, whatever the grace
    at_once: bool = False


LedgerAnswer = Claimed | Swept | RenewalReply | OutboxEntryWritten | StoreUnavailable
SlotMessage = Progressed | TaskFinished | TaskFailed
Input = Tick | Hinted | DiskSpace | StopRequested | LedgerAnswer | SlotMessage
Report = Callable[[Input], None]
