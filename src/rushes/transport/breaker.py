"""A circuit breaker for hints: a failing server is not called for a second, and callers get no error."""

import time
from collections.abc import Callable
from typing import TypeVar

from rushes.metrics import PROCESS
from rushes.telemetry import Outage

T = TypeVar("T")
_REST_SECONDS = 1.0


class CircuitBreaker:
    """Calls one server from any number of threads."""

    def __init__(self, *errors: type[Exception]) -> None:
        self._errors, self._open_until, self._outage = errors, 0.0, Outage("hints are unavailable")

    def call(self, request: Callable[[], T]) -> T | None:
        """The answer, None if the server is away."""
        if self.rest() > 0:
            return None
        try:
            answer = request()
        except self._errors as e:
            PROCESS.set("rushes_hints_up", 0)
            self._outage.began(e)
            self._open_until = time.monotonic() + _REST_SECONDS
            return None
        PROCESS.set("rushes_hints_up", 1)
        self._outage.ended()
        return answer

    def rest(self) -> float:
        """Seconds until the server is tried again; 0.0 or less: at once."""
        return self._open_until - time.monotonic()
