"""What a worker of one's own tells of an attempt: written to a file first, sent as soon as a server takes it.

Output survives an outage of the server, and a crash of the worker that is started again with the same file. What is
sent again changes nothing there, because its numbers are in the file.
"""

import base64
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Self

import grpc
from google.protobuf.message import DecodeError

from rushes.domain.errors import NoRoom, Refused, RushesError, StoreAway, TryAgain
from rushes.files import write_whole
from rushes.remote.client import error_of
from rushes.remote.generated import events_pb2 as pb

BATCH = 25  # events of one message
DATA_BYTES = 8 * 1024  # of one event: longer output is told in several
KEPT = 1000  # that the server keeps of an attempt: of more that wait, the oldest output is dropped
FILE_BYTES = 16 << 20  # then the file is rewritten, with the events that still wait
CALL_SECONDS = 30.0
PATIENCE_SECONDS = 60.0  # how long a start or an end waits for a server
PAUSES = 0.2, 10.0  # between tries, growing
_METHOD = "/rushes.v1.JobEventsService/Publish"
Metadata = Sequence[tuple[str, str]]


class EventLog:
    """Start and end are critical and wait until they are kept; output and errors never wait and never fail.

    Used from several threads. `token` may be replaced by a fresh one at any time.
    """

    def __init__(
        self, channel: Any, token: str, file: Path, metadata: Metadata = (), clock: Callable[[], float] = time.time
    ) -> None:
        """Over a gRPC channel to a server, with the task token of the attempt and a file of its own for each attempt.

        What an earlier process wrote to that file is sent again, and its numbers go on.
        """
        self.token, self.dropped = token, 0
        self.refused: RushesError | None = None  # why the server takes nothing more of this attempt
        self._publish = channel.stream_unary(
            _METHOD, pb.PublishRequest.SerializeToString, pb.PublishResponse.FromString
        )
        self._metadata, self._clock, self._path = metadata, clock, file
        self._unsent = deque(_read(file))
        self._last = self._unsent[-1].sequence if self._unsent else 0
        self._sent = 0
        self._file = self._rewrite()
        self._news, self._over = threading.Condition(), False
        self._thread = threading.Thread(target=self._run, name="event-log", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_why: object) -> None:
        self.close(0.0)

    def start(self, data: bytes = b"", seconds: float = PATIENCE_SECONDS) -> None:
        """The attempt begins.

        Raises:
            StoreAway: no server took it in time.
            RushesError: it was refused, for instance because the lease is over (LeaseLost).
        """
        self._critical(pb.JOB_EVENT_TYPE_PROCESS_START, data, seconds)

    def output(self, data: bytes) -> None:
        """Something was printed; best effort."""
        for at in range(0, len(data), DATA_BYTES):
            self._append(pb.JOB_EVENT_TYPE_OUTPUT_DATA, data[at : at + DATA_BYTES])

    def error(self, data: bytes) -> None:
        """What went wrong; best effort, so that it never hides the error itself."""
        self._append(pb.JOB_EVENT_TYPE_PROCESS_ERROR, data[:DATA_BYTES])

    def end(self, data: bytes = b"", seconds: float = PATIENCE_SECONDS) -> None:
        """The attempt is over, before its job is completed. Raises as `start`."""
        self._critical(pb.JOB_EVENT_TYPE_PROCESS_END, data, seconds)

    def close(self, seconds: float = PATIENCE_SECONDS) -> bool:
        """Stop sending, after so many seconds; whether all was sent. Then its file is deleted, else it stays."""
        is_sent = self._wait_until_sent(self._last, seconds)
        with self._news:
            self._over = True
            self._news.notify_all()
        self._thread.join(CALL_SECONDS)
        with suppress(OSError):  # a full disk
            self._file.close()
        if is_sent:
            self._path.unlink(missing_ok=True)
        return is_sent

    def _critical(self, type: int, data: bytes, seconds: float) -> None:
        number = self._append(type, data[:DATA_BYTES], sync=True)
        if not self._wait_until_sent(number, seconds):
            raise self.refused or StoreAway(f"no server accepted an event within {seconds:g} s")

    def _append(self, type: int, data: bytes, *, sync: bool = False) -> int:
        with self._news:
            if self._over or self.refused:
                return self._last + 1
            self._last += 1
            name = pb.JobEventType.Name(type)
            event = pb.JobEvent(sequence=self._last, timestamp=int(self._clock() * 1000), type=name, data=data)
            self._unsent.append(event)
            with suppress(OSError):  # a full disk: it is still sent
                self._write(event, sync=sync)
            self._drop()
            self._news.notify_all()
            return self._last

    def _write(self, event: Any, *, sync: bool) -> None:
        if self._file.tell() > FILE_BYTES:
            full, self._file = self._file, self._rewrite()
            full.close()
        else:
            self._file.write(_line(event))
            self._file.flush()
        if sync:
            os.fsync(self._file.fileno())

    def _rewrite(self) -> BinaryIO:
        """The file with what still waits, whole: a line that a crash cut short is not gone on with."""
        write_whole(self._path, b"".join(map(_line, self._unsent)))
        return self._path.open("ab")

    def _drop(self) -> None:
        if len(self._unsent) <= KEPT:
            return
        oldest = next((e for e in self._unsent if e.type == pb.JOB_EVENT_TYPE_OUTPUT_DATA), None)
        if oldest:
            self._unsent.remove(oldest)
            self.dropped += 1

    def _wait_until_sent(self, number: int, seconds: float) -> bool:
        with self._news:
            self._news.wait_for(lambda: self._sent >= number or self.refused is not None or self._over, seconds)
            return self._sent >= number

    def _run(self) -> None:
        pause = PAUSES[0]
        while events := self._next():
            try:
                requests = [pb.PublishRequest(task_token=self.token, events=events)]
                self._publish(iter(requests), timeout=CALL_SECONDS, metadata=self._metadata)
            except grpc.RpcError as e:
                error = error_of(e)
                if not isinstance(error, TryAgain | NoRoom):
                    self._refuse(error)
                    return
                with self._news:
                    self._news.wait_for(lambda: self._over, pause)
                pause = min(PAUSES[1], 2 * pause)
            except ValueError as e:  # its channel was closed
                self._refuse(Refused(str(e), "Close the event log before its channel."))
                return
            else:
                self._take(events)
                pause = PAUSES[0]

    def _next(self) -> list[Any]:
        """The next ones to send; nothing once it is over."""
        with self._news:
            self._news.wait_for(lambda: self._over or bool(self._unsent))
            return [] if self._over else list(self._unsent)[:BATCH]

    def _take(self, events: Sequence[Any]) -> None:
        with self._news:
            self._sent = events[-1].sequence
            while self._unsent and self._unsent[0].sequence <= self._sent:
                self._unsent.popleft()
            self._news.notify_all()

    def _refuse(self, error: RushesError) -> None:
        with self._news:
            self.refused = error
            self._unsent.clear()
            self._news.notify_all()


def _line(event: Any) -> bytes:
    return base64.b64encode(event.SerializeToString()) + b"\n"


def _read(file: Path) -> Iterator[Any]:
    """What is in a file; a line that was cut short by a crash is left out, and its number is used again."""
    lines = file.read_bytes().split(b"\n")[:-1] if file.exists() else ()
    for line in lines:
        try:
            yield pb.JobEvent.FromString(base64.b64decode(line, validate=True))
        except (ValueError, DecodeError):
            return
