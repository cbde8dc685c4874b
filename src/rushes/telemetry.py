"""JSON logs, outages that are logged once, and named points at which tests kill the process."""

import contextlib
import fcntl
import json
import logging
import os
import shutil
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TextIO

from rushes.domain.redaction import redact
from rushes.domain.text import clean_text

_FIELDS = ("job", "task", "stage", "chunk", "attempt", "worker", "method", "path", "status", "ms", "address", "user")
_FOREIGN = ("uvicorn", "asyncio")  # whose lines come in our shape
LOG_BYTES = 5_000_000
log = logging.getLogger("rushes")
request_id: ContextVar[str] = ContextVar("request_id", default="")  # of the HTTP request that is being answered


def timestamp(seconds: float) -> str:
    """ISO 8601 in UTC, with milliseconds."""
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{int(seconds % 1 * 1000):03d}Z"


class JsonLines(logging.Formatter):
    """One JSON object a line: time, level, service, message and what the record is about."""

    def __init__(self, process: str = "") -> None:
        super().__init__()
        self._service = f"rushes {process}".strip()

    def format(self, record: logging.LogRecord) -> str:
        """ISO 8601 time, then the fields that are set; a traceback only on errors."""
        doc: dict[str, Any] = {
            "time": timestamp(record.created),
            "level": record.levelname.lower(),
            "service": self._service,
            "message": redact(record.getMessage()),
        }
        if request := request_id.get():
            doc["request"] = request
        about = {name: getattr(record, name, None) for name in _FIELDS}
        doc |= {name: redact(v) if isinstance(v, str) else v for name, v in about.items() if v is not None}
        if record.exc_info:
            doc["traceback"] = redact(self.formatException(record.exc_info))
        return clean_text(json.dumps(doc, ensure_ascii=False))


class RotatingLog(logging.StreamHandler[TextIO]):
    """A file that several processes append to; whoever finds it too long moves it aside, and the others follow."""

    def __init__(self, file: Path, most: int = LOG_BYTES) -> None:
        self._file, self._most = file, most
        super().__init__(self._opened())

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line to the file that has the name now."""
        with contextlib.suppress(OSError):  # then the line goes where the last one went
            self._rotate()
        super().emit(record)

    def close(self) -> None:
        """Close the file."""
        super().close()
        self.stream.close()

    def _opened(self) -> TextIO:
        return open(self._file, "a", encoding="utf-8", errors="backslashreplace", opener=_open_private)

    def _rotate(self) -> None:
        if self._is_current() and os.fstat(self.stream.fileno()).st_size < self._most:
            return
        fcntl.flock(self.stream, fcntl.LOCK_EX)  # of those who find the same file too long, one moves it
        if self._is_current():
            self._file.replace(self._file.with_suffix(f".1{self._file.suffix}"))
        old, self.stream = self.stream, self._opened()
        old.close()

    def _is_current(self) -> bool:
        try:
            return os.path.samestat(self._file.stat(), os.fstat(self.stream.fileno()))
        except FileNotFoundError:
            return False


def _open_private(name: str, flags: int) -> int:
    return os.open(name, flags, 0o600)


def shorten_log(file: Path, most: int = LOG_BYTES) -> None:
    """Move aside what a process wrote that goes on appending: copied, then cut, because it keeps the file open."""
    with contextlib.suppress(OSError):
        if file.stat().st_size >= most:
            shutil.copy(file, file.with_suffix(f".1{file.suffix}"))
            os.truncate(file, 0)


def log_to(to: TextIO | logging.Handler | None = None, level: str = "warning", process: str = "") -> None:
    """Send structured logs of a process to a stream (stderr unless told) or a handler."""
    handler = to if isinstance(to, logging.Handler) else logging.StreamHandler(to or sys.stderr)
    handler.setFormatter(JsonLines(process))
    for logger in _loggers():
        logger.handlers[:] = [handler]
        logger.propagate = False
    log.setLevel(level.upper())


def stop_logging() -> None:
    """Send logs nowhere any more."""
    for logger in _loggers():
        logger.handlers.clear()


def _loggers() -> tuple[logging.Logger, ...]:
    return (log, *map(logging.getLogger, _FOREIGN))


class Outage:
    """Says once that something is away, and once that it is back, however many retries there are in between."""

    def __init__(self, what: str) -> None:
        self._what, self._since = what, 0.0

    def began(self, error: object, **about: object) -> None:
        """A try has failed; `about` are fields of the log line."""
        if not self._since:
            self._since = time.monotonic()
            log.warning("%s: %s", self._what, error, extra=about)

    def ended(self, **about: object) -> None:
        """A try has succeeded."""
        if self._since:
            seconds, self._since = time.monotonic() - self._since, 0.0
            log.warning("over after %.0f s: %s", seconds, self._what, extra=about)


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
