"""Published names: made after the commit, owed by the ledger until they are there."""

import json

from rushes.blobs.port import Blobs
from rushes.domain.errors import DamagedBlob
from rushes.domain.keys import manifest_key
from rushes.domain.result import Manifest
from rushes.ledger.port import Debt


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
