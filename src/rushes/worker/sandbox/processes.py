"""Processes started by a slot end with it, whatever session, group or parent they choose."""

import contextlib
import ctypes
import os
import signal
from typing import NoReturn

from rushes.worker.sandbox.kernel import unshare

_NEW_PROCESSES = 0x20000000
_DIE_WITH_PARENT, _ADOPT_ORPHANS = 1, 36  # options of prctl


def enter_namespace() -> None:
    """Go on as a process of a new namespace, which the kernel empties when that process has ended.

    Three processes are needed. This one stays outside, waits, and ends as the new one does: who unshares cannot start
    threads any more. The first one inside adopts orphans and ends with this one; no signal from inside reaches it. Call
    it before the first thread.

    Raises:
        OSError: the kernel refuses; nothing has changed.
    """
    unshare(_NEW_PROCESSES)
    try:
        ours, held = os.pipe()
        if os.fork() == 0:
            _adopt(ours)
        inside = os.fork()
    except OSError:
        os._exit(1)  # there is no way back from half of it
    if inside:
        _end_as(inside, held)
    os.close(ours)
    os.close(held)


def adopt_orphans() -> None:
    """Become the parent of every process below this one whose parent ends: so that they can be found."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(_ADOPT_ORPHANS, 1)


def has_children() -> bool:
    """Whether processes that this one has started, or adopted, still run."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def die_with_parent() -> None:
    """Ask the kernel to end this process when its parent ends, also while it is stopped; check that it has not yet.

    The kernel forgets that when a process changes its user, so it is asked after that.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    parent = os.getppid()  # 0: outside of its namespace, which ends with it
    if parent and os.environ.get("RUSHES_WORKER_PID", str(parent)) != str(parent):
        os._exit(1)


def _adopt(line: int) -> NoReturn:
    """The first process of a namespace: the kernel reaps its children, and ends all the others when it ends."""
    die_with_parent()  # who is stopped reads nothing
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    _close_all_but(line)
    os.read(line, 1)  # until the last one who holds the other end is gone
    os._exit(0)


def _end_as(pid: int, held: int) -> NoReturn:
    die_with_parent()
    _close_all_but(held)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code < 0:
        with contextlib.suppress(OSError):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(abs(code))


def _close_all_but(kept: int) -> None:
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - numbers
        if int(name) != kept:
            with contextlib.suppress(OSError):
                os.close(int(name))
