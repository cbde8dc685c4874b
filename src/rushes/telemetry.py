"""Logs in one shape, and named places where a test may kill the process."""

import contextlib
import json
import logging
import os
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from typing import Any

from rushes.domain.text import clean_text

_FIELDS = ("job", "task", "stage", "chunk", "attempt", "worker")
log = logging.getLogger("rushes")


class JsonLines(logging.Formatter):
    """One JSON object a line: time, level, service, message and what the record is about."""

    def format(self, record: logging.LogRecord) -> str:
        """ISO 8601 time, then the fields that are set; a traceback only on errors."""
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        doc: dict[str, Any] = {
            "time": f"{stamp}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "service": "rushes",
            "message": record.getMessage(),
        }
        doc |= {name: getattr(record, name) for name in _FIELDS if getattr(record, name, None) is not None}
        if record.exc_info:
            doc["traceback"] = self.formatException(record.exc_info)
        return clean_text(json.dumps(doc, ensure_ascii=False))


def log_to(stream: Any = None, level: str = "warning") -> None:
    """Send structured logs to a stream (stderr unless told)."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    log.handlers[:] = [handler]
    log.setLevel(level.upper())
    log.propagate = False


class BugLog:
    """Exceptions that nobody expected: each is logged once with its traceback, and counted every time."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def add(self, error: Exception, **about: object) -> None:
        """An exception was caught that means a bug; `about` are fields of the log line."""
        last = traceback.extract_tb(error.__traceback__)[-1]
        bug = f"{type(error).__name__} at {last.filename}:{last.lineno}"
        self.counts[bug] += 1
        if self.counts[bug] == 1:
            log.error("bug: %s: %s", type(error).__name__, error, exc_info=error, extra=about)


@contextlib.contextmanager
def effect(name: str) -> Iterator[None]:
    """Round every effect (blob, manifest, ledger, hint, published name, index): a place to die before and after."""
    _crash(f"{name}:before")
    yield
    _crash(f"{name}:after")


_armed = os.environ.get("RUSHES_CRASH", "")  # in tests: "name:before#3" dies there the third time any process passes


def _crash(point: str) -> None:
    if not _armed:
        return
    if trace := os.environ.get("RUSHES_CRASH_TRACE"):
        _append(trace, f"{os.getpid()} {point}\n")
    name, _, nth = _armed.partition("#")
    if point == name and _append(os.environ["RUSHES_CRASH_COUNT"], ".") == int(nth):
        _die()


def _append(file: str, text: str) -> int:
    """Append in one write; answers where it ended, which is each writer's own."""
    fd = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, text.encode())
    end = os.lseek(fd, 0, os.SEEK_CUR)
    os.close(fd)
    return end


def _die() -> None:
    """A machine dies whole: the worker goes with its slot."""
    worker = int(os.environ.get("RUSHES_WORKER_PID", os.getpid()))
    if worker != os.getpid():
        os.kill(worker, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
