"""What reading the structure of a file may cost: a small file can ask for more work than its size explains."""

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import BinaryIO, TypeVar

from rushes.domain.errors import BadMedia, ReadTimedOut

T = TypeVar("T")
_POLL_SECONDS = 0.1
_BYTES_PER_PACKET = 1 << 16  # tracks that lie apart: each packet costs a jump and a full buffer


@dataclass(slots=True)
class Budget:
    """Processor time and bytes that may be spent on a file; waiting for a slow disk costs nothing."""

    seconds: float
    bytes: int

    @staticmethod
    def of(size: int) -> "Budget":
        """The budget of a file with so many bytes: ten times what the most expensive honest files need."""
        return Budget(10 + size / 1_000_000, (1 << 28) + 4 * size)

    def spend(self, count: int) -> None:
        """So many bytes were read. Raises BadMedia when that is too much."""
        self.bytes -= count
        if self.bytes < 0:
            raise BadMedia("reading it takes far more bytes than it has")

    def add_packet(self) -> None:
        """A packet was found: reading goes on."""
        self.bytes += _BYTES_PER_PACKET


class MeteredReader:
    """A reader that counts what is read."""

    def __init__(self, file: BinaryIO, budget: Budget) -> None:
        self._file, self._budget = file, budget

    def read(self, count: int) -> bytes:
        """The next bytes."""
        data = self._file.read(count)
        self._budget.spend(len(data))
        return data

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to an offset."""
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """The offset of the next byte."""
        return self._file.tell()


def run_within(seconds: float, work: Callable[[], T]) -> T:
    """What `work` gives, run in a thread of its own, within so much processor time of this process.

    Parsers are C code that no signal stops: when the time is over the thread is left behind, and whoever runs tasks
    ends the process.

    Raises:
        ReadTimedOut: the time is over.
    """
    future: Future[T] = Future()
    begun = time.process_time()
    threading.Thread(target=_fulfil, args=(future, work), daemon=True).start()
    while not wait([future], _POLL_SECONDS).done:
        if time.process_time() - begun > seconds:
            raise ReadTimedOut(f"reading its structure took more than {seconds:.0f} s of processor time")
    return future.result()


def _fulfil(future: "Future[T]", work: Callable[[], T]) -> None:
    try:
        future.set_result(work())
    except BaseException as e:  # noqa: BLE001 - raised again by who waits
        future.set_exception(e)
