"""Logs in one shape, and named places where a test may kill the process."""

import contextlib
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any

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
        return json.dumps(doc, ensure_ascii=False)


def log_to(stream: Any = None, level: str = "warning") -> None:
    """Send structured logs to a stream (stderr unless told)."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    log.handlers[:] = [handler]
    log.setLevel(level.upper())
    log.propagate = False


@contextlib.contextmanager
def effect(name: str) -> Iterator[None]:
    """Round every effect (blob, manifest, ledger, hint, published name, index): a place to die before and after."""
    _crash(f"{name}:before")
    yield
    _crash(f"{name}:after")


_armed = os.environ.get("RUSHES_CRASH", "")  # "name:before#3" = killed there the third time
_met = 0


def _crash(point: str) -> None:
    if not _armed:
        return
    global _met  # noqa: PLW0603 - counts visits of the one armed point, in tests only
    name, _, nth = _armed.partition("#")
    trace = os.environ.get("RUSHES_CRASH_TRACE")
    if trace:
        fd = os.open(trace, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(fd, f"{os.getpid()} {point}\n".encode())
        os.close(fd)
    if point != name:
        return
    _met += 1
    if _met < int(nth or 1):
        return
    token = os.environ.get("RUSHES_CRASH_ONCE")  # a file that only one process can create: the machine dies once
    if token:
        try:
            os.close(os.open(token, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
    parent = os.environ.get("RUSHES_WORKER_PID")
    if parent and int(parent) != os.getpid():
        os.kill(int(parent), signal.SIGKILL)  # a machine dies whole: the worker goes with its slot
    os.kill(os.getpid(), signal.SIGKILL)
