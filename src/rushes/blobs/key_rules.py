"""Valid keys, owners and hashes of a blob store: none can lead out of it."""

import re

from rushes.domain.errors import Refused
from rushes.domain.keys import blob_key, is_owner, parse_blob_key

_SHA256 = re.compile(r"[0-9a-f]{64}")
_UNSAFE = re.compile(r"[\x00-\x1f\x7f\\]")
_LONGEST_PART = 200  # bytes; file systems allow 255, and temporary names need some
_LONGEST = 1024  # bytes, as on S3


def checked_blob_key(owner: str, sha256: str) -> str:
    """The key of a blob. Raises Refused if owner or hash are not what they say."""
    if not is_owner(owner):
        raise Refused(f"invalid owner: {owner!r}")
    if not _SHA256.fullmatch(sha256):
        raise Refused(f"invalid sha256: {sha256!r}")
    return blob_key(owner, sha256)


RESERVED_FOLDERS = ("blobs", "results", "clearing", "input", "jobs", "segments")  # what the store writes itself


def checked_key(key: str) -> str:
    """The key itself, if it may name a document or a published file. Raises Refused."""
    if not _is_key(key):
        raise Refused(f"invalid key: {key[:80]!r}")
    if key.startswith("blobs/"):
        raise Refused(f"blobs are named by their hash alone: {key[:80]!r}")
    return key


def stored_key(key: str) -> str:
    """The key itself, if it may name a blob, a document or a published file. Raises Refused."""
    if not key.startswith("blobs/"):
        return checked_key(key)
    try:
        return checked_blob_key(*parse_blob_key(key))
    except ValueError as error:
        raise Refused(f"invalid key: {key[:80]!r}") from error


def _is_key(key: str) -> bool:
    if _UNSAFE.search(key):
        return False
    try:
        parts = [part.encode() for part in key.split("/")]
    except UnicodeEncodeError:  # lone surrogates have no bytes
        return False
    shaped = all(part and not part.startswith(b".") and len(part) <= _LONGEST_PART for part in parts)
    return shaped and sum(map(len, parts)) + len(parts) <= _LONGEST
