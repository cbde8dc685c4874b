"""How many callers are let in, and how many of them use a model at the same time: in the order in which they came."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rushes.domain.errors import Drained, InferenceFailed, Refused

LOOK_SECONDS = 0.1  # between looks whether a caller who waits is still there
Check = Callable[[], None]  # raises Cancelled if nobody waits for the answer any more


class Busy(Refused):
    """The queue is full."""

    retry_after = 1
    hint = "Retry after a second, or use another service."


class Cancelled(Drained):
    """The caller has hung up."""

    hint = "Nothing to do."


class OutOfTime(InferenceFailed):
    """The question takes longer than it may; this is no fault of a model."""

    hint = "Raise inference_seconds, or send a shorter video."


def within(check: Check, seconds: float) -> Check:
    """The same check, which also raises OutOfTime after so many seconds from now."""
    until = time.monotonic() + seconds

    def check_both() -> None:
        check()
        if time.monotonic() > until:
            raise OutOfTime("the video takes longer than inference_seconds allows")

    return check_both


class Queue:
    """Callers that are let in, up to a bound."""

    def __init__(self, bound: int) -> None:
        self.bound, self._lock = bound, threading.Lock()
        self.inside = self.refused = 0

    @contextmanager
    def enter(self) -> Iterator[None]:
        """While a caller is served.

        Raises:
            Busy: that would be one too many.
        """
        with self._lock:
            if self.inside >= self.bound:
                self.refused += 1
                raise Busy(f"{self.bound} requests are already waiting or running")
            self.inside += 1
        try:
            yield
        finally:
            with self._lock:
                self.inside -= 1


class Gate:
    """A semaphore before the models: first come, first served."""

    def __init__(self, permits: int) -> None:
        self._lock, self._free = threading.Lock(), permits
        self._waiting: deque[threading.Event] = deque()
        self.used = self.most = 0  # permits in use, now and at most

    @contextmanager
    def permit(self, check: Check) -> Iterator[None]:
        """While a model is used.

        Raises:
            Cancelled: the caller went away before its turn.
        """
        turn = threading.Event()
        with self._lock:
            if self._free and not self._waiting:
                self._free -= 1
                turn.set()
            else:
                self._waiting.append(turn)
        self._wait(turn, check)
        with self._lock:
            self.used += 1
            self.most = max(self.most, self.used)
        try:
            yield
        finally:
            with self._lock:
                self.used -= 1
            self._pass_on()

    def _wait(self, turn: threading.Event, check: Check) -> None:
        try:
            check()
            while not turn.wait(LOOK_SECONDS):
                check()
        except BaseException:
            with self._lock:
                waits = turn in self._waiting
                if waits:
                    self._waiting.remove(turn)
            if not waits:
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._free += 1
