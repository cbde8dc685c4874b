"""Published names: made after the commit, owed by the ledger until they are there."""

import json

from rushes.blobs.port import Blobs
from rushes.domain.errors import DamagedBlob, NoRoom, RushesError, StoreAway
from rushes.domain.keys import manifest_key
from rushes.domain.result import Manifest
from rushes.ledger.port import Debt, Ledger, Swept
from rushes.telemetry import log


def sweep(ledger: Ledger, blobs: Blobs) -> Swept:
    """Sweep the ledger and pay every debt that can be paid; answers what the sweep found."""
    first = swept = ledger.sweep()
    while swept.debts:
        paid = [debt for debt in swept.debts if _pay(blobs, debt)]
        if not paid:
            break
        swept = ledger.sweep(paid=paid)
    return first


def _pay(blobs: Blobs, debt: Debt) -> bool:
    """Whether the debt is settled: names of a damaged result are settled too, its repair owes them anew."""
    try:
        publish(blobs, debt)
    except RushesError as e:
        log.warning("publishing %s: %s", debt.key, e, extra={"job": debt.job})
        return not isinstance(e, StoreAway | NoRoom)
    return True


def publish(blobs: Blobs, debt: Debt) -> None:
    """Give every artifact of a result the name it asked for; repeatable.

    Raises:
        DamagedBlob: the manifest or a blob is missing, so that verify has to mend it.
    """
    data = blobs.read(manifest_key(debt.owner, debt.key))
    if data is None:
        raise DamagedBlob(f"the manifest of {debt.key} is missing")
    for artifact in Manifest.from_json(json.loads(data)).artifacts:
        if artifact.publish:
            blobs.publish(artifact.publish, debt.owner, artifact.sha256)
