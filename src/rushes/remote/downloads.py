"""A file as a server sends it: bytes one after the other, or the address at which they are read."""

import hashlib
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any, BinaryIO

from rushes.domain.errors import StoreAway

_SECONDS = 60.0  # without a byte
_PIECE = 1 << 20


def write_chunks(file: BinaryIO, first: Any, more: Iterator[Any]) -> str:
    """Write all of it into a file; the hash of what came.

    Raises:
        StoreAway: it does not come, or not whole.
    """
    digest, size = hashlib.sha256(), 0
    pieces = _fetched(first.address) if first.address else (part.data for part in _chain(first, more))
    for piece in pieces:
        digest.update(piece)
        size += len(piece)
        file.write(piece)
    if size != first.size:
        raise StoreAway(f"{size} bytes arrived instead of {first.size}")
    return digest.hexdigest()


def _chain(first: Any, more: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from more


def _fetched(address: str) -> Iterator[bytes]:
    if not address.startswith(("http://", "https://")):
        raise StoreAway("the server returned an address that cannot be read")
    try:
        with urllib.request.urlopen(address, timeout=_SECONDS) as answer:  # noqa: S310 - checked above
            while piece := answer.read(_PIECE):
                yield piece
    except (OSError, urllib.error.URLError) as e:
        raise StoreAway(f"reading a signed address: {type(e).__name__}") from e
