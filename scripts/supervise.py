"""Runs a command, and when it ends or a signal comes, ends every process that it has started.

Orphans too: servers and browsers have process groups and sessions of their own, so that no signal reaches them all.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # the last one: the terminal was closed
GRACE_SECONDS = 5.0  # to stop servers and remove files, unless a second signal comes
KILL_SECONDS = 1.0
LOOK_SECONDS = 0.1


class Supervisor:
    """A command and everything below it."""

    def __init__(self, argv: list[str]) -> None:
        """Start the command in a process group of its own, which gets a terminal's Ctrl-C from here alone."""
        self.told: list[int] = []
        for number in SIGNALS:
            signal.signal(number, lambda number, _: self.told.append(number))
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)  # orphans become children of this process
        self._pid = subprocess.Popen(argv, stdin=subprocess.DEVNULL, process_group=0).pid
        self._code: int | None = None

    def run(self) -> int:
        """Wait for the command; its exit code, or 128 and the signal."""
        self._wait(lambda: self._code is not None or bool(self.told))
        if self.told:
            print("stopping; a second signal stops at once", file=sys.stderr, flush=True)
            send(-self._pid, signal.SIGINT)
            self._wait(lambda: self._code is not None or len(self.told) > 1, GRACE_SECONDS)
        self._end_the_rest()
        code = 128 + self.told[0] if self.told else self._code
        return 128 - code if code is not None and code < 0 else code or 0

    def _end_the_rest(self) -> None:
        for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGKILL):  # the last one for what started meanwhile
            for pid in descendants():
                send(pid, number)
            self._wait(lambda: not descendants(), KILL_SECONDS)

    def _wait(self, over: Callable[[], bool], seconds: float = float("inf")) -> None:
        deadline = time.monotonic() + seconds
        self._reap()
        while not over() and time.monotonic() < deadline:
            time.sleep(LOOK_SECONDS)
            self._reap()

    def _reap(self) -> None:
        try:
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                if found[0] == self._pid:
                    self._code = os.waitstatus_to_exitcode(found[1])
        except ChildProcessError:
            return


def descendants() -> list[int]:
    """The children of this process, their children, and so on."""
    found, parents = [os.getpid()], parents_of_all()
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found[1:]


def parents_of_all() -> dict[int, int]:
    """The parent of every process."""
    parents = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(file.parent.name)] = int(file.read_text("utf-8", "replace").rpartition(")")[2].split()[1])
        except OSError:  # it has just ended
            continue
    return parents


def send(pid: int, number: int) -> None:
    """Send a signal to a process, or to a group as -pid; it may have ended, or a sandbox of root's may refuse."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: supervise.py COMMAND...")
    sys.exit(Supervisor(sys.argv[1:]).run())
