"""The ports of a worker: those of its home's stores, or those of a server."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rushes.domain.task import Finish, Lease
from rushes.ledger.port import SweepResult, WorkLedger
from rushes.worker.broker.attempt import AttemptDeps


@dataclass(frozen=True, slots=True)
class WorkPorts:
    """What a worker is given of its stores; as in `WorkerDeps`."""

    ledger: WorkLedger
    free_bytes: Callable[[], int | None]
    sweep: Callable[[], tuple[SweepResult, bool]]
    open_plan: Callable[[Lease, Finish], None]
    check_plan: Callable[[Lease], Sequence[str]]
    attempt_deps: Callable[[Lease], AttemptDeps]
