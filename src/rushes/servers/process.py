"""A server of another project as a child process on loopback: started, waited for, stopped."""

import contextlib
import itertools
import os
import pwd
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rushes.domain.errors import Refused
from rushes.servers import launcher

_FIRST_PORT, _PORTS = 20_000, 12_000
_steps = itertools.count(101 * os.getpid())
START_SECONDS = 60.0
STOP_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Running:
    """A server that answers at its URL until it is stopped."""

    url: str
    process: subprocess.Popen[bytes]
    ends_by: signal.Signals = signal.SIGTERM  # what it takes for "end now, cleanly"

    def stop(self) -> None:
        """End it and wait until it is gone; repeatable."""
        self.process.send_signal(self.ends_by)
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def free_port() -> int:
    """A port of loopback that nobody listens on now; never the same twice in a row.

    The system's own choice may be given to somebody else before a server listens on it: eight of them for SeaweedFS
    meet each other once in 500 starts. Each process walks a stretch of its own below the ports of outgoing connections.
    """
    return next(port for step in _steps if _is_free(port := _FIRST_PORT + step % _PORTS))


def _is_free(port: int) -> bool:
    with contextlib.suppress(OSError), socket.socket() as s:
        s.bind(("127.0.0.1", port))
        return True
    return False


def as_user(user: int | None) -> dict[str, Any]:
    """What tells subprocess to run something as another user, with that user's group alone."""
    return {} if user is None else {"user": user, "group": pwd.getpwuid(user).pw_gid, "extra_groups": []}


def spawn(
    argv: Sequence[str],
    log: Path,
    env: Mapping[str, str] | None = None,
    user: int | None = None,
    ends_by: signal.Signals = signal.SIGTERM,
    fds: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start a process that writes to `log`, as another user if told.

    It gets `ends_by` when the thread that calls this ends, however that happens; for the main thread, the process.
    """
    whom = (-1, -1) if user is None else (user, pwd.getpwuid(user).pw_gid)
    launch = [sys.executable, "-IS", launcher.__file__, *map(str, (os.getpid(), int(ends_by), *whom)), *argv]
    with log.open("ab") as out:
        # A group of its own: a terminal's Ctrl-C is for us, who stop our workers first.
        return subprocess.Popen(
            launch, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env, process_group=0, pass_fds=fds
        )


def start(
    argv: Sequence[str],
    url: str,
    log: Path,
    answers: Callable[[], bool],
    env: Mapping[str, str] | None = None,
    user: int | None = None,
    ends_by: signal.Signals = signal.SIGTERM,
    fds: Sequence[int] = (),
) -> Running:
    """Spawn a server and wait until it answers.

    Raises:
        Refused: it ended, or did not answer in time; the last lines of its log are told.
    """
    process = spawn(argv, log, env, user, ends_by, fds)
    running = Running(url, process, ends_by)
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        if answers():
            return running
        time.sleep(0.02)
    running.stop()
    last = "\n".join(log.read_text("utf-8", "replace").splitlines()[-5:])
    raise Refused(f"{Path(argv[0]).name} does not start:\n{last}", f"See its log: {log}")
