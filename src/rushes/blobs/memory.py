"""Blobs in memory: the model that other stores are compared with, for tests and dry runs."""

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

from rushes.blobs.names import blob_place, checked_key
from rushes.blobs.port import Blob, Part
from rushes.domain.errors import DamagedBlob
from rushes.telemetry import effect


class MemoryBlobs:
    """A dictionary of keys; `local` copies into a scratch folder that goes with the store."""

    def __init__(self) -> None:
        self._bytes: dict[str, bytes] = {}
        self._aside: dict[str, bytes] = {}
        self._stored: dict[str, float] = {}
        self._lock = threading.Lock()
        self._scratch = Path(tempfile.mkdtemp(prefix="rushes-blobs-"))
        weakref.finalize(self, shutil.rmtree, self._scratch, ignore_errors=True)

    def put(self, owner: str, source: Path | bytes) -> Blob:
        """As the port says."""
        data = source if isinstance(source, bytes) else source.read_bytes()
        sha256 = hashlib.sha256(data).hexdigest()
        key = blob_place(owner, sha256)
        with effect("blob"), self._lock:
            if key not in self._bytes or len(self._bytes[key]) != len(data):  # crash leftovers are put right
                self._bytes[key] = data
            self._stored[key] = time.monotonic()
        return Blob(sha256, len(data))

    def size(self, owner: str, sha256: str) -> int | None:
        """As the port says."""
        data = self._bytes.get(blob_place(owner, sha256))
        return None if data is None else len(data)

    def age(self, owner: str, sha256: str) -> float | None:
        """As the port says."""
        key = blob_place(owner, sha256)
        return time.monotonic() - self._stored[key] if key in self._bytes else None

    def open(self, owner: str, sha256: str) -> BinaryIO:
        """As the port says."""
        return io.BytesIO(self._blob(owner, sha256))

    def local(self, owner: str, sha256: str) -> Path:
        """As the port says."""
        path = self._scratch / f"{owner}-{sha256}"
        path.write_bytes(self._blob(owner, sha256))
        return path

    def sound(self, owner: str, sha256: str) -> bool:
        """As the port says."""
        data = self._bytes.get(blob_place(owner, sha256))
        return data is not None and hashlib.sha256(data).hexdigest() == sha256

    def quarantine(self, owner: str, sha256: str) -> None:
        """As the port says."""
        key = blob_place(owner, sha256)
        with self._lock:
            data = self._bytes.get(key)
            if data is not None and hashlib.sha256(data).hexdigest() != sha256:
                self._aside[key] = self._bytes.pop(key)

    def drop(self, owner: str, sha256: str, older: float = 0.0) -> bool:
        """As the port says."""
        key = blob_place(owner, sha256)
        with self._lock:
            if key not in self._bytes or time.monotonic() - self._stored[key] < older:
                return False
            del self._bytes[key]
            return True

    def create(self, key: str, data: bytes) -> bool:
        """As the port says."""
        with effect("manifest"), self._lock:
            if checked_key(key) in self._bytes:
                return False
            self._bytes[key] = data
            return True

    def read(self, key: str) -> bytes | None:
        """As the port says."""
        return self._bytes.get(checked_key(key))

    def part(self, key: str, start: int, end: int) -> Part | None:
        """As the port says."""
        data = self._bytes.get(checked_key(key))
        return None if data is None else Part(data[start:end], len(data), hashlib.sha256(data).hexdigest())

    def remove(self, key: str, was: bytes | None = None) -> None:
        """As the port says."""
        with self._lock:
            if was is None or self._bytes.get(checked_key(key)) == was:
                self._bytes.pop(checked_key(key), None)

    def keys(self, prefix: str) -> Iterator[str]:
        """As the port says."""
        with self._lock:
            found = sorted(key for key in self._bytes if key.startswith(prefix))
        return iter(found)

    def publish(self, name: str, owner: str, sha256: str) -> None:
        """As the port says."""
        data = self._blob(owner, sha256)
        with effect("publish"), self._lock:
            self._bytes[checked_key(name)] = data

    def address(self, name: str) -> str:
        """As the port says."""
        return f"memory:{checked_key(name)}"

    def room(self) -> int | None:
        """As the port says."""
        return None

    def tidy(self) -> int:
        """As the port says."""
        return 0

    def _blob(self, owner: str, sha256: str) -> bytes:
        data = self._bytes.get(blob_place(owner, sha256))
        if data is None:
            raise DamagedBlob(f"blob {sha256[:12]} is missing")
        return data
