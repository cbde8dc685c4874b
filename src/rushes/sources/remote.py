"""The film of one task, for a worker without credentials: read block by block through its server."""

import hashlib
import io
import json
import os
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

from rushes.blobs.local_cache import LocalCache
from rushes.domain.video import Fingerprint
from rushes.files import READ
from rushes.remote.client import RemoteServer, patiently
from rushes.remote.downloads import write_chunks
from rushes.remote.generated import workers_pb2 as pb
from rushes.sources.ranges import RangedReader


class RemoteFilm:
    """A BlockOriginal; the server checks that it is still what was taken in, before each block."""

    def __init__(self, server: RemoteServer, cache: LocalCache, token: str) -> None:
        self._server, self._cache, self._token = server, cache, token

    @cached_property
    def _about(self) -> Any:
        asked = pb.DescribeOriginalRequest(task_token=self._token)
        return patiently(lambda: self._server.call("DescribeOriginal", asked))

    @property
    def name(self) -> str:
        """What people call it."""
        return str(self._about.name)

    @cached_property
    def taken_in(self) -> Fingerprint:
        """The version that is read."""
        return Fingerprint.from_json(json.loads(self._about.taken_in))

    @property
    def block_size(self) -> int:
        return int(self._about.block_size)

    def open(self) -> BinaryIO:
        """A seekable reader. Raises as `block`, while it is read."""
        opened = RangedReader(self.taken_in.size, self.block_size, lambda number: os.open(self.block(number), READ))
        return io.BufferedReader(opened, 1 << 16)

    def block(self, number: int) -> Path:
        """Raises SourceMissing, SourceChanged, StoreAway."""
        size = min(self.block_size, self.taken_in.size - number * self.block_size)
        version = hashlib.sha256(f"{self._about.taken_in}".encode()).hexdigest()[:32]
        return patiently(
            lambda: self._cache.copy(f"film-{version}-{number:06d}", size, lambda f: self._fill(f, number))
        )

    def _fill(self, file: BinaryIO, number: int) -> None:
        parts = self._server.read("ReadOriginal", pb.ReadOriginalRequest(task_token=self._token, block=number))
        write_chunks(file, next(parts), parts)
