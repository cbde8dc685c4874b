"""Runs that need not start Python: forked from a process that imported everything, has no thread and opened nothing.

Each is a process of its own with slots of its own, and dies by a real kill -9; what it shares is memory that nobody
writes. A kill on SQLite took 2 to 3 CPU seconds when each run and slot started Python; so it takes 0.55.
"""

import ctypes
import gc
import importlib
import json
import os
import pkgutil
import re
import select
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Any

import rushes
from proof import film_runner
from rushes import telemetry
from rushes.domain.keys import JSON
from rushes.wiring.__main__ import main as serve_slot
from rushes.worker import child
from rushes.worker.sandbox.processes import die_with_parent

SPARES = 6  # slots of a run with two guests that pause it; more are started as usual
LATE = 300.0
# Modules of each set-up by name: all of rushes would take 82 MB instead of 30, and 8 ms instead of 3 for each fork.
PARTS = {
    "sqlite": "sqlite|poll",
    "postgres": "postgres|notify",
    "postgres+s3": "postgres|notify|s3",
    "postgres+valkey+s3": "postgres|notify|redis|s3",
    "aws": "aws|dynamodb|sqs|s3",
    "bucket": "bucket|sqlite|poll|s3",
}
PR_SET_CHILD_SUBREAPER = 36
ALONE = {"OPENBLAS_NUM_THREADS": "1"}  # otherwise numpy starts threads when it is imported


@dataclass(frozen=True, slots=True)
class Hand:
    """A process that becomes one run after another, for one caller at a time."""

    line: Connection

    def run(self, argv: Sequence[str], env: Mapping[str, str], said: Path) -> int:
        """Run proof.film_runner to its end or its death; the exit code, and in the file what it said."""
        self.line.send_bytes(json.dumps({"argv": argv, "env": dict(env), "said": str(said)}).encode())
        if not self.line.poll(LATE):
            raise TimeoutError(f"not over after {LATE:.0f} s: {argv}")
        return int(self.line.recv_bytes())


@contextmanager
def hands(count: int, setup: str, env: Mapping[str, str]) -> Iterator[Sequence[Hand]]:
    """So many of them, forked from one that did the imports for a set-up."""
    pairs = [socket.socketpair() for _ in range(count)]
    fds = [theirs.fileno() for _, theirs in pairs]
    argv = [sys.executable, "-m", "proof.zygote", setup, *map(str, fds)]
    with subprocess.Popen(argv, pass_fds=fds, env={**env, **ALONE}) as zygote:
        for _, theirs in pairs:
            theirs.close()
        found = [Hand(Connection(ours.detach())) for ours, _ in pairs]
        try:
            yield found
        finally:
            for hand in found:
                hand.line.close()
            zygote.kill()


def main(setup: str, *fds: str) -> None:
    """Import, and become all hands."""
    _import_all(setup)
    for pid in [_forked(partial(_serve, Connection(int(fd)))) for fd in fds]:
        os.waitpid(pid, 0)


def _serve(line: Connection) -> int:
    """Fork a run for each request, until the other side hangs up."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    with suppress(EOFError):
        while True:
            ask = json.loads(line.recv_bytes())
            line.send_bytes(str(_over(_forked(partial(_run, line, ask)))).encode())
    return 0


def _over(run: int) -> int:
    """The exit code of a run, once every process of it is gone."""
    _, status = os.waitpid(run, 0)
    with suppress(ChildProcessError):
        while True:
            os.wait()
    return os.waitstatus_to_exitcode(status)


def _import_all(setup: str) -> None:
    """What runs and slots of a set-up import only when they come to it."""
    importlib.import_module("rushes_toys")
    for module in pkgutil.walk_packages(rushes.__path__, "rushes."):
        if re.match(rf"rushes\.stages|rushes\.(?!servers).*({PARTS[setup]})", module.name):
            importlib.import_module(module.name)
    assert len(list(Path("/proc/self/task").iterdir())) == 1, "somebody started a thread: nobody may fork here"
    gc.freeze()


def _forked(body: Callable[[], int]) -> int:
    """The id of a process that does this and ends, at the latest with its parent."""
    parent = os.getpid()
    if pid := os.fork():
        return pid
    code = 1
    try:
        os.setsid()
        die_with_parent()
        code = body() if os.getppid() == parent else 1
    except BaseException:  # noqa: BLE001 - told to whoever reads what it said, as Python does
        traceback.print_exc()
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _run(line: Connection, ask: Mapping[str, JSON]) -> int:
    line.close()
    said = os.open(ask["said"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    _become(ask["env"], said)
    vars(child)["subprocess"] = Nursery()
    return film_runner.main(ask["argv"])


def _become(env: Mapping[str, str], said: int) -> None:
    """Another environment, nothing to read, and a place for what is said."""
    os.environ.clear()
    os.environ.update(env)
    vars(telemetry)["_armed"] = env.get("RUSHES_CRASH", "")  # read when it is imported
    silence = os.open(os.devnull, os.O_RDONLY)
    for ours, theirs in ((silence, 0), (said, 1), (said, 2)):
        os.dup2(ours, theirs)
    os.close(silence)
    os.close(said)


@dataclass(slots=True)
class Spare:
    """A child that waits to become a slot, then looks like one that was started."""

    pid: int
    line: socket.socket
    stdout: IO[bytes] | None = None
    code: int | None = None

    ended: int = field(init=False)  # can be read once it has ended, by as many threads as wait
    turn: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.ended = os.pidfd_open(self.pid)

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, once it is over."""
        if not select.select([self.ended], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
        with self.turn:
            if self.code is None:
                self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            return self.code


@dataclass(slots=True)
class Nursery:
    """Stands in for subprocess where slots are started: hands out children that were forked before the first thread."""

    DEVNULL = subprocess.DEVNULL
    PIPE = subprocess.PIPE
    STDOUT = subprocess.STDOUT
    TimeoutExpired = subprocess.TimeoutExpired
    spares: list[Spare] = field(default_factory=lambda: [_spare() for _ in range(SPARES)])

    def Popen(self, argv: Sequence[str], **how: Any) -> Any:  # noqa: N802 - the name of what it stands in for
        """A slot."""
        try:
            spare = self.spares.pop()
        except IndexError:
            return subprocess.Popen(argv, **how)
        heard, said = os.pipe()
        ask = json.dumps({"told": argv[-4], "folder": argv[-3], "env": how["env"]}).encode()
        with spare.line:
            socket.send_fds(spare.line, [len(ask).to_bytes(4, "big")], [*how["pass_fds"], said])
            spare.line.sendall(ask)
        os.close(said)
        return Spare(spare.pid, spare.line, os.fdopen(heard, "rb"))


def _spare() -> Spare:
    ours, theirs = socket.socketpair()
    pid = _forked(partial(_slot, theirs))
    theirs.close()
    return Spare(pid, ours)


def _slot(line: socket.socket) -> int:
    size, (asks, answers, said), _, _ = socket.recv_fds(line, 4, 3)
    ask = json.loads(line.recv(int.from_bytes(size, "big"), socket.MSG_WAITALL))
    line.close()
    _become(ask["env"], said)
    os.chdir(ask["folder"])
    serve_slot(ask["told"], ask["folder"], str(asks), str(answers))
    return 0


if __name__ == "__main__":
    main(*sys.argv[1:])
