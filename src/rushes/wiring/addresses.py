"""Files by URL (s3://bucket/key, gs://, az://), read and written whole with the credentials of the settings."""

import contextlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from rushes.bucket.location import BucketLocation, parse_location
from rushes.domain.errors import NotFound, OverLimit, Refused
from rushes.settings import Settings
from rushes.wiring.setup import needed

_BLOCK = 8 << 20


def fetch(s: Settings, address: str, target: Path, most: int, check: Callable[[], None]) -> None:
    """Copy what lies at an address into a file; `check` is called again and again, and may end it.

    Raises:
        NotFound, OverLimit: it is not there, or has more than so many bytes.
        StoreAway: the bucket does not answer.
    """
    bucket, key = _split(s, address)
    with needed("s3"):
        from rushes.bucket.client import connect, translate_errors
    with translate_errors("reading a film"):
        try:
            found = connect(bucket).get(key)
        except FileNotFoundError as e:
            raise NotFound(f"there is no file at {address}", "Check the address.") from e
        if found.meta["size"] > most:
            raise OverLimit(f"{address} has more than {most} bytes")
        with target.open("wb") as file:
            for block in found.stream(min_chunk_size=_BLOCK):
                check()
                file.write(block)


def store(s: Settings, file: Path, address: str) -> None:
    """Put a file at an address.

    Raises:
        Refused: something lies there.
        StoreAway: the bucket does not answer.
    """
    bucket, key = _split(s, address)
    with needed("s3"):
        from rushes.bucket.client import connect, translate_errors
    with translate_errors("storing a film"):
        client = connect(bucket)
        with contextlib.suppress(FileNotFoundError):
            client.head(key)
            raise Refused(f"{address} already exists", "Choose another address, or delete it.")
        client.put(key, file)  # in parts, which know no condition


def _split(s: Settings, address: str) -> tuple[BucketLocation, str]:
    """The bucket, with the credentials of the settings, and the key."""
    location = parse_location(address, s.s3_endpoint, s.s3_key, s.s3_secret)
    if not location.prefix:
        raise Refused(f"{address[:200]!r} does not name a file", "Write it as s3://bucket/key.")
    return replace(location, prefix=""), location.prefix
