"""Published names of a result: create them, and find those that are missing or changed."""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

from rushes.blobs.documents import address
from rushes.blobs.port import Blobs
from rushes.domain.result import Manifest

_BLOCK = 8 * 2**20  # bytes that are read at once
Names = Callable[[str, Manifest], Mapping[str, str]]  # (job, manifest) -> names, and the hash of what each names


def own_names(_job: str, manifest: Manifest) -> Mapping[str, str]:
    """The names that the artifacts of a result ask for."""
    return {a.publish: a.sha256 for a in manifest.artifacts if a.publish}


def publish_names(blobs: Blobs, owner: str, names: Mapping[str, str]) -> None:
    """Give blobs these names; repeatable.

    Raises:
        DamagedBlob: a blob is missing.
    """
    for name, sha256 in names.items():
        blobs.publish(name, owner, sha256)


def missing_names(blobs: Blobs, names: Mapping[str, str]) -> list[str]:
    """Those that nothing has; cheap, for pages and checks of many."""
    return [name for name in names if blobs.read(name, 0, 0) is None]


def wrong_names(blobs: Blobs, owner: str, names: Mapping[str, str]) -> list[str]:
    """Those that are missing, or hold what is no blob of this owner; reads what is not a link to the blob."""
    return [name for name, sha256 in names.items() if not _has_name(blobs, owner, sha256, name)]


def holds(blobs: Blobs, name: str, sha256: str) -> bool:
    """Whether a name holds exactly these bytes."""
    return blobs.read(name, 0, 0) is not None and _sha256_of(blobs, name) == sha256


def _has_name(blobs: Blobs, owner: str, sha256: str, name: str) -> bool:
    """Two takes of a video share names: the bytes of any other blob are right as well."""
    if blobs.read(name, 0, 0) is None:
        return False
    if str(blobs.folder) == blobs.root and Path(address(blobs, name)).samefile(blobs.local(owner, sha256)):
        return True
    found = _sha256_of(blobs, name)
    return found == sha256 or blobs.stat(owner, found) is not None


def _sha256_of(blobs: Blobs, name: str) -> str:
    digest, at = hashlib.sha256(), 0
    while (part := blobs.read(name, at, at + _BLOCK)) and part.data:
        digest.update(part.data)
        at += len(part.data)
    return digest.hexdigest()
