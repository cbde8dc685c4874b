"""Setting a result aside because it is damaged: row, manifest, then blobs; afterwards it is made again."""

import hashlib

from rushes.blobs.manifests import parse_manifest, written
from rushes.blobs.port import Blobs
from rushes.domain.errors import DamagedBlob
from rushes.domain.keys import manifest_key
from rushes.ledger.port import Ledger


def quarantine(ledger: Ledger, blobs: Blobs, owner: str, key: str, what: str) -> None:
    """Take a damaged result out of the way, unless others have repaired it since, or do so now. Repeatable."""
    name = manifest_key(owner, key)
    data = written(blobs, name)
    bad = _damaged(blobs, owner, key, data or b"")
    if data and bad == () and _is_committed(ledger, owner, key, data):
        return
    ledger.set_aside(owner, [key], f"damaged: {what}")
    if data is not None:
        blobs.delete(name, was=data or None)
    for sha256 in bad or ():
        blobs.verify(owner, sha256, quarantine=True)


def _damaged(blobs: Blobs, owner: str, key: str, data: bytes) -> tuple[str, ...] | None:
    """The hashes of a result's blobs that are missing or damaged, None if its manifest is."""
    try:
        manifest = parse_manifest(data, key)
    except DamagedBlob:
        return None
    return tuple(a.sha256 for a in manifest.artifacts if not blobs.verify(owner, a.sha256))


def _is_committed(ledger: Ledger, owner: str, key: str, data: bytes) -> bool:
    """Whether the ledger says nothing else of it; of a manifest that was just made it says nothing yet."""
    row = ledger.known(owner, [key]).get(key)
    return row is None or row.manifest_sha256 == hashlib.sha256(data).hexdigest()
