"""Transport without a server: hints inside this process, and looking again for everybody else."""

import threading
from collections.abc import Sequence

from rushes.telemetry import effect


class Poll:
    """Wakes the workers of this process at once; others find the work when they look."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._hints: list[tuple[str, str]] = []
        self._woken = 0

    def announce(self, lane: str, tasks: Sequence[str]) -> None:
        """Say that these tasks may be ready."""
        with effect("hint"), self._changed:
            self._hints += [(lane, task) for task in tasks]
            self._changed.notify_all()

    def wait(self, lanes: Sequence[str], seconds: float) -> tuple[str, ...]:
        """Sleep until a hint comes or the time is over."""
        with self._changed:
            before = self._woken
            hinted = lambda: self._woken != before or any(lane in lanes for lane, _ in self._hints)  # noqa: E731
            self._changed.wait_for(hinted, seconds)
            mine = tuple(task for lane, task in self._hints if lane in lanes)
            self._hints = [(lane, task) for lane, task in self._hints if lane not in lanes]
            return mine

    def wake(self) -> None:
        """End every wait of this process."""
        with self._changed:
            self._woken += 1
            self._changed.notify_all()

    def close(self) -> None:
        """Nothing to let go of."""
        self.wake()
