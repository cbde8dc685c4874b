"""A slot that misbehaves on its lines to the worker: real processes, each a few lines of Python."""

import json
import os
import queue
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rushes.domain.keys import JSON
from rushes.domain.task import Lease
from rushes.worker import inputs
from rushes.worker.broker import channel
from rushes.worker.broker.attempt import Attempt
from rushes.worker.child import Child, ChildDeps
from rushes.worker.child_output import END
from rushes.worker.slots import Slots

BEGIN = "import os, sys, time; from multiprocessing.connection import Connection; line = Connection(int(sys.argv[3]))\n"
Messages = Callable[[str], Iterator[JSON]]


def no_attempt(lease: Lease) -> Attempt:
    raise AssertionError(lease)


@pytest.fixture
def messages(tmp_path: Path) -> Messages:
    """What the worker is told of a slot that runs this code, until it has exited."""

    def run(code: str) -> Iterator[JSON]:
        told = queue.Queue[JSON]()
        argv = [sys.executable, "-S", "-c", BEGIN + code]
        child = Child(ChildDeps(argv, lambda _: {}, tmp_path, no_attempt), lambda _, message: told.put(message))
        try:
            while True:
                message = told.get(timeout=20)
                yield message
                if message["type"] == "exited":
                    return
        finally:
            child.kill("closed")

    return run


def test_a_slot_that_says_nonsense_of_its_progress_is_heard_further(messages: Messages) -> None:
    said = ["NaN", "0.5", "Infinity", "9"]
    told = list(messages("".join(f'line.send_bytes(b\'{{"type": "progress", "fraction": {x}}}\')\n' for x in said)))
    assert [m.get("fraction") for m in told] == [0.5, 1.0, None]


def test_a_slot_that_says_too_much_is_ended(messages: Messages) -> None:
    long = """line.send_bytes(b'{"type": "progress", "fraction": 0.5' + b" " * (2 << 20) + b"}")"""
    told = list(messages(f"{long}\ntime.sleep(60)"))
    assert [m["type"] for m in told] == ["exited"]


def test_a_document_that_no_task_needs_is_refused_before_it_is_read() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall((64 << 20).to_bytes(8, "big"))
        theirs.shutdown(socket.SHUT_WR)
        with pytest.raises(ValueError, match="67108864 bytes"):
            channel.receive(ours)


AWAY = """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        line.send_bytes(b'{"type": "progress", "fraction": 0.5}')
        open("pid", "w").write(str(os.getpid()))
        os.rename("pid", sys.argv[1] + ".pid")
        time.sleep(60)
    os._exit(0)
os.wait()
"""


@pytest.mark.parametrize("end", ["os._exit(3)", "os.kill(os.getpid(), 9)"])
def test_a_slot_is_over_when_it_has_ended_whoever_else_holds_its_lines(
    end: str, messages: Messages, tmp_path: Path
) -> None:
    wait = "while not os.path.exists(sys.argv[1] + '.pid'): time.sleep(0.01)\n"
    try:
        told = list(messages(AWAY + wait + end))
    finally:
        for file in tmp_path.glob("*.pid"):
            os.kill(int(file.read_text()), signal.SIGKILL)
    assert [m["type"] for m in told] == ["progress", "exited"]
    assert told[-1]["code"] in (3, -9)


FULL = f"""
while line.recv_bytes():
    os.write(2, {END!r} + b"\\n")
    told = dict(kind="NoRoom", message="", hint="", verdict="", replace=False, final=False, counts=False)
    line.send_bytes(json.dumps(dict(told, type="failed")).encode())
"""


class BlankAttempt(Attempt):
    def begin(self) -> JSON:
        return {"wanted": ["film"]}


def test_a_task_is_not_given_back_for_ever_because_its_slot_says_the_disk_is_full(tmp_path: Path) -> None:
    lease = Lease("job_a.toy", 1, "job_a", "toy", None, "cpu", json.dumps({"owner": "me", "results": {}}), 0, 0)
    argv = [sys.executable, "-S", "-c", "import json\n" + BEGIN + FULL]
    deps = ChildDeps(argv, lambda _: {}, tmp_path, lambda lease: BlankAttempt(None, lease))  # type: ignore[arg-type]
    heard = queue.Queue[inputs.Input]()
    slots = Slots(deps, heard.put, lambda *_: None, lambda: None, tasks=100)
    try:
        for expected in (False, False, False, True, True):
            slots.start(0, lease)
            failed = heard.get(timeout=20)
            assert isinstance(failed, inputs.TaskFailed)
            assert (failed.failure.kind, failed.counts) == ("NoRoom", expected)
    finally:
        slots.close()
