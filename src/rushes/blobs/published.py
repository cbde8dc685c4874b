"""The published names of a result: making them, and finding those that are missing or hold other bytes."""

import hashlib
from pathlib import Path

from rushes.blobs.documents import address
from rushes.blobs.port import Blobs
from rushes.domain.result import Artifact, Manifest

_BLOCK = 8 * 2**20  # bytes that are read at once


def publish_names(blobs: Blobs, owner: str, manifest: Manifest) -> None:
    """Give every artifact of a result the name it asked for; repeatable.

    Raises:
        DamagedBlob: a blob is missing.
    """
    for artifact in manifest.artifacts:
        if artifact.publish:
            blobs.publish(artifact.publish, owner, artifact.sha256)


def missing_names(blobs: Blobs, manifest: Manifest) -> list[str]:
    """Its names that nothing has; cheap, for pages and checks of many."""
    return [a.publish for a in manifest.artifacts if a.publish and blobs.read(a.publish, 0, 0) is None]


def wrong_names(blobs: Blobs, owner: str, manifest: Manifest) -> list[str]:
    """Its names that are missing, or hold what is no blob of this owner; reads what is not a link to the blob."""
    return [a.publish for a in manifest.artifacts if a.publish and not _has_name(blobs, owner, a, a.publish)]


def _has_name(blobs: Blobs, owner: str, artifact: Artifact, name: str) -> bool:
    """Two takes of a video share names: the bytes of any other blob are right as well."""
    if blobs.read(name, 0, 0) is None:
        return False
    if str(blobs.folder) == blobs.root and Path(address(blobs, name)).samefile(blobs.local(owner, artifact.sha256)):
        return True
    found = _sha256_of(blobs, name)
    return found == artifact.sha256 or blobs.stat(owner, found) is not None


def _sha256_of(blobs: Blobs, name: str) -> str:
    digest, at = hashlib.sha256(), 0
    while (part := blobs.read(name, at, at + _BLOCK)) and part.data:
        digest.update(part.data)
        at += len(part.data)
    return digest.hexdigest()
