"""Blobs in a bucket of any S3: immutable files by hash, create-only documents, published names by copy.

Nothing that was read is believed before its hash is: a short or flipped answer is asked for again, then called damaged.
"""

import contextlib
import hashlib
import io
import os
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, TypeVar

from obstore.exceptions import AlreadyExistsError

from rushes.blobs.key_rules import checked_blob_key, checked_key, stored_key
from rushes.blobs.local_cache import LocalCache
from rushes.blobs.port import Blob, BlobStat, ByteRange
from rushes.bucket.client import connect, translate_errors
from rushes.bucket.location import BucketLocation
from rushes.domain.errors import DamagedBlob, StoreAway
from rushes.domain.keys import parse_blob_key
from rushes.telemetry import effect

_PART = 8 << 20  # of a multipart upload: four at a time took 42 MB for 300 MB, one PUT 514
_PARTS = 9_000  # S3 allows 10,000
_SMALL = _PART  # read and written whole
_COPIED = 5 << 30  # S3 copies no more in one request
_YOUNG = 3600.0  # seconds; an older blob is stored again so that gc, which waits a day, leaves it alone
_TRIES = 3  # of what came damaged or in conflict
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Document:
    """A small document, its ETag, and the token of who created it."""

    data: bytes
    version: str
    token: str


