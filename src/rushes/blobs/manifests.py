"""Reading and creating manifests: from the key of a result to the document that names its artifacts."""

import json

from rushes.blobs.documents import read_document
from rushes.blobs.port import AttemptBlobs, Blobs
from rushes.domain.errors import DamagedBlob
from rushes.domain.keys import manifest_key
from rushes.domain.result import Manifest


def read_manifest(blobs: AttemptBlobs, owner: str, key: str) -> Manifest:
    """The manifest of a result.

    Raises:
        DamagedBlob: it is missing or damaged.
    """
    data = read_document(blobs, manifest_key(owner, key))
    if data is None:
        raise DamagedBlob(f"the manifest of result {key} is missing")
    return parse_manifest(data, key)


def written(blobs: Blobs, name: str) -> bytes | None:
    """A manifest as it is written, None if it is missing; nothing of one that a bucket cannot give back."""
    try:
        return read_document(blobs, name)
    except DamagedBlob:
        return b""


def parse_manifest(data: bytes, key: str) -> Manifest:
    """The manifest that these bytes are; `key` is its result's, or its own in the store.

    Raises:
        DamagedBlob: they are none, or that of another result.
    """
    try:
        manifest = Manifest.from_json(json.loads(data))
    except (ValueError, KeyError, TypeError) as e:
        raise DamagedBlob(f"the manifest of result {key} is damaged") from e
    if manifest.key != key.rpartition("/")[2].removesuffix(".json"):
        raise DamagedBlob(f"the manifest of result {key} belongs to {str(manifest.key)[:80]!r}")
    return manifest
