"""The parent's side of a slot: start the child, hand it a task, hear its answer, watch and end it."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection

import psutil

from rushes.domain.keys import JSON
from rushes.domain.task import Lease
from rushes.telemetry import log
from rushes.worker.child_output import ChildOutput

LINE_BYTES = 2000
GONE_SECONDS = 10.0  # to be heard after a kill; a process that the kernel holds back is left behind


class Child:
    """One spawned process that runs one task at a time, in a process group of its own."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], hear: Callable[["Child", JSON], None]) -> None:
        """`hear` is called from a thread of this child with each message, and with {"say": "died", ...} at the end."""
        self._hear = hear
        self.lines = ChildOutput()
        self.task: Lease | None = None
        self.killed = ""
        self.tasks_run = 0
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [*argv, str(theirs.fileno())],
                pass_fds=(theirs.fileno(),),
                env={**os.environ, **env, "RUSHES_WORKER_PID": str(os.getpid())},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._line = Connection(ours.detach())
        self._sender: threading.Thread | None = None
        self._logs = threading.Thread(target=self._read_lines, daemon=True)
        self._logs.start()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def start(self, lease: Lease) -> None:
        """Hand over a task; {"say": "unsent", ...} is heard if that is not possible.

        A thread sends it: a child that is still starting reads nothing, and the pipe holds only about 200 kB.
        """
        self.task = lease
        self.lines.begin(lease)
        self._sender = threading.Thread(target=self._send, args=(json.dumps(lease._asdict()).encode(),), daemon=True)
        self._sender.start()

    def release(self) -> None:
        """The task is over, whatever became of it."""
        self.task = None
        self.tasks_run += 1

    def memory(self) -> int:
        """Resident bytes of the whole process tree."""
        total = 0
        for process in _tree(self.pid):
            with contextlib.suppress(psutil.Error):
                total += process.memory_info().rss
        return total

    def kill(self, why: str) -> None:
        """End it and everything it started, at once."""
        self.killed = self.killed or why
        family = _tree(self.pid)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        for process in family:
            with contextlib.suppress(psutil.Error):
                process.kill()

    def close(self) -> None:
        """End it and wait until it is gone and has been heard, but not for ever."""
        self.kill("closed")
        self._listener.join(GONE_SECONDS)

    def _send(self, data: bytes) -> None:
        try:
            self._line.send_bytes(data)
        except OSError as e:
            self._hear(self, {"say": "unsent", "message": f"the slot did not take it: {e.strerror or e}"})

    def _listen(self) -> None:
        while True:
            try:
                self._hear(self, json.loads(self._line.recv_bytes()))
            except (EOFError, OSError):
                break
            except Exception:  # noqa: BLE001 - whatever it is: a slot that nobody hears must end
                log.exception("unexpected message from a slot")
                break
        self.kill("hung up")
        code = self._process.wait()
        if self._sender:
            self._sender.join(timeout=1.0)  # a task that never reached it is no failure of the work
        self._line.close()
        self._logs.join(timeout=1.0)  # what it still had to say; a forked grandchild may hold the pipe open
        self._hear(self, {"say": "died", "code": code})

    def _read_lines(self) -> None:
        assert self._process.stdout is not None
        with contextlib.suppress(OSError, ValueError), self._process.stdout as output:
            while raw := output.readline(LINE_BYTES):
                self.lines.add(raw)


def _tree(pid: int) -> list[psutil.Process]:
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.Error:
        return []
