"""Work in the background: what may be slow (a blob store, a server of hints) and must not hold up the worker's loop."""

import queue
import threading
from collections.abc import Callable

from rushes.telemetry import BugLog

Action = Callable[[], object]


class Background:
    """One thread that runs actions in order; a named one that waits already is not added again."""

    def __init__(self, bugs: BugLog) -> None:
        self._waiting: queue.SimpleQueue[tuple[str, Action] | None] = queue.SimpleQueue()
        self._names: set[str] = set()
        self._unfinished = 0
        self._bugs = bugs
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    @property
    def busy(self) -> bool:
        """Whether something waits or runs."""
        return self._unfinished > 0

    def run(self, action: Action, name: str = "") -> None:
        """Run it when its turn comes."""
        with self._lock:
            if name and name in self._names:
                return
            self._names.add(name)
            self._unfinished += 1
            if self._thread is None:
                self._thread = threading.Thread(target=self._loop, daemon=True)
                self._thread.start()
        self._waiting.put((name, action))

    def close(self, seconds: float) -> None:
        """Finish what was added, but wait no longer than so many seconds."""
        if self._thread:
            self._waiting.put(None)
            self._thread.join(seconds)

    def _loop(self) -> None:
        while item := self._waiting.get():
            name, action = item
            with self._lock:
                self._names.discard(name)  # before it runs: what changes meanwhile needs another run
            try:
                action()
            except Exception as e:  # noqa: BLE001 - the next action must find its thread
                self._bugs.add(e)
            with self._lock:
                self._unfinished -= 1