class S3Blobs:
    """A bucket (or a prefix of one); `local` and large reads go through a bounded local cache."""

    def __init__(self, location: BucketLocation, cache: Path, most: int = 10 << 30) -> None:
        """`cache` is a folder of this machine, of which `most` bytes may be used."""
        self._store = connect(location)
        self._cache = LocalCache(cache, most)
        self.root, self.folder = location.url, cache

    def put(self, owner: str, source: Path | bytes) -> Blob:
        checked_blob_key(owner, "0" * 64)
        data, blob = _measured(source)
        key = checked_blob_key(owner, blob.sha256)
        with effect("blob"):
            if not self._is_young(key, blob.size):
                self._upload(key, source if data is None else data, blob)
        return blob

    def stat(self, owner: str, sha256: str) -> BlobStat | None:
        return self._head(checked_blob_key(owner, sha256))

    def open(self, owner: str, sha256: str) -> BinaryIO:
        """A small blob is read whole, a large one through the cache: both are verified."""
        size = self._there(owner, sha256)
        if size <= _SMALL:
            return io.BytesIO(_tried(lambda: self._read_blob(owner, sha256)))
        return self._local(owner, sha256, size).open("rb")

    def local(self, owner: str, sha256: str) -> Path:
        return self._local(owner, sha256, self._there(owner, sha256))

    def verify(self, owner: str, sha256: str, *, quarantine: bool = False) -> bool:
        """A bucket can only look just before it sets a blob aside."""
        key = checked_blob_key(owner, sha256)
        try:
            _tried(lambda: self._fetch(owner, sha256, None))
        except DamagedBlob:
            if quarantine:
                self._cache.drop(f"{owner}-{sha256}")
                with effect("drop"), translate_errors("setting a blob aside"), contextlib.suppress(FileNotFoundError):
                    self._copy(key, f".quarantine/{owner}/{sha256}.{secrets.token_hex(4)}")
                    self._store.delete(key)
            return False
        return True

    def create(self, key: str, data: bytes) -> bool:
        """A refusal is our own success if what is there carries our token: the answer was lost."""
        token = secrets.token_hex(8)
        labels = {"sha256": hashlib.sha256(data).hexdigest(), "token": token}
        with effect("manifest"):
            for _ in range(_TRIES):
                with translate_errors(f"creating {self.root}/{key}"), contextlib.suppress(AlreadyExistsError):
                    self._store.put(checked_key(key), data, mode="create", attributes=labels)
                    return True
                if found := self._document(key):
                    return found.token == token
        raise StoreAway(f"creating {key}: other processes keep creating and deleting it")

    def read(self, key: str, start: int = 0, end: int | None = None) -> ByteRange | None:
        """A range cannot be verified, so only players read by ranges."""
        if end is None:
            found = self._document(checked_key(key))
            return None if found is None else ByteRange(found.data[start:], len(found.data), found.version)
        with translate_errors(f"reading {self.root}/{key}"), contextlib.suppress(FileNotFoundError):
            meta = self._store.head(checked_key(key))
            end = min(end, meta["size"])
            data = bytes(self._store.get_range(key, start=start, end=end)) if start < end else b""
            return ByteRange(data, meta["size"], (meta["e_tag"] or "").strip('"'))
        return None

    def delete(self, key: str, was: bytes | None = None, older: float = 0.0) -> bool:
        """A bucket can only look just before."""
        found = self._head(stored_key(key))
        if found is None or (older and found.age < older) or (was is not None and not self._is_still(key, was)):
            return False
        with effect("drop"), translate_errors(f"deleting {self.root}/{key}"), contextlib.suppress(FileNotFoundError):
            self._store.delete(key)
        if key.startswith("blobs/"):
            self._cache.drop("-".join(parse_blob_key(key)))
        return True

    def keys(self, prefix: str) -> Iterator[str]:
        folder = prefix.rpartition("/")[0]
        with translate_errors(f"listing {self.root}"):
            found = [meta["path"] for page in self._store.list(folder or None) for meta in page]
        # SeaweedFS lists what is in b/ before b-d, and a prefix of S3Store is a folder, not a beginning
        return iter(sorted(key for key in found if key.startswith(prefix) and not key.startswith(".")))

    def publish(self, name: str, owner: str, sha256: str) -> None:
        key = checked_blob_key(owner, sha256)
        with effect("publish"), translate_errors(f"publishing {checked_key(name)}"):
            try:
                self._copy(key, name)
            except FileNotFoundError as e:
                raise DamagedBlob(f"blob {sha256[:12]} is missing") from e

    def _there(self, owner: str, sha256: str) -> int:
        found = self.stat(owner, sha256)
        if found is None:
            raise DamagedBlob(f"blob {sha256[:12]} is missing")
        return found.size

    def _head(self, key: str) -> BlobStat | None:
        with translate_errors("checking a blob"), contextlib.suppress(FileNotFoundError):
            meta = self._store.head(key)
            return BlobStat(meta["size"], max(0.0, (datetime.now(UTC) - meta["last_modified"]).total_seconds()))
        return None

    def _is_young(self, key: str, size: int) -> bool:
        found = self._head(key)
        return found is not None and found.size == size and found.age < _YOUNG

    def _upload(self, key: str, source: Path | bytes, blob: Blob) -> None:
        labels = {"sha256": blob.sha256}
        with translate_errors("storing a blob"):
            if isinstance(source, bytes):
                self._store.put(key, source, attributes=labels, use_multipart=False)
            else:
                part = max(_PART, blob.size // _PARTS + 1)
                pieces = _pieces(source, blob, part)
                self._store.put(key, pieces, attributes=labels, chunk_size=part, max_concurrency=4)

    def _local(self, owner: str, sha256: str, size: int) -> Path:
        name = f"{owner}-{sha256}"
        return _tried(lambda: self._cache.copy(name, size, lambda file: self._fetch(owner, sha256, file)))

    def _read_blob(self, owner: str, sha256: str) -> bytes:
        file = io.BytesIO()
        self._fetch(owner, sha256, file)
        return file.getvalue()

    def _fetch(self, owner: str, sha256: str, to: BinaryIO | None) -> None:
        """Read all of a blob, piece by piece.

        Raises:
            DamagedBlob: it is not there, or has not the bytes that its name promises.
        """
        digest = hashlib.sha256()
        try:
            with translate_errors("reading a blob"):
                for piece in self._store.get(checked_blob_key(owner, sha256)).stream(1 << 20):
                    digest.update(piece)
                    if to is not None:
                        to.write(piece)
        except FileNotFoundError as e:
            raise DamagedBlob(f"blob {sha256[:12]} is missing") from e
        if digest.hexdigest() != sha256:
            raise DamagedBlob(f"blob {sha256[:12]} does not match its hash")

    def _document(self, key: str) -> _Document | None:
        return _tried(lambda: self._read_document(key))

    def _read_document(self, key: str) -> _Document | None:
        try:
            with translate_errors(f"reading {self.root}/{key}"):
                answer = self._store.get(key)
                data, labels = bytes(answer.bytes()), answer.attributes
                version = (answer.meta["e_tag"] or "").strip('"')
        except FileNotFoundError:
            return None
        if hashlib.sha256(data).hexdigest() != labels.get("sha256", hashlib.sha256(data).hexdigest()):
            raise DamagedBlob(f"{key} does not have the content that was written")
        return _Document(data, version, labels.get("token", ""))

    def _is_still(self, key: str, was: bytes) -> bool:
        with translate_errors(f"reading {self.root}/{key}"), contextlib.suppress(FileNotFoundError):
            return bytes(self._store.get(key).bytes()) == was
        return False

    def _copy(self, key: str, to: str) -> None:
        answer = self._store.head(key)
        if answer["size"] <= _COPIED:
            self._store.copy(key, to)
        else:
            whole = self._store.get(key)
            part = max(_PART, answer["size"] // _PARTS + 1)
            self._store.put(to, whole, attributes=whole.attributes, chunk_size=part, max_concurrency=4)


def _measured(source: Path | bytes) -> tuple[bytes | None, Blob]:
    """What a source holds: its bytes if they are few, and their name in any case."""
    if isinstance(source, bytes):
        return source, Blob(hashlib.sha256(source).hexdigest(), len(source))
    with source.open("rb") as file:
        if os.fstat(file.fileno()).st_size <= _SMALL:
            return _measured(file.read())
        return None, Blob(hashlib.file_digest(file, "sha256").hexdigest(), file.tell())


def _pieces(path: Path, blob: Blob, part: int) -> Iterator[bytes]:
    """A file piece by piece; a file that is not what it was ends the upload before it is anything."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(part):
            digest.update(piece)
            yield piece
    if digest.hexdigest() != blob.sha256:
        raise StoreAway(f"{path.name} changed while it was being stored")


def _tried(get: Callable[[], T]) -> T:
    """What came damaged is asked for again: the way may be at fault, not the store."""
    for _ in range(_TRIES - 1):
        with contextlib.suppress(DamagedBlob):
            return get()
    return get()
