"""Documents with at most one descriptor each, over a pair of sockets."""

import contextlib
import json
import os
import socket
import struct
from collections.abc import Callable

from rushes.domain.keys import JSON

_HEAD = struct.Struct("!Q")
_CLOSED_ON_EXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
_LONGEST = 32 << 20  # bytes of a document: a commit of 100 000 artifacts has 20 MB


def send(line: socket.socket, doc: JSON, file: int | None = None) -> None:
    """Send a document and, with it, a descriptor. Raises OSError."""
    data = json.dumps(doc).encode()
    socket.send_fds(line, [_HEAD.pack(len(data))], [] if file is None else [file])
    line.sendall(data)


def receive(line: socket.socket, look: Callable[[], None] = lambda: None) -> tuple[JSON, int | None]:
    """The next document, and the descriptor that came with it, now the caller's.

    `look` is called whenever the line was silent for its timeout, and between parts; what it raises ends the waiting.

    Raises:
        EOFError: the other side is gone.
        OSError, ValueError: what came cannot be read.
    """
    head, file = _begun(line, look)
    try:
        (length,) = _HEAD.unpack(head + _exactly(line, _HEAD.size - len(head), look) if head else _gone())
        return json.loads(_exactly(line, length, look)), file
    except BaseException:
        if file is not None:
            os.close(file)
        raise


def _begun(line: socket.socket, look: Callable[[], None]) -> tuple[bytes, int | None]:
    while True:
        look()
        with contextlib.suppress(TimeoutError):
            head, files, _, _ = socket.recv_fds(line, _HEAD.size, 1, _CLOSED_ON_EXEC)
            return head, files[0] if files else None


def _exactly(line: socket.socket, length: int, look: Callable[[], None]) -> bytes:
    if length > _LONGEST:
        raise ValueError(f"a document of {length} bytes")
    data = bytearray()
    while len(data) < length:
        look()
        with contextlib.suppress(TimeoutError):
            data += line.recv(min(length - len(data), 1 << 20)) or _gone()
    return bytes(data)


def _gone() -> bytes:
    raise EOFError
