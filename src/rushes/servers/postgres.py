"""PostgreSQL from its wheel: a cluster in a folder, made once, served on loopback."""

import os
import pwd
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psycopg

from rushes.domain.errors import Refused
from rushes.servers.postgres_wheel import programs
from rushes.servers.process import Running, as_user, free_port
from rushes.servers.process import start as start_process

_DATABASE = "postgres"
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "200",
    "shared_buffers": "256MB",
    "max_wal_size": "4GB",
}


def start(folder: Path, version: int = 18, port: int = 0, settings: Mapping[str, str] | None = None) -> Running:
    """Serve the cluster of a folder until it is stopped; `settings` add to or replace ours.

    Raises:
        Refused: the wheel is not installed, or the server does not start.
    """
    user, port = _user(), port or free_port()
    url = f"postgresql://postgres@127.0.0.1:{port}/{_DATABASE}"
    options = [f"--{name}={value}" for name, value in {**_SETTINGS, "port": str(port), **(settings or {})}.items()]
    program, log = programs(version, user) / "postgres", folder / f"postgres-{version}.log"
    with _cluster(folder / f"postgres-{version}", version, user) as (data, fd):
        argv = [str(program), "-D", data, *options]
        # By SIGINT, because SIGTERM waits for every client to leave.
        return start_process(argv, url, log, lambda: _answers(url), None, user, signal.SIGINT, (fd,))


def _user() -> int | None:
    """Whom to run as: PostgreSQL refuses root, so that there it is nobody."""
    return pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else None


@contextmanager
def _cluster(folder: Path, version: int, user: int | None) -> Iterator[tuple[str, int]]:
    """The folder of a cluster, made if it is not there: its path for a process of that user, and its descriptor.

    Another user may not be allowed to enter the folders above it, but an open descriptor leads there from anywhere.
    """
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)  # closed, so that no way leads up from the descriptor
    folder.mkdir(exist_ok=True, mode=0o700)
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        data = str(folder) if user is None else f"/proc/self/fd/{fd}"
        if not (folder / "PG_VERSION").exists():
            os.fchown(fd, -1 if user is None else user, -1)
            _make(folder, programs(version, user) / "initdb", data, fd, user)
        yield data, fd
    finally:
        os.close(fd)


def _make(folder: Path, initdb: Path, data: str, fd: int, user: int | None) -> None:
    argv = [str(initdb), "-D", data, "-U", "postgres", "--auth=trust", "--encoding=UTF8"]
    argv += ["--locale=C", "--no-instructions"]
    made = subprocess.run(argv, capture_output=True, text=True, check=False, pass_fds=(fd,), **as_user(user))
    if made.returncode:
        raise Refused(f"PostgreSQL cannot make its files in {folder}:\n{made.stderr.strip()}", "Choose another folder.")


def _answers(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True
