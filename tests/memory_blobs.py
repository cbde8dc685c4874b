"""Blobs in memory: the model that the stores are compared with."""

import hashlib
import io
import shutil
import tempfile
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from rushes.blobs.key_rules import checked_blob_key, checked_key, stored_key
from rushes.blobs.port import Blob, BlobStat, ByteRange
from rushes.domain.errors import DamagedBlob
from rushes.telemetry import effect


class MemoryBlobs:
    """A dictionary of keys; `local` copies into a temporary folder that goes with the store."""

    root = "memory:"
    folder = None

    def __init__(self) -> None:
        self._bytes: dict[str, bytes] = {}
        self._quarantined: dict[str, bytes] = {}
        self._stored: dict[str, float] = {}
        self._lock = threading.Lock()
        self._copies = Path(tempfile.mkdtemp(prefix="rushes-blobs-"))
        weakref.finalize(self, shutil.rmtree, self._copies, ignore_errors=True)

    def put(self, owner: str, source: Path | bytes) -> Blob:
        data = source if isinstance(source, bytes) else source.read_bytes()
        sha256 = hashlib.sha256(data).hexdigest()
        key = checked_blob_key(owner, sha256)
        with effect("blob"), self._lock:
            if key not in self._bytes or len(self._bytes[key]) != len(data):  # crash leftovers are put right
                self._bytes[key] = data
            self._stored[key] = time.monotonic()
        return Blob(sha256, len(data))

    def stat(self, owner: str, sha256: str) -> BlobStat | None:
        key = checked_blob_key(owner, sha256)
        with self._lock:
            data = self._bytes.get(key)
            return None if data is None else BlobStat(len(data), time.monotonic() - self._stored[key])

    def open(self, owner: str, sha256: str) -> BinaryIO:
        return io.BytesIO(self._blob(owner, sha256))

    def local(self, owner: str, sha256: str) -> Path:
        path = self._copies / f"{owner}-{sha256}"
        path.write_bytes(self._blob(owner, sha256))
        return path

    def verify(self, owner: str, sha256: str, *, quarantine: bool = False) -> bool:
        key = checked_blob_key(owner, sha256)
        with self._lock:
            data = self._bytes.get(key)
            matches = data is not None and hashlib.sha256(data).hexdigest() == sha256
            if quarantine and data is not None and not matches:
                self._quarantined[key] = self._bytes.pop(key)
        return matches

    def create(self, key: str, data: bytes) -> bool:
        with effect("manifest"), self._lock:
            if checked_key(key) in self._bytes:
                return False
            self._bytes[key] = data
            return True

    def read(self, key: str, start: int = 0, end: int | None = None) -> ByteRange | None:
        data = self._bytes.get(checked_key(key))
        return None if data is None else ByteRange(data[start:end], len(data), hashlib.sha256(data).hexdigest())

    def delete(self, key: str, was: bytes | None = None, older: float = 0.0) -> bool:
        with self._lock:
            data = self._bytes.get(stored_key(key))
            kept = was not in (None, data) or (older and time.monotonic() - self._stored.get(key, 0.0) < older)
            if data is None or kept:
                return False
            del self._bytes[key]
            return True

    def keys(self, prefix: str) -> Iterator[str]:
        with self._lock:
            found = sorted(key for key in self._bytes if key.startswith(prefix))
        return iter(found)

    def publish(self, name: str, owner: str, sha256: str) -> None:
        data = self._blob(owner, sha256)
        with effect("publish"), self._lock:
            self._bytes[checked_key(name)] = data

    def _blob(self, owner: str, sha256: str) -> bytes:
        data = self._bytes.get(checked_blob_key(owner, sha256))
        if data is None:
            raise DamagedBlob(f"blob {sha256[:12]} is missing")
        return data
