"""Log lines as they are written, for tests that are about what is said, and how often."""

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rushes.telemetry import log_to, stop_logging


class LogLines:
    """What was logged so far, each line as a document."""

    def __init__(self) -> None:
        self._stream = io.StringIO()

    def all(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._stream.getvalue().splitlines()]

    def having(self, text: str) -> list[dict[str, Any]]:
        return [line for line in self.all() if text in line["message"]]


@contextmanager
def logged(level: str = "info") -> Iterator[LogLines]:
    """Everything that is logged meanwhile."""
    lines = LogLines()
    log_to(lines._stream, level)
    try:
        yield lines
    finally:
        stop_logging()
