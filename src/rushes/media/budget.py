"""The budget of reading a file's structure: a small file can need far more work than its size explains."""

import os
import resource
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import BinaryIO, TypeVar

from rushes.domain.errors import OverBudget

T = TypeVar("T")
_POLL_SECONDS = 0.05
_PICTURES = 20  # that a decoder may keep, at most six bytes for each pixel
_BYTES_PER_PACKET = 1 << 16  # tracks that lie apart: each packet costs a jump and a full buffer


@dataclass(slots=True)
class Budget:
    """Processor time, bytes to read and memory that a file may take; waiting for a slow disk costs nothing."""

    seconds: float
    bytes: int
    memory: int = 640 << 20  # bytes; the index of a film of 24 hours with 60 frames a second takes half of it

    @staticmethod
    def of(size: int) -> "Budget":
        """The budget of a file with so many bytes: ten times what the most expensive honest files need."""
        return Budget(5 + size / 1_000_000, (1 << 28) + 4 * size)

    def spend(self, count: int) -> None:
        """So many bytes were read. Raises OverBudget when that is too much."""
        self.bytes -= count
        if self.bytes < 0:
            raise OverBudget("reading it takes far more bytes than its size")

    def add_packet(self) -> None:
        """A packet was found: reading goes on."""
        self.bytes += _BYTES_PER_PACKET

    def add_pictures(self, pixels: int) -> None:
        """Pictures of that size are decoded from now on."""
        self.memory += _PICTURES * 6 * pixels


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
        """Go to an offset; -1 where there is none, as a broken header may ask."""
        try:
            return self._file.seek(offset, whence)
        except (OSError, ValueError):
            return -1

    def tell(self) -> int:
        """The offset of the next byte."""
        return self._file.tell()


def run_within(budget: Budget, work: Callable[[], T]) -> T:
    """What `work` gives, run in a thread of its own, within the time and memory of this process that it may take.

    Parsers are C code that no signal stops: when it is too much the thread is left behind, and whoever runs tasks ends
    the process.

    Raises:
        OverBudget: it takes too much.
    """
    future: Future[T] = Future()
    begun, peak = time.process_time(), _peak_memory()
    threading.Thread(target=_fulfil, args=(future, work), daemon=True).start()
    while not wait([future], _POLL_SECONDS).done:
        if time.process_time() - begun > budget.seconds:
            raise OverBudget(f"reading its structure took more than {budget.seconds:.0f} s of processor time")
        if _peak_memory() - peak > budget.memory:
            raise OverBudget(f"reading its structure took more than {budget.memory >> 20} MB of memory")
    return future.result()


def _peak_memory() -> int:
    """The most bytes that this process ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _fulfil(future: "Future[T]", work: Callable[[], T]) -> None:
    try:
        future.set_result(work())
    except BaseException as e:  # noqa: BLE001 - raised again by who waits
        future.set_exception(e)
