"""A server of another project as a child process on loopback: started, waited for, stopped.

Loopback is open to every user of a machine and to every page in a browser: each server wants a secret, new with every
start.
"""

import contextlib
import itertools
import os
import pwd
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rushes.domain.errors import Refused
from rushes.servers import launcher

_FIRST_PORT, _PORTS = 20_000, 12_000
_steps = itertools.count(101 * os.getpid())
START_SECONDS = 60.0
STOP_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Running:
    """A server that answers at its URL until it is stopped."""

    url: str = field(repr=False)  # with its secret
    process: subprocess.Popen[bytes]
    ends_by: signal.Signals = signal.SIGTERM  # what it takes for "end now, cleanly"

    @property
    def port(self) -> int:
        """Where it listens."""
        return urlsplit(self.url).port or 0

    @property
    def secret(self) -> str:
        """The password in its URL."""
        return urlsplit(self.url).password or ""

    @property
    def address(self) -> str:
        """Its URL as it may be seen."""
        url = urlsplit(self.url)
        return f"{url.scheme}://{url.hostname}:{url.port}{url.path}"

    def stop(self) -> None:
        """End it and wait until it is gone; repeatable."""
        self.process.send_signal(self.ends_by)
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def new_secret() -> str:
    """Nothing that could be guessed, in letters that a URL, SQL and a configuration file take as they are."""
    return secrets.token_hex(24)


def private_folder(folder: Path) -> Path:
    """Make a folder, or close one that is there, so that no other user comes in."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.chmod(0o700)
    return folder


def free_port() -> int:
    """A port of loopback that nobody listens on now; never the same twice in a row.

    The system's own choice may be given to somebody else before a server listens on it: eight of them for SeaweedFS
    meet each other once in 500 starts. Each process walks a stretch of its own below the ports of outgoing connections.
    """
    return next(port for step in _steps if is_free(port := _FIRST_PORT + step % _PORTS))


def is_free(port: int) -> bool:
    """Whether nobody listens on a port of loopback."""
    with contextlib.suppress(OSError), socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections that are over do not count
        s.bind(("127.0.0.1", port))
        return True
    return False


def as_user(user: int | None) -> dict[str, Any]:
    """What tells subprocess to run something as another user, with that user's group alone."""
    return {} if user is None else {"user": user, "group": _group(user), "extra_groups": []}


def _group(user: int) -> int:
    """Of an account its group; a number without an account has a group of the same number."""
    try:
        return pwd.getpwuid(user).pw_gid
    except KeyError:
        return user


def plain_environment(folder: Path) -> dict[str, str]:
    """What a program needs to run; whoever starts it may have secrets and settings in the environment."""
    inherited = ("PATH", "LD_LIBRARY_PATH", "LANG", "TZ")
    return {"HOME": str(folder), **{name: os.environ[name] for name in inherited if name in os.environ}}


def spawn(
    argv: Sequence[str],
    log: Path,
    env: Mapping[str, str] | None = None,
    user: int | None = None,
    ends_by: signal.Signals = signal.SIGTERM,
    fds: Sequence[int] = (),
    folder: Path | None = None,
) -> subprocess.Popen[bytes]:
    """Start a process that writes to `log`, as another user and in another folder if told.

    It gets `ends_by` when the thread that calls this ends, however that happens; for the main thread, the process.
    """
    whom = (-1, -1) if user is None else (user, _group(user))
    launch = [sys.executable, "-IS", launcher.__file__, *map(str, (os.getpid(), int(ends_by), *whom)), *argv]
    with os.fdopen(os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab") as out:
        # A group of its own: a terminal's Ctrl-C is for us, who stop our workers first.
        return subprocess.Popen(
            launch, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env, process_group=0, pass_fds=fds, cwd=folder
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
    """Spawn a server in the folder of its log and wait until it answers.

    Raises:
        Refused: it ended, or did not answer in time.
    """
    process = spawn(argv, log, env or plain_environment(log.parent), user, ends_by, fds, log.parent)
    running = Running(url, process, ends_by)
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        if answers():
            return running
        time.sleep(0.02)
    why = "it does not answer" if process.returncode is None else f"it ended {how(process.returncode)}"
    running.stop()
    raise Refused(f"{Path(argv[0]).name} does not start: {why}", f"See its log: {log}")


def how(code: int) -> str:
    """How a process ended, in words."""
    return f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
