"""Transport without a server: hints inside this process; other processes poll."""

import threading
from collections.abc import Sequence

from rushes.telemetry import effect

KEPT = 10_000  # hints per lane; older ones are forgotten, as hints may be


class Poll:
    """Wakes the workers of this process at once; others find the work when they look."""

    queues = False
    look_seconds = 1.0

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._hints: dict[str, dict[str, None]] = {}  # lane -> task ids, oldest first
        self._woken = 0

    def announce(self, lane: str, tasks: Sequence[str], attempt: int = 1) -> None:  # noqa: ARG002 - nobody reads it here
        with effect("hint"), self._changed:
            hints = self._hints.setdefault(lane, {})
            hints.update(dict.fromkeys(tasks))
            for old in list(hints)[: max(0, len(hints) - KEPT)]:
                del hints[old]
            self._changed.notify_all()

    def missing(self, lane: str, tasks: Sequence[str]) -> tuple[str, ...]:
        with self._changed:
            return tuple(task for task in tasks if task not in self._hints.get(lane, ()))

    def wait(self, lanes: Sequence[str], seconds: float, n: int = 10) -> tuple[str, ...]:
        with self._changed:
            before = self._woken
            self._changed.wait_for(lambda: self._woken != before or any(map(self._hints.get, lanes)), seconds)
            mine = [(lane, task) for lane in lanes for task in self._hints.get(lane, ())][:n]
            for lane, task in mine:
                del self._hints[lane][task]
            return tuple(task for _, task in mine)

    def keep(self, tasks: Sequence[str]) -> None:
        """No hint is handed out twice."""

    def settle(self, tasks: Sequence[str]) -> None:
        """No hint is handed out twice."""

    def check(self, _lanes: Sequence[str]) -> str:
        return "by polling the store"

    def wake(self) -> None:
        with self._changed:
            self._woken += 1
            self._changed.notify_all()

    def close(self) -> None:
        self.wake()
