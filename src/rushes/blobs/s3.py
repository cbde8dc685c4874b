"""Blobs in a bucket of any S3: immutable files by hash, create-only documents, published names by copy.

Nothing that was read is believed before its hash is: a short or flipped answer is asked for again, then called damaged.
"""

import contextlib
import hashlib
import io
import os
import secrets
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, TypeVar

from obstore.exceptions import AlreadyExistsError
from obstore.store import S3Store

from rushes.blobs.names import blob_place, checked_key
from rushes.blobs.port import Blob, Part
from rushes.blobs.s3_door import connect, translated
from rushes.blobs.s3_place import Place
from rushes.blobs.scratch import Scratch
from rushes.domain.errors import DamagedBlob, StoreAway
from rushes.telemetry import effect

_PART = 8 << 20  # of a multipart upload: four at a time took 42 MB for 300 MB, one PUT 514
_PARTS = 9_000  # S3 allows 10,000
_SMALL = _PART  # read and written whole
_COPIED = 5 << 30  # S3 copies no more in one request
_YOUNG = 3600.0  # seconds; an older blob is stored again so that gc, which waits a day, leaves it alone
_TRIES = 3  # of what came damaged or in conflict
T = TypeVar("T")


class S3Blobs:
    """A bucket (or a prefix of one); `local` and large reads go through a bounded scratch folder."""

    def __init__(self, place: Place, scratch: Path, most: int = 10 << 30) -> None:
        """`scratch` is a folder of this machine, of which `most` bytes may be used."""
        self._place = place
        self._store: S3Store = connect(place)
        self._scratch = Scratch(scratch, most)

    def put(self, owner: str, source: Path | bytes) -> Blob:
        """As the port says."""
        blob_place(owner, "0" * 64)
        data, blob = _measured(source)
        key = blob_place(owner, blob.sha256)
        with effect("blob"):
            if not self._is_young(key, blob.size):
                self._upload(key, source if data is None else data, blob)
        return blob

    def size(self, owner: str, sha256: str) -> int | None:
        """As the port says."""
        found = self._head(blob_place(owner, sha256))
        return None if found is None else found[0]

    def age(self, owner: str, sha256: str) -> float | None:
        """As the port says."""
        found = self._head(blob_place(owner, sha256))
        return None if found is None else found[1]

    def open(self, owner: str, sha256: str) -> BinaryIO:
        """As the port says; a small blob is read whole, a large one through scratch: both are verified."""
        size = self._there(owner, sha256)
        if size <= _SMALL:
            return io.BytesIO(_tried(lambda: self._read_blob(owner, sha256)))
        return self._local(owner, sha256, size).open("rb")

    def local(self, owner: str, sha256: str) -> Path:
        """As the port says."""
        return self._local(owner, sha256, self._there(owner, sha256))

    def sound(self, owner: str, sha256: str) -> bool:
        """As the port says."""
        try:
            _tried(lambda: self._fetch(owner, sha256, None))
        except DamagedBlob:
            return False
        return True

    def quarantine(self, owner: str, sha256: str) -> None:
        """As the port says; a bucket can only look just before."""
        key = blob_place(owner, sha256)
        self._scratch.drop(f"{owner}-{sha256}")
        with effect("drop"), translated("setting a blob aside"), contextlib.suppress(FileNotFoundError):
            if not self.sound(owner, sha256):
                self._copy(key, f".quarantine/{owner}/{sha256}.{secrets.token_hex(4)}")
                self._store.delete(key)

    def drop(self, owner: str, sha256: str, older: float = 0.0) -> bool:
        """As the port says; a bucket can only look just before."""
        key = blob_place(owner, sha256)
        found = self._head(key)
        if found is None or found[1] < older:
            return False
        self._delete(key)
        self._scratch.drop(f"{owner}-{sha256}")
        return True

    def create(self, key: str, data: bytes) -> bool:
        """As the port says. A refusal is our own success if what is there carries our token: the answer was lost."""
        token = secrets.token_hex(8)
        labels = {"sha256": hashlib.sha256(data).hexdigest(), "token": token}
        with effect("manifest"):
            for _ in range(_TRIES):
                with translated(f"creating {key}"), contextlib.suppress(AlreadyExistsError):
                    self._store.put(checked_key(key), data, mode="create", attributes=labels)
                    return True
                if found := self._document(key):
                    return found[1] == token
        raise StoreAway(f"creating {key}: other processes keep creating and deleting it")

    def read(self, key: str) -> bytes | None:
        """As the port says."""
        found = self._document(checked_key(key))
        return None if found is None else found[0]

    def part(self, key: str, start: int, end: int) -> Part | None:
        """As the port says; a part cannot be verified, so only players read by parts."""
        with translated(f"reading {key}"), contextlib.suppress(FileNotFoundError):
            meta = self._store.head(checked_key(key))
            end = min(end, meta["size"])
            data = bytes(self._store.get_range(key, start=start, end=end)) if start < end else b""
            return Part(data, meta["size"], (meta["e_tag"] or "").strip('"'))
        return None

    def remove(self, key: str, was: bytes | None = None) -> None:
        """As the port says; a bucket can only look just before."""
        if was is None or self._is_still(checked_key(key), was):
            self._delete(checked_key(key))

    def keys(self, prefix: str) -> Iterator[str]:
        """As the port says."""
        folder = prefix.rpartition("/")[0]
        with translated("listing keys"):
            found = [meta["path"] for page in self._store.list(folder or None) for meta in page]
        # SeaweedFS lists what is in b/ before b-d, and a prefix of S3Store is a folder, not a beginning
        return iter(sorted(key for key in found if key.startswith(prefix) and not key.startswith(".")))

    def publish(self, name: str, owner: str, sha256: str) -> None:
        """As the port says."""
        key = blob_place(owner, sha256)
        with effect("publish"), translated(f"publishing {checked_key(name)}"):
            try:
                self._copy(key, name)
            except FileNotFoundError as e:
                raise DamagedBlob(f"blob {sha256[:12]} is missing") from e

    def address(self, name: str) -> str:
        """As the port says."""
        return f"{self._place.url}/{checked_key(name)}"

    def room(self) -> int | None:
        """Free bytes where copies lie: work needs them, the bucket has no end."""
        return self._scratch.room()

    def tidy(self) -> int:
        """As the port says."""
        return self._scratch.tidy()

    def _there(self, owner: str, sha256: str) -> int:
        size = self.size(owner, sha256)
        if size is None:
            raise DamagedBlob(f"blob {sha256[:12]} is missing")
        return size

    def _head(self, key: str) -> tuple[int, float] | None:
        """Size and age."""
        with translated("looking at a blob"), contextlib.suppress(FileNotFoundError):
            meta = self._store.head(key)
            return meta["size"], max(0.0, (datetime.now(UTC) - meta["last_modified"]).total_seconds())
        return None

    def _is_young(self, key: str, size: int) -> bool:
        found = self._head(key)
        return found is not None and found[0] == size and found[1] < _YOUNG

    def _upload(self, key: str, source: Path | bytes, blob: Blob) -> None:
        labels = {"sha256": blob.sha256}
        with translated("storing a blob"):
            if isinstance(source, bytes):
                self._store.put(key, source, attributes=labels, use_multipart=False)
            else:
                part = max(_PART, blob.size // _PARTS + 1)
                pieces = _pieces(source, blob, part)
                self._store.put(key, pieces, attributes=labels, chunk_size=part, max_concurrency=4)

    def _local(self, owner: str, sha256: str, size: int) -> Path:
        name = f"{owner}-{sha256}"
        return _tried(lambda: self._scratch.copy(name, size, lambda file: self._fetch(owner, sha256, file)))

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
            with translated("reading a blob"):
                for piece in self._store.get(blob_place(owner, sha256)).stream(1 << 20):
                    digest.update(piece)
                    if to is not None:
                        to.write(piece)
        except FileNotFoundError as e:
            raise DamagedBlob(f"blob {sha256[:12]} is missing") from e
        if digest.hexdigest() != sha256:
            raise DamagedBlob(f"blob {sha256[:12]} does not match its hash")

    def _document(self, key: str) -> tuple[bytes, str] | None:
        """A small document and the token of who created it."""
        return _tried(lambda: self._read_document(key))

    def _read_document(self, key: str) -> tuple[bytes, str] | None:
        try:
            with translated(f"reading {key}"):
                answer = self._store.get(key)
                data, labels = bytes(answer.bytes()), answer.attributes
        except FileNotFoundError:
            return None
        if hashlib.sha256(data).hexdigest() != labels.get("sha256", hashlib.sha256(data).hexdigest()):
            raise DamagedBlob(f"{key} does not match what was written")
        return data, labels.get("token", "")

    def _is_still(self, key: str, was: bytes) -> bool:
        with translated(f"reading {key}"), contextlib.suppress(FileNotFoundError):
            return bytes(self._store.get(key).bytes()) == was
        return False

    def _delete(self, key: str) -> None:
        with effect("drop"), translated(f"deleting {key}"), contextlib.suppress(FileNotFoundError):
            self._store.delete(key)

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
