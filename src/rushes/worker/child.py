"""The parent's side of a slot: start the child, send it a task, receive its answer, watch and end it."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import psutil

from rushes.domain.errors import AnswerPending, RushesError
from rushes.domain.keys import JSON
from rushes.domain.task import Lease
from rushes.telemetry import log
from rushes.worker.broker.answers import LONGEST_ANSWER, parse_answer
from rushes.worker.broker.attempt import Attempt
from rushes.worker.broker.failures import failure_of
from rushes.worker.broker.inference import EndpointOf, Inference, OpenSession
from rushes.worker.broker.service import BrokerService
from rushes.worker.child_output import ChildOutput
from rushes.worker.scratch import scratch

LINE_BYTES = 2000
END_SECONDS = 2.0  # to end by itself once its line is closed
EXIT_SECONDS = 10.0  # to exit after a kill; a process that the kernel holds back is left behind
OnMessage = Callable[["Child", JSON], None]


@dataclass(frozen=True, slots=True)
class ChildDeps:
    """What children are started with, and what their tasks are handed."""

    argv: Sequence[str]  # its scratch folder, and the numbers of two sockets, come after these
    env: Callable[[Path], Mapping[str, str]]  # of a child with that scratch folder
    scratch: Path  # where the folder of each child lies
    attempt: Callable[[Lease], Attempt]
    open_session: OpenSession = lambda _stage: None  # to the inference services of a stage
    endpoint_of: EndpointOf = lambda _stage: None  # that answers later


class Child:
    """One spawned process that runs one task at a time, in a process group and a scratch folder of its own."""

    def __init__(self, deps: ChildDeps, on_message: OnMessage) -> None:
        """`on_message` is called from a thread of this child with each message; the last is {"type": "exited", ...}."""
        self._deps, self._on_message = deps, on_message
        self.output = ChildOutput()
        self.task: Lease | None = None
        self.attempt: Attempt | None = None
        self.killed = ""
        self.tasks_run = 0
        (ours, theirs), (asked, asks) = socket.socketpair(), socket.socketpair()
        with theirs, asks, contextlib.ExitStack() as held:
            folder = held.enter_context(scratch(deps.scratch))
            self._process = self._started(folder, (asks.fileno(), theirs.fileno()))
            self._scratch = held.pop_all()
        self._line, self._connection = ours, Connection(os.dup(ours.fileno()))
        self._broker = BrokerService(asked, lambda: self.attempt, Inference(deps.open_session, deps.endpoint_of))
        self._sender: threading.Thread | None = None
        self._reader = threading.Thread(target=self._read_output, daemon=True)
        self._reader.start()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        threading.Thread(target=self._hang_up, daemon=True).start()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def start(self, lease: Lease) -> None:
        """Send a task; the answer is {"type": "not_sent", ...} if that is not possible.

        A thread sends it: what is there of its results is verified first, a child that is still starting reads nothing,
        and the pipe holds only about 200 kB.
        """
        self.task, self.attempt = lease, None
        self.output.begin(lease)
        self._sender = threading.Thread(target=self._send, args=(lease,), daemon=True)
        self._sender.start()

    def release(self) -> None:
        """The task is over, whatever became of it."""
        self.task = None
        self.tasks_run += 1

    def memory(self) -> int:
        """Resident bytes of the whole process tree."""
        return tree_memory(self.pid)

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
        """End it and wait until it has exited and reported so, up to a limit."""
        self.kill("closed")
        self._listener.join(EXIT_SECONDS)

    def _started(self, folder: Path, lines: tuple[int, int]) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            [*self._deps.argv, str(folder), *map(str, lines)],
            pass_fds=lines,
            cwd=folder,
            env={**self._deps.env(folder), "RUSHES_WORKER_PID": str(os.getpid())},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def _send(self, lease: Lease) -> None:
        begun = time.monotonic()
        try:
            attempt = self._deps.attempt(lease)
            task = attempt.begin()
        except Exception as e:  # noqa: BLE001 - whatever it is, it is this task that cannot begin
            if not isinstance(e, RushesError):
                log.exception("cannot start a task")
            return self._on_message(self, {**failure_of(e), "type": "refused"})
        self.attempt = attempt
        if not task["wanted"]:
            seconds = time.monotonic() - begun
            return self._on_message(self, {"type": "adopted", "results": attempt.results, "seconds": seconds})
        try:
            return self._connection.send_bytes(json.dumps(task).encode())
        except OSError as e:
            return self._on_message(self, {"type": "not_sent", "message": f"the slot took no task: {e.strerror or e}"})

    def _receive(self) -> None:
        """Pass on the next message; the results of a task are those that were committed, whatever the child says."""
        message = parse_answer(self._connection.recv_bytes(LONGEST_ANSWER), self.attempt.told if self.attempt else ())
        if message and message["type"] == "finished":
            if self.attempt is None:
                raise ValueError("a slot has finished a task that it was not given")
            message["results"] = self.attempt.results
        if message and message["type"] == "failed" and self.attempt:
            message["delay"] = self.attempt.delay if message["kind"] == AnswerPending.__name__ else 0.0
        if message:
            self._on_message(self, message)

    def _listen(self) -> None:
        while True:
            try:
                self._receive()
            except (EOFError, OSError):
                self._let_end()
                break
            except Exception:  # noqa: BLE001 - whatever it is: a slot that cannot be understood must end
                log.exception("a slot sent a message that cannot be read")
                break
        self.kill("disconnected")
        code = self._process.wait()
        if self._sender:
            self._sender.join(timeout=1.0)  # a task that never reached it is no failure of the work
        self._connection.close()
        self._line.close()
        self._scratch.close()
        self._reader.join(timeout=1.0)  # its last output; a forked grandchild may hold the pipe open
        self._on_message(self, {"type": "exited", "code": code})

    def _let_end(self) -> None:
        """Its line is closed, so it is about to end: killed now, it could not tell how."""
        self.killed = self.killed or "disconnected"  # it gets no other task
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(END_SECONDS)

    def _hang_up(self) -> None:
        """End both lines with the process: one that it started and that got away from its group may hold them open."""
        self._process.wait()
        self._broker.hang_up()
        with contextlib.suppress(OSError):
            self._line.shutdown(socket.SHUT_RDWR)  # what it has said before is still read

    def _read_output(self) -> None:
        assert self._process.stdout is not None
        with contextlib.suppress(OSError, ValueError), self._process.stdout as output:
            while raw := output.readline(LINE_BYTES):
                self.output.add(raw)


def tree_memory(pid: int) -> int:
    """Resident bytes of a process and everything that it started."""
    total = 0
    for process in _tree(pid):
        with contextlib.suppress(psutil.Error):
            total += process.memory_info().rss
    return total


def _tree(pid: int) -> list[psutil.Process]:
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.Error:
        return []
