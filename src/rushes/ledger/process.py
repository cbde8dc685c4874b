"""Identity of this machine and process, and whether another process of this machine has ended."""

import os
import platform
from pathlib import Path

from rushes.domain.worker import Incarnation
from rushes.ledger.clock import boot_id

_MACHINE_ID = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))


def host_id() -> str:
    """What this machine is called across its starts."""
    for path in _MACHINE_ID:
        if path.exists() and path.read_text().strip():
            return path.read_text().strip()
    return platform.node() or "localhost"


def process_start(pid: int | None = None) -> str | None:
    """When a process (this one unless told) started, and where its number counts; None if it is not there.

    Ticks since the machine started: no clock step changes them, as it does a time of day.
    """
    pid = os.getpid() if pid is None else pid
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return _portable_start(pid)
    return None if fields[0] in "ZX" else f"{fields[19]}@{_namespace()}"  # a zombie has ended


def is_gone(worker: Incarnation) -> bool:
    """Whether that worker cannot come back: another start of this machine, or its process is not there any more."""
    if worker.host not in (host_id(), platform.node()):
        return False
    if worker.boot != boot_id():
        return True
    start, now = worker.pid_start, process_start(worker.pid)
    if "@" not in start:
        return now is None
    if start.partition("@")[2] != _namespace():
        return False  # its pid counts in another container: only its lease can tell
    return now != start


def is_gone_from_here(worker: Incarnation) -> bool:
    """Whether that worker's process ran in this boot of this machine and is gone; of others only their lease tells.

    Machines made from one image may share a name, but no boot.
    """
    return worker.boot == boot_id() and is_gone(worker)


def _namespace() -> str:
    try:
        return Path("/proc/self/ns/pid").readlink().name
    except OSError:
        return ""


def _portable_start(pid: int) -> str | None:
    if Path("/proc/self/stat").exists():
        return None
    import psutil  # noqa: PLC0415 - Linux does not need it

    try:
        return f"{psutil.Process(pid).create_time():.2f}@"
    except psutil.NoSuchProcess:
        return None
