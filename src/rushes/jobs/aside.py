"""Setting a result aside because it is damaged: row, manifest, then blobs; afterwards it is made again."""

from collections.abc import Iterable

from rushes.blobs.manifests import read_manifest
from rushes.blobs.port import Blobs
from rushes.domain.errors import DamagedBlob
from rushes.domain.keys import manifest_key
from rushes.ledger.port import Ledger


def put_aside(ledger: Ledger, blobs: Blobs, owner: str, key: str, what: str, bad: Iterable[str]) -> None:
    """Take a damaged result out of the way; `bad` are the hashes of its damaged blobs. Repeatable."""
    ledger.set_aside(owner, [key], f"damaged: {what}")
    blobs.remove(manifest_key(owner, key))
    for sha256 in bad:
        blobs.quarantine(owner, sha256)


def damaged_blobs(blobs: Blobs, owner: str, key: str) -> tuple[str, ...]:
    """The hashes of a result's blobs that are missing or damaged; none if its manifest is."""
    try:
        manifest = read_manifest(blobs, owner, key)
    except DamagedBlob:
        return ()
    return tuple(a.sha256 for a in manifest.artifacts if not blobs.sound(owner, a.sha256))
