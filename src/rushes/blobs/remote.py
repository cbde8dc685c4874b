"""The blobs of one task, for a worker without credentials: its inputs and what it makes, by the token of its lease.

What comes is verified by its hash, and kept in a bounded folder of this machine.
"""

import hashlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from rushes.blobs.local_cache import LocalCache
from rushes.blobs.port import Blob, ByteRange
from rushes.domain.errors import DamagedBlob
from rushes.domain.result import Result
from rushes.remote.client import CHUNK_BYTES, RemoteServer, patiently
from rushes.remote.downloads import write_chunks
from rushes.remote.generated import workers_pb2 as pb
from rushes.remote.messages import unpack
from rushes.telemetry import effect


class RemoteBlobs:
    """An AttemptBlobs."""

    def __init__(self, server: RemoteServer, cache: LocalCache, token: str) -> None:
        self._server, self._cache, self._token = server, cache, token

    @property
    def folder(self) -> Path:
        return self._cache.folder

    def put(self, owner: str, source: Path | bytes) -> Blob:  # noqa: ARG002 - the task has one
        with _opened(source) as file:
            blob = _measured(file)
            with effect("blob"):
                patiently(lambda: self._server.write("WriteBlob", self._parts(blob, file)))
        return blob

    def open(self, owner: str, sha256: str) -> BinaryIO:
        return self.local(owner, sha256).open("rb")

    def local(self, owner: str, sha256: str) -> Path:  # noqa: ARG002
        asked = pb.ReadBlobRequest(task_token=self._token, sha256=sha256)
        return patiently(lambda: self._copy(sha256, self._server.read("ReadBlob", asked)))

    def create(self, key: str, data: bytes) -> bool:
        with effect("manifest"):
            return bool(patiently(lambda: self._create(_result_key(key), data)))

    def read(self, key: str, start: int = 0, end: int | None = None) -> ByteRange | None:
        """Manifests of the task's inputs alone."""
        asked = pb.ReadManifestRequest(task_token=self._token, key=_result_key(key))
        data = patiently(lambda: b"".join(part.data for part in self._server.read("ReadManifest", asked)))
        return ByteRange(data[start:end], len(data), hashlib.sha256(data).hexdigest()) if data else None

    def adopt(self, _owner: str, key: str) -> Result | None:
        """The result that was committed before, if all of it is sound."""
        asked = pb.AdoptRequest(task_token=self._token, key=key)
        reply = patiently(lambda: self._server.call("Adopt", asked, 600.0))
        return unpack(Result, reply.result) if reply.HasField("result") else None

    def _create(self, key: str, data: bytes) -> bool:
        parts = [data[at : at + CHUNK_BYTES] for at in range(0, max(1, len(data)), CHUNK_BYTES)]
        told = (pb.CreateManifestRequest(task_token=self._token, key=key, data=part) for part in parts)
        return bool(self._server.write("CreateManifest", told).created)

    def _parts(self, blob: Blob, file: BinaryIO) -> Iterator[Any]:
        file.seek(0)
        yield pb.WriteBlobRequest(task_token=self._token, sha256=blob.sha256, size=blob.size)
        while data := file.read(CHUNK_BYTES):
            yield pb.WriteBlobRequest(data=data)

    def _copy(self, sha256: str, parts: Iterator[Any]) -> Path:
        first = next(parts, None)
        if first is None:
            raise DamagedBlob(f"blob {sha256[:12]} is missing")
        return self._cache.copy(sha256, first.size, lambda file: self._fill(file, sha256, first, parts))

    def _fill(self, file: BinaryIO, sha256: str, first: Any, parts: Iterator[Any]) -> None:
        if write_chunks(file, first, parts) != sha256:
            raise DamagedBlob(f"blob {sha256[:12]} arrived with the wrong content")


def _measured(file: BinaryIO) -> Blob:
    digest, size = hashlib.sha256(), 0
    while data := file.read(CHUNK_BYTES):
        digest.update(data)
        size += len(data)
    return Blob(digest.hexdigest(), size)


def _result_key(key: str) -> str:
    return key.rpartition("/")[2].removesuffix(".json")


def _opened(source: Path | bytes) -> BinaryIO:
    return io.BytesIO(source) if isinstance(source, bytes) else source.open("rb")
