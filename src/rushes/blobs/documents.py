"""Documents and published names of a blob store, on top of its port."""

from rushes.blobs.key_rules import checked_key
from rushes.blobs.port import AttemptBlobs, Blobs


def read_document(blobs: AttemptBlobs, key: str) -> bytes | None:
    """The document's bytes, None if it is missing. Raises as `Blobs.read`."""
    found = blobs.read(key)
    return None if found is None else found.data


def address(blobs: Blobs, name: str) -> str:
    """Where a published name is found: a path or a URL."""
    return f"{blobs.root}/{checked_key(name)}"
