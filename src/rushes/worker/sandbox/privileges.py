"""Privileges of a slot: its user, its capabilities, its network."""

import contextlib
import ctypes
import os
import struct
from collections.abc import Iterable
from pathlib import Path

from rushes.worker.sandbox.kernel import MACHINE, prctl, syscall, unshare

NOBODY = 65534
_NEW_NETWORK, _NEW_USER = 0x40000000, 0x10000000
_DUMPABLE, _DROP_BOUND, _NO_NEW_PRIVILEGES, _AMBIENT, _CLEAR_ALL = 4, 24, 38, 47, 4
_CAPABILITIES = 64
_CAPSET = {"x86_64": 126, "aarch64": 91}
_CAPABILITY_VERSION = 0x20080522


def leave_network() -> None:
    """Go where no network is, not even loopback. Raises OSError: only root may."""
    unshare(_NEW_NETWORK)


def leave_network_as_user() -> None:
    """The same in a user namespace of its own, which anybody may have where the machine allows it.

    Raises:
        OSError: it does not, or there are threads already.
    """
    user, group = os.geteuid(), os.getegid()
    prctl(_DUMPABLE, 1)  # who has changed its user does not own its files in /proc
    unshare(_NEW_USER | _NEW_NETWORK)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        Path("/proc/self", name).write_text(text, "ascii")


def can_live_as(user: int, paths: Iterable[str | Path]) -> bool:
    """Whether that user can read all of these; asked in a process that becomes that user."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    code = 1
    try:
        become(user)
        code = int(not all(os.access(path, os.R_OK) for path in paths))
    finally:
        os._exit(code)


def become(user: int) -> None:
    """Be another user, for good. Raises OSError."""
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def drop_capabilities() -> None:
    """Have none, and never get any back by starting a program. Raises OSError."""
    prctl(_NO_NEW_PRIVILEGES, 1)
    with contextlib.suppress(OSError):  # only who has CAP_SETPCAP may, and needs to
        for capability in range(_CAPABILITIES):
            prctl(_DROP_BOUND, capability)
    with contextlib.suppress(OSError):
        prctl(_AMBIENT, _CLEAR_ALL)
    header = ctypes.create_string_buffer(struct.pack("=Ii", _CAPABILITY_VERSION, 0), 8)
    none = ctypes.create_string_buffer(24)
    syscall(_CAPSET[MACHINE], ctypes.addressof(header), ctypes.addressof(none))
