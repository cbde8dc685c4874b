"""Landlock: restricts a process and its children to files below given folders, permanently."""

import contextlib
import ctypes
import os
import stat
import struct
from collections.abc import Iterable

from rushes.worker.sandbox.kernel import syscall

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # the same on every architecture
_ABI_ONLY, _BENEATH = 1, 1

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REMOVE = 1 << 4 | 1 << 5  # folders, files
_MAKE = 1 << 7 | 1 << 8 | 1 << 10 | 1 << 12  # folders, files, pipes, links
_DEVICES = 1 << 6 | 1 << 9 | 1 << 11  # character devices, sockets, block devices: nobody may make these
_REFER, _TRUNCATE, _IOCTL = 1 << 13, 1 << 14, 1 << 15
_OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | _TRUNCATE | _IOCTL
_TCP, _SCOPES = 1 << 0 | 1 << 1, 1 << 0 | 1 << 1  # bind and connect; abstract sockets and signals

READ = READ_FILE | READ_DIR
WRITE = READ | WRITE_FILE | _REMOVE | _MAKE | _REFER | _TRUNCATE


def version() -> int:
    """The version that this kernel has.

    Raises:
        OSError: it has none, or it is switched off.
    """
    return syscall(_CREATE, None, 0, _ABI_ONLY)


def restrict(access: Iterable[tuple[str, int]]) -> int:
    """From now on only these files and folders can be opened, each for so much; answers the version.

    Raises:
        OSError: the kernel has no Landlock.
    """
    abi = version()
    handled = _handled(abi)
    attributes = struct.pack("=QQQ", handled, _TCP, _SCOPES)[: 24 if abi >= 6 else 16 if abi >= 4 else 8]
    given = ctypes.create_string_buffer(attributes, len(attributes))
    rules = syscall(_CREATE, ctypes.addressof(given), len(attributes), 0)
    try:
        for path, rights in access:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError):
                _allow(rules, path, rights & handled)
        syscall(_RESTRICT, rules, 0)
    finally:
        os.close(rules)
    return abi


def _handled(abi: int) -> int:
    basic = EXECUTE | WRITE_FILE | READ | _REMOVE | _MAKE | _DEVICES
    return basic | (_REFER if abi >= 2 else 0) | (_TRUNCATE if abi >= 3 else 0) | (_IOCTL if abi >= 5 else 0)


def _allow(rules: int, path: str, rights: int) -> None:
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            rights &= _OF_FILES
        given = ctypes.create_string_buffer(struct.pack("=Qi", rights, place), 12)
        syscall(_ADD, rules, _BENEATH, ctypes.addressof(given), 0)
    finally:
        os.close(place)
