"""The worker's side: serves the requests of a slot about its own task, and no other."""

import contextlib
import fcntl
import os
import socket
import stat
import threading
from collections.abc import Callable
from pathlib import Path

from rushes.domain.errors import AnswerPending, NeverWorks
from rushes.domain.keys import JSON
from rushes.engines.wire import LARGEST
from rushes.files import READ
from rushes.worker.broker import channel
from rushes.worker.broker.attempt import Attempt
from rushes.worker.broker.failures import failure_of
from rushes.worker.broker.inference import Inference

Answer = tuple[JSON, int | None]  # and a descriptor, which is closed when it has been passed


class BrokerService:
    """Serves one slot, from a thread of its own: a store that hangs holds up nobody else."""

    def __init__(self, line: socket.socket, attempt: Callable[[], Attempt | None], inference: Inference) -> None:
        self._line, self._attempt, self._inference = line, attempt, inference
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def hang_up(self) -> None:
        """The slot is over: whoever still holds its line gets nothing of its task."""
        self._attempt = lambda: None
        self._inference.close()
        with contextlib.suppress(OSError):
            self._line.shutdown(socket.SHUT_RDWR)

    def _serve(self) -> None:
        with self._line, contextlib.suppress(EOFError, OSError, ValueError):
            while True:
                ask, given = channel.receive(self._line)
                reply, passed = self._answered(ask, given)
                try:
                    channel.send(self._line, reply, passed)
                finally:
                    if passed is not None:
                        os.close(passed)

    def _answered(self, ask: JSON, given: int | None) -> Answer:
        try:
            return self._do(ask, given)
        except Exception as e:  # noqa: BLE001 - whatever it is, the attempt fails of it and not the worker
            failure, attempt = failure_of(e), self._attempt()
            if attempt:
                attempt.told.add(failure["kind"])
                if isinstance(e, AnswerPending):
                    attempt.delay = min(attempt.delay or e.delay, e.delay)
            return {"failed": failure}, None
        finally:
            if given is not None:
                os.close(given)

    def _do(self, ask: JSON, given: int | None) -> Answer:
        attempt = self._attempt()
        with attempt.recorded(str(ask["verb"])) if attempt else contextlib.nullcontext():
            return self._done(ask, attempt, given)

    def _done(self, ask: JSON, attempt: Attempt | None, given: int | None) -> Answer:
        match (ask["verb"], attempt, given):
            case ("put", Attempt(), int()):
                blob = attempt.put(ask["owner"], readable_file(given))
                return {"sha256": blob.sha256, "size": blob.size}, None
            case ("open", Attempt(), None):
                return {}, os.open(attempt.local(ask["owner"], str(ask["sha256"])), READ)
            case ("original", Attempt(), None):
                return {}, attempt.open_original()
            case ("block", Attempt(), None):
                return {}, os.open(attempt.block(int(ask["number"])), READ)
            case ("infer", Attempt(), int()):
                call = passed_call(given)
                return {}, memory_file(self._inference.infer(attempt.lease, str(ask["capability"]), call))
            case ("commit", Attempt(), None):
                attempt.commit(ask["outputs"])
                self._inference.done(attempt.lease)
                return {}, None
        raise NeverWorks("the slot requested something that its task does not have")


def memory_file(data: bytes) -> int:
    """A descriptor from which these bytes are read."""
    file = os.memfd_create("answer")
    with os.fdopen(os.dup(file), "wb") as out:
        out.write(data)
    os.lseek(file, 0, os.SEEK_SET)
    return file


def readable_file(given: int) -> Path:
    """What the slot passed, as a file to store: the very file that it could read, whatever has its name by now.

    A descriptor that only names a file (O_PATH) proves no right to read it, and the worker must not lend its own.
    """
    flags = fcntl.fcntl(given, fcntl.F_GETFL)
    readable = not flags & os.O_PATH and flags & os.O_ACCMODE != os.O_WRONLY
    if not readable or not stat.S_ISREG(os.fstat(given).st_mode):
        raise NeverWorks("only a file that the slot can read can be stored")
    return Path(f"/proc/self/fd/{given}")


def passed_call(given: int) -> bytes:
    """The question in a file that the slot passed; its size is looked at before it is read.

    Raises:
        NeverWorks: it is too large, or grows meanwhile.
    """
    file, size = readable_file(given), os.fstat(given).st_size
    if size <= LARGEST:
        with file.open("rb") as opened:
            call = opened.read(size + 1)
        if len(call) <= size:
            return call
    raise NeverWorks("this is not a request for an inference service")
