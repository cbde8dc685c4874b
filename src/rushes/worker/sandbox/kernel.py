"""Linux system calls that Python's standard library does not have."""

import ctypes
import os
import platform
import sys

LINUX = sys.platform == "linux"
MACHINE = platform.machine()
_libc = ctypes.CDLL(None, use_errno=True)


def syscall(number: int, *args: int | None) -> int:
    """A call by its number.

    Raises:
        OSError: the kernel refuses.
    """
    given = [ctypes.c_void_p() if arg is None else ctypes.c_ulong(arg) for arg in args]
    return _checked(_libc.syscall(ctypes.c_long(number), *given))


def prctl(option: int, *args: int) -> int:
    """Change something about this process.

    Raises:
        OSError: the kernel refuses.
    """
    given = [ctypes.c_ulong(arg) for arg in (*args, 0, 0, 0, 0)[:4]]
    return _checked(_libc.prctl(ctypes.c_int(option), *given))


def unshare(flags: int) -> None:
    """Leave namespaces for new ones.

    Raises:
        OSError: the kernel refuses.
    """
    _checked(_libc.unshare(ctypes.c_int(flags)))


def _checked(answer: int) -> int:
    if answer == -1:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return int(answer)
