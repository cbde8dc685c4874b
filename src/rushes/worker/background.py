"""Errands: what may be slow (a blob store, a server of hints) and must not hold up the worker's loop."""

import queue
import threading
from collections.abc import Callable

from rushes.telemetry import log

Do = Callable[[], object]


class Background:
    """One thread that runs errands in order; a named one that waits already is not sent again."""

    def __init__(self) -> None:
        self._waiting: queue.SimpleQueue[tuple[str, Do] | None] = queue.SimpleQueue()
        self._names: set[str] = set()
        self._unfinished = 0
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    @property
    def busy(self) -> bool:
        """Whether something waits or is under way."""
        return self._unfinished > 0

    def send(self, do: Do, name: str = "") -> None:
        """Run it when its turn comes."""
        with self._lock:
            if name and name in self._names:
                return
            self._names.add(name)
            self._unfinished += 1
            if self._thread is None:
                self._thread = threading.Thread(target=self._go, daemon=True)
                self._thread.start()
        self._waiting.put((name, do))

    def close(self, seconds: float) -> None:
        """Finish what was sent; after so many seconds it is left to itself."""
        if self._thread:
            self._waiting.put(None)
            self._thread.join(seconds)

    def _go(self) -> None:
        while errand := self._waiting.get():
            name, do = errand
            with self._lock:
                self._names.discard(name)  # before it runs: what happens meanwhile needs another round
            try:
                do()
            except Exception:  # noqa: BLE001 - the next errand must find its thread
                log.exception("a background task failed")
            with self._lock:
                self._unfinished -= 1
