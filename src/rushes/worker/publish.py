"""Publishing names: after the commit; the ledger remembers them until they are published."""

from collections.abc import Sequence
from typing import Protocol

from rushes.blobs.manifests import read_manifest
from rushes.blobs.port import Blobs
from rushes.blobs.published import Names, own_names, publish_names
from rushes.domain.errors import NoRoom, RushesError, StoreAway
from rushes.ledger.port import Debt, SweepResult
from rushes.telemetry import log


class Sweeper(Protocol):
    """Who sweeps: the ledger itself, or a wrapper that also announces what it found."""

    def sweep(self, limit: int = 500, paid: Sequence[Debt] = ()) -> SweepResult:
        """As the ledger's sweep."""


def sweep(sweeper: Sweeper, blobs: Blobs, names: Names = own_names) -> SweepResult:
    """Sweep and pay every debt that can be paid; answers what the first sweep found."""
    first, more = sweep_page(sweeper, blobs, names)
    while more:
        _, more = sweep_page(sweeper, blobs, names)
    return first


def sweep_page(sweeper: Sweeper, blobs: Blobs, names: Names = own_names) -> tuple[SweepResult, bool]:
    """Sweep and pay a page of debts; what the sweep found, and whether to go on because more can be paid."""
    swept = sweeper.sweep()
    paid = [debt for debt in swept.debts if _pay(blobs, debt, names)]
    return swept, bool(paid and sweeper.sweep(paid=paid).debts)


def _pay(blobs: Blobs, debt: Debt, names: Names) -> bool:
    """Whether the debt is settled; that of a damaged result is too, because its repair will owe the names again."""
    try:
        publish(blobs, debt, names)
    except RushesError as e:
        log.warning("publishing %s: %s", debt.key, e, extra={"job": debt.job})
        return not isinstance(e, StoreAway | NoRoom)
    return True


def publish(blobs: Blobs, debt: Debt, names: Names = own_names) -> None:
    """Pay a debt; repeatable.

    Raises:
        DamagedBlob: the manifest or a blob is missing or damaged, until `verify --repair`.
    """
    publish_names(blobs, debt.owner, names(debt.job, read_manifest(blobs, debt.owner, debt.key)))
