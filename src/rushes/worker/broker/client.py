"""The slot's side: blobs and the original of its task, as its worker passes them."""

import io
import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from rushes.blobs.port import Blob
from rushes.domain.keys import JSON
from rushes.domain.video import Fingerprint
from rushes.sources.ranges import RangedReader
from rushes.worker.broker import channel
from rushes.worker.broker.failures import raise_failure


class BrokerClient:
    """Asks the worker, one question at a time."""

    def __init__(self, line: socket.socket) -> None:
        self._line, self._lock = line, threading.Lock()

    def ask(self, verb: str, file: int | None = None, **about: Any) -> tuple[JSON, int | None]:
        """The answer, and a descriptor if one came.

        Raises:
            RushesError: it failed there; what was raised there.
        """
        with self._lock:
            channel.send(self._line, {"verb": verb, **about}, file)
            reply, passed = channel.receive(self._line)
        if "failed" in reply:
            raise_failure(reply["failed"])
        return reply, passed

    def ask_file(self, verb: str, file: int | None = None, **about: Any) -> int:
        """A descriptor, to be closed by the caller. Raises as `ask`."""
        _, passed = self.ask(verb, file, **about)
        if passed is None:
            raise OSError("the worker passed no file")
        return passed


def post_by(client: BrokerClient, scratch: Path) -> Callable[[str, bytes], bytes]:
    """How a remote engine asks from a slot: the worker passes the call on, and the answer back."""

    def post(capability: str, call: bytes) -> bytes:
        with tempfile.TemporaryFile(dir=scratch) as file:
            file.write(call)
            file.flush()
            answer = client.ask_file("infer", capability=capability, file=file.fileno())
        with os.fdopen(answer, "rb") as read:
            return read.read()

    return post


@dataclass(frozen=True, slots=True)
class BorrowedBlobs:
    """The blobs of the task that runs now."""

    client: BrokerClient
    scratch: Path

    def put(self, owner: str, source: Path | bytes) -> Blob:
        """Store bytes or a file."""
        with self._opened(source) as file:
            reply, _ = self.client.ask("put", file.fileno(), owner=owner)
        return Blob(reply["sha256"], reply["size"])

    def open(self, owner: str, sha256: str) -> BinaryIO:
        """A seekable reader."""
        return os.fdopen(self.client.ask_file("open", owner=owner, sha256=sha256), "rb")

    def local(self, owner: str, sha256: str) -> Path:
        """A copy in the scratch."""
        with (
            self.open(owner, sha256) as source,
            tempfile.NamedTemporaryFile(dir=self.scratch, delete=False) as copy,
        ):
            shutil.copyfileobj(source, copy, 1 << 20)
            return Path(copy.name)

    def _opened(self, source: Path | bytes) -> BinaryIO:
        if isinstance(source, Path):
            return source.open("rb")
        file = tempfile.TemporaryFile(dir=self.scratch)  # noqa: SIM115 - the caller closes it
        file.write(source)
        file.flush()
        return file


@dataclass(frozen=True, slots=True)
class BorrowedOriginal:
    """The original of the task that runs now: opened by the worker, again each time, and checked by it."""

    name: str
    taken_in: Fingerprint
    block_size: int  # 0: it is passed whole
    client: BrokerClient

    def open(self) -> BinaryIO:
        """A seekable reader.

        Raises (while it is read as well, if it lies in a bucket):
            SourceMissing, SourceChanged: it is not there, or not what was taken in.
        """
        if not self.block_size:
            return os.fdopen(self.client.ask_file("original"), "rb")
        blocks = RangedReader(self.taken_in.size, self.block_size, lambda n: self.client.ask_file("block", number=n))
        return io.BufferedReader(blocks, 1 << 16)
