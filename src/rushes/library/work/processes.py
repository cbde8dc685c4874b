"""Worker processes beside a server: they end with it, however it ends, and their logs are kept short."""

import signal
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from rushes.files import make_private
from rushes.servers.process import spawn
from rushes.telemetry import shorten_log

LOOK_SECONDS = 10.0  # between looks at the lengths of the logs


class WorkerProcesses:
    """Worker processes, each in a group of its own, so that Ctrl-C is told to them by us."""

    def __init__(self, home: Path, count: int, slots: int | None) -> None:
        """Start them; in the main thread, whose end they are told of."""
        argv = [sys.executable, "-m", "rushes", "--home", str(home), "worker", "--json"]
        argv += ["--slots", str(slots)] if slots else []
        logs = home / "logs"
        make_private(logs)
        self._logs = [logs / f"worker-{n}.log" for n in range(1, count + 1)]
        self._processes = [spawn(argv, log) for log in self._logs]
        self._over = threading.Event()
        threading.Thread(target=self._shorten_logs, daemon=True).start()

    def stop(self, signals: Callable[[Callable[..., None]], AbstractContextManager[None]]) -> None:
        """Tell them to hand back and wait; a signal meanwhile (caught by `signals`) tells them again: now."""
        self._over.set()
        with signals(lambda *_: self.tell()):
            self.tell()
            for process in self._processes:
                process.wait()

    def tell(self) -> None:
        """To stop; told again they stop at once."""
        for process in self._processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)

    def _shorten_logs(self) -> None:
        while self._logs and not self._over.wait(LOOK_SECONDS):
            for log in self._logs:
                shorten_log(log)
