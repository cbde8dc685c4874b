"""The parent's side of a slot: start the child, send it a task, receive its answer, watch and end it."""

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
EXIT_SECONDS = 10.0  # to exit after a kill; a process that the kernel holds back is left behind
OnMessage = Callable[["Child", JSON], None]


class Child:
    """One spawned process that runs one task at a time, in a process group of its own."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], on_message: OnMessage) -> None:
        """`on_message` is called from a thread of this child with each message; the last is {"type": "exited", ...}."""
        self._on_message = on_message
        self.output = ChildOutput()
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
        self._connection = Connection(ours.detach())
        self._sender: threading.Thread | None = None
        self._reader = threading.Thread(target=self._read_output, daemon=True)
        self._reader.start()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def start(self, lease: Lease) -> None:
        """Send a task; the answer is {"type": "not_sent", ...} if that is not possible.

        A thread sends it: a child that is still starting reads nothing, and the pipe holds only about 200 kB.
        """
        self.task = lease
        self.output.begin(lease)
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

    def kill(self, reason: str) -> None:
        """End it and everything it started, at once."""
        self.killed = self.killed or reason
        tree = _tree(self.pid)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        for process in tree:
            with contextlib.suppress(psutil.Error):
                process.kill()

    def close(self) -> None:
        """End it and wait until it has exited and reported so, but not for ever."""
        self.kill("closed")
        self._listener.join(EXIT_SECONDS)

    def _send(self, data: bytes) -> None:
        try:
            self._connection.send_bytes(data)
        except OSError as e:
            self._on_message(self, {"type": "not_sent", "message": f"the slot took no task: {e.strerror or e}"})

    def _listen(self) -> None:
        while True:
            try:
                self._on_message(self, json.loads(self._connection.recv_bytes()))
            except (EOFError, OSError):
                break
            except Exception:  # noqa: BLE001 - whatever it is: a slot that cannot be understood must end
                log.exception("a slot sent a message that cannot be read")
                break
        self.kill("disconnected")
        code = self._process.wait()
        if self._sender:
            self._sender.join(timeout=1.0)  # a task that never reached it is no failure of the work
        self._connection.close()
        self._reader.join(timeout=1.0)  # its last output; a forked grandchild may hold the pipe open
        self._on_message(self, {"type": "exited", "code": code})

    def _read_output(self) -> None:
        assert self._process.stdout is not None
        with contextlib.suppress(OSError, ValueError), self._process.stdout as output:
            while raw := output.readline(LINE_BYTES):
                self.output.add(raw)


def _tree(pid: int) -> list[psutil.Process]:
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.Error:
        return []
