"""A system call filter: what no decoder and no model needs is refused, permanently and for all children.

A list of what is refused, not of what is allowed: thread pools and allocators use new calls with every release.
"""

import ctypes
import errno
import struct
from collections.abc import Iterator

from rushes.worker.sandbox.kernel import MACHINE, syscall

_ARCHITECTURES = {"x86_64": (0xC000003E, 317), "aarch64": (0xC00000B7, 277)}  # its name in a filter, seccomp's number
_X32 = 0x40000000  # numbers of another set of calls on x86_64
_SET_FILTER, _ALL_THREADS = 1, 1
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _FIRST, _SECOND = 0, 4, 16, 24  # where these lie in what a filter is given
_NAMESPACES = 0x7E020080  # every CLONE_NEW*
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C  # type into a terminal

# Numbers on x86_64 and aarch64; 0: there is none.
_REFUSED = {
    "sockets": ((41, 198), (42, 203), (43, 202), (288, 242), (49, 200), (50, 201)),  # socket, connect, accept, bind
    "other processes": ((101, 117), (310, 270), (311, 271), (312, 272), (438, 438)),  # ptrace, process_vm_*, kcmp
    "mounts": ((165, 40), (166, 39), (155, 41), (161, 51), (428, 428), (429, 429), (430, 430), (431, 431), (432, 432)),
    "more mounts": ((433, 433), (442, 442), (467, 467)),
    "namespaces": ((272, 97), (308, 268)),  # unshare, setns
    "keys": ((248, 217), (249, 218), (250, 219)),
    "kernel": ((321, 280), (298, 241), (323, 282), (246, 104), (320, 294), (175, 105), (313, 273), (176, 106)),
    "machine": ((169, 142), (167, 224), (168, 225), (163, 89), (179, 60), (443, 443), (103, 116), (153, 58)),
    "clock and name": ((164, 170), (227, 112), (159, 171), (305, 266), (170, 161), (171, 162)),
    "old hardware": ((172, 0), (173, 0), (154, 0), (135, 92), (212, 18)),  # iopl, ioperm, modify_ldt, personality
    "files by handle": ((303, 264), (304, 265), (300, 262)),
    "programs without a path": ((322, 281),),  # execveat
}
_ABSENT = ((425, 425), (426, 426), (427, 427), (435, 435), (319, 279), (447, 447))  # io_uring, clone3, memfd
# Landlock does not look at these: modes, owners, times and attributes of files; they are left as they are.
_WITHOUT_EFFECT = (
    *((90, 0), (91, 52), (268, 53), (452, 452), (92, 0), (93, 55), (94, 0), (260, 54)),  # chmod, chown
    *((132, 0), (235, 0), (261, 0), (280, 88)),  # utime
    *((188, 5), (189, 6), (190, 7), (197, 14), (198, 15), (199, 16)),  # xattr
)
_CLONE, _IOCTL = (56, 220), (16, 29)


def install() -> None:
    """Install the filter.

    Raises:
        OSError: the kernel has no filters, or the architecture is not known here.
    """
    if MACHINE not in _ARCHITECTURES:
        raise OSError(errno.ENOSYS, f"no filter for {MACHINE}")
    program = b"".join(_program(MACHINE))
    code = ctypes.create_string_buffer(program, len(program))
    given = ctypes.create_string_buffer(struct.pack("@HP", len(program) // 8, ctypes.addressof(code)))
    syscall(_ARCHITECTURES[MACHINE][1], _SET_FILTER, _ALL_THREADS, ctypes.addressof(given))


def _program(machine: str) -> Iterator[bytes]:
    """Classic BPF: eight bytes for each instruction, decided call by call."""
    column = list(_ARCHITECTURES).index(machine)
    yield from (_step(_LOAD, _ARCHITECTURE), _step(_EQUAL, _ARCHITECTURES[machine][0], 1, 0), _answer(errno.ENOSYS))
    yield _step(_LOAD, _NUMBER)
    if machine == "x86_64":
        yield from (_step(_AT_LEAST, _X32, 0, 1), _answer(errno.ENOSYS))
    for group in _REFUSED.values():
        yield from _each(group, column, errno.EPERM)
    yield from _each(_ABSENT, column, errno.ENOSYS)
    yield from _each(_WITHOUT_EFFECT, column, 0)
    yield from _unless(_CLONE[column], _FIRST, _step(_ANY_BIT, _NAMESPACES, 0, 1))
    yield from _unless(_IOCTL[column], _SECOND, _step(_EQUAL, _TIOCSTI, 0, 1), _step(_EQUAL, _TIOCLINUX, 0, 1))
    yield _step(_RETURN, _ALLOW)


def _each(calls: tuple[tuple[int, int], ...], column: int, code: int) -> Iterator[bytes]:
    for call in calls:
        if call[column]:
            yield from (_step(_EQUAL, call[column], 0, 1), _answer(code))


def _unless(call: int, argument: int, *tests: bytes) -> Iterator[bytes]:
    """Allow a call unless one of these is true of an argument of it."""
    yield _step(_EQUAL, call, 0, 2 + 2 * len(tests))
    yield _step(_LOAD, argument)
    for test in tests:
        yield from (test, _answer(errno.EPERM))
    yield _step(_RETURN, _ALLOW)


def _answer(code: int) -> bytes:
    return _step(_RETURN, _ERRNO | code)


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
