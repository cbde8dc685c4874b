"""Objects that are written only if they still are what the writer saw: what many machines agree by."""

import contextlib
import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from obstore.exceptions import AlreadyExistsError, PreconditionError
from obstore.store import GCSStore, ObjectStore

from rushes.bucket.client import connect, translate_errors
from rushes.bucket.location import BucketLocation
from rushes.domain.errors import StoreAway, WrongHome
from rushes.telemetry import effect

_NONCE = "nonce"  # the label by which a write is recognised when its answer was lost
WRITER = "writer"  # the label of one who writes an object again and again, and alone
_SUM = "sha256"  # the label by which a body that was damaged on its way is recognised
_TRIES = 5  # of a write that met another (409) and changed nothing, and of a read that came damaged
_GENERATION = "#"  # between an ETag and the generation of it
_REFUSALS = (AlreadyExistsError, PreconditionError, FileNotFoundError)


@dataclass(frozen=True, slots=True)
class StoredObject:
    """What is stored under a key, the ETag of this version (see `listed`), and its labels."""

    data: bytes
    etag: str
    labels: Mapping[str, str] = field(default_factory=dict)


def listed(etag: str) -> str:
    """An ETag as a list of the bucket tells it: without the generation that Google asks for in conditional writes."""
    return etag.partition(_GENERATION)[0]


class ConditionalBucket:
    """Compare and swap by version: If-Match and If-None-Match of S3 and Azure, the generation of Google."""

    def __init__(self, store: ObjectStore, root: str = "") -> None:
        """`root` is how people call what the keys are below."""
        self._store, self._root = store, root

    @staticmethod
    def at(location: BucketLocation) -> "ConditionalBucket":
        """The bucket (or prefix of one) at a location."""
        return ConditionalBucket(connect(location), f"{location.url}/")

    def list(self, prefix: str) -> dict[str, str]:
        """Every key below a prefix, with its ETag."""
        with translate_errors(f"listing {self._root}{prefix}"):
            found = [meta for page in self._store.list(prefix) for meta in page]
        return {meta["path"]: meta["e_tag"] or "" for meta in found}

    def get(self, key: str, *, body: bool = True) -> StoredObject | None:
        """What is there, None if nothing is; without its `body` if only ETag and labels are wanted.

        Raises:
            WrongHome: it does not have the checksum that was stored with it.
        """
        for _ in range(_TRIES):
            found = self._get(key, body=body)
            wanted = found.labels.get(_SUM) if found and body else None
            if not found or not wanted or _sum(found.data) == wanted:
                return found
        raise WrongHome(f"{key} is damaged", "Restore an earlier version of this object in the bucket.")

    def _get(self, key: str, *, body: bool) -> StoredObject | None:
        with translate_errors(f"reading {self._root}{key}"), contextlib.suppress(FileNotFoundError):
            answer = self._store.get(key, options={} if body else {"head": True})
            data = bytes(answer.bytes()) if body else b""
            labels = {name: value for name, value in answer.attributes.items() if isinstance(name, str)}
            return StoredObject(data, self._version(answer.meta), labels)
        return None

    def swap(self, key: str, data: bytes, was: str, labels: Mapping[str, str], point: str) -> str | None:
        """Write if the ETag is still the one that `was` there ("": nothing); the new ETag, None if it is another.

        A refusal of what we wrote ourselves, because its answer was lost on the way, is a success. An earlier write
        with the same label WRITER is ours as well, and is written over.
        """
        nonce, writer = secrets.token_hex(8), labels.get(WRITER)
        attributes = {**labels, _NONCE: nonce, _SUM: _sum(data)}
        for _ in range(_TRIES):
            etag = self._put(key, data, was, attributes, point)
            if etag is not None:
                return etag
            there = self.get(key, body=False)
            if there and there.labels.get(_NONCE) == nonce:
                return there.etag
            if there and writer and there.labels.get(WRITER) == writer:
                was = there.etag
            elif (there.etag if there else "") != was:
                return None
        raise StoreAway(f"writing {key}: refused repeatedly, although nothing changed it")

    def _put(self, key: str, data: bytes, was: str, attributes: Mapping[str, str], point: str) -> str | None:
        """None if it was refused: by its condition, or because two writes met."""
        etag, _, generation = was.partition(_GENERATION)
        mode: Any = {"e_tag": etag, **({"version": generation} if generation else {})} if was else "create"
        with effect(point), translate_errors(f"writing {self._root}{key}"):
            try:
                return self._version(
                    self._store.put(key, data, mode=mode, attributes=dict(attributes), use_multipart=False)
                )
            except _REFUSALS as e:
                if "NoSuchBucket" in str(e):
                    raise
        return None

    def _version(self, meta: Any) -> str:
        generation = meta["version"] if isinstance(self._store, GCSStore) else ""
        return f"{meta['e_tag'] or ''}{_GENERATION}{generation}" if generation else meta["e_tag"] or ""

    def delete(self, key: str, point: str) -> None:
        """Delete it; no error if it is missing."""
        with effect(point), translate_errors(f"deleting {self._root}{key}"), contextlib.suppress(FileNotFoundError):
            self._store.delete(key)


def _sum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
