"""What a child prints during an attempt: the last lines for a failure, all of them for the log.

Answers come over another pipe than the output, so marker lines say where an attempt begins and ends.
"""

import collections
import threading
from collections.abc import Callable, Sequence

from rushes.domain.redaction import is_within_key, redact
from rushes.domain.task import Lease

BEGIN, END = b"\x1e the attempt begins", b"\x1e the attempt is over"
KEPT_LINES = 40
FLOOD_LINES = 1000
KEY_LINES = 300  # no private key is longer: one whose end is never printed hides no more than this
KEY_BEGIN = "-----BEGIN PRIVATE KEY-----"
END_SECONDS = 10.0  # a child that closed its own output never marks the end

Send = Callable[[Lease, int, Sequence[str]], None]


class ChildOutput:
    """The output of the attempt that runs now; lines that come before or after it are dropped."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: collections.deque[str] = collections.deque(maxlen=KEPT_LINES)
        self._unsent: collections.deque[str] = collections.deque(maxlen=FLOOD_LINES)
        self._over = threading.Event()
        self._lease: Lease | None = None
        self._next = 1
        self._key_lines = 0  # how many more lines may belong to a private key

    def begin(self, lease: Lease) -> None:
        """What is printed from now on belongs to this attempt."""
        with self._lock:
            self._last.clear()
            self._unsent.clear()
            self._over.clear()
            self._lease, self._next, self._key_lines = lease, 1, 0

    def add(self, raw: bytes) -> None:
        """A line was printed (blank ones are left out), or a marker."""
        text = self._shown(raw.decode("utf-8", "replace").rstrip())
        with self._lock:
            if raw.startswith(END):
                self._over.set()
            elif raw.startswith(BEGIN):
                self._last.clear()
                self._unsent.clear()
            elif text and not self._over.is_set():
                self._last.append(text)
                self._unsent.append(text)

    def _shown(self, text: str) -> str:
        """A line without its secrets; a private key is printed in many lines, and hidden to its end."""
        if not text:
            return text
        whole = KEY_BEGIN + text if self._key_lines else text
        self._key_lines = (self._key_lines or KEY_LINES) - 1 if is_within_key(whole) else 0
        return redact(whole)

    def last(self) -> tuple[str, ...]:
        """The last lines of the attempt."""
        with self._lock:
            return tuple(self._last)

    def end(self) -> None:
        """Wait until the attempt has printed everything."""
        self._over.wait(END_SECONDS)

    def send(self, send: Send) -> None:
        """Pass on what was printed since the last call, numbered (only the latest of a flood)."""
        with self._lock:
            lease, first, lines = self._lease, self._next, list(self._unsent)
            self._unsent.clear()
            self._next += len(lines)
            if lease and lines:
                send(lease, first, lines)
