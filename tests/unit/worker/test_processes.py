"""Processes that leave their slot's group, session and parent: none of them outlives it."""

import os
import queue
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from rushes.domain.task import Lease
from rushes.worker import inputs
from rushes.worker.child import ChildDeps
from rushes.worker.child_output import END
from rushes.worker.sandbox import ON
from rushes.worker.sandbox.kernel import LINUX
from rushes.worker.sandbox.report import layers_here
from rushes.worker.slots import Slots
from tests.unit.worker.test_child import BlankAttempt

pytestmark = pytest.mark.skipif(not LINUX, reason="namespaces are those of Linux")

ESCAPE = """
import os, time
def escape(mark):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.rename(mark, mark + ".away")
            time.sleep(1000)
        os._exit(0)
    while not os.path.exists(mark + ".away"): time.sleep(0.01)
"""
CONFINED = """
import sys
from pathlib import Path
from rushes.worker.sandbox import confine, Confinement
confine(Confinement(), Path.cwd())
open("mark", "w").close()
escape("mark")
"""


def left(mark: str) -> list[psutil.Process]:
    """Processes whose environment names this test."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("MARK") == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


@pytest.fixture
def mark(tmp_path: Path) -> Iterator[str]:
    yield str(tmp_path)
    for process in left(str(tmp_path)):
        process.kill()


def gone(mark: str) -> bool:
    deadline = time.monotonic() + 60
    while left(mark) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not left(mark)


@pytest.mark.parametrize(
    ("end", "code"), [("os.kill(os.getpid(), 9)", -9), ("os.abort()", -6), ("os._exit(7)", 7), ("sys.exit()", 0)]
)
def test_what_escaped_ends_with_its_slot_however_that_ends(tmp_path: Path, mark: str, end: str, code: int) -> None:
    if layers_here()["processes"] != ON:
        pytest.skip(f"this kernel has no namespace of processes: {layers_here()['processes']}")
    argv = [sys.executable, "-c", ESCAPE + CONFINED + end]
    slot = subprocess.run(argv, cwd=tmp_path, env={**os.environ, "MARK": mark}, check=False)
    assert (tmp_path / "mark.away").exists()
    assert slot.returncode == code
    assert gone(mark)


@pytest.mark.parametrize("stopped", [False, True])
def test_a_slot_whose_worker_is_killed_ends_with_what_escaped_from_it(tmp_path: Path, mark: str, stopped: bool) -> None:
    if layers_here()["processes"] != ON:
        pytest.skip(f"this kernel has no namespace of processes: {layers_here()['processes']}")
    worker = f"""
import os, subprocess, sys, time
argv = [sys.executable, "-c", {ESCAPE + CONFINED + "time.sleep(1000)"!r}]
subprocess.run(argv, env={{**os.environ, "RUSHES_WORKER_PID": str(os.getpid())}}, start_new_session=True)
"""
    argv = [sys.executable, "-c", worker]
    with subprocess.Popen(argv, cwd=tmp_path, env={**os.environ, "MARK": mark}) as running:
        deadline = time.monotonic() + 60
        while not (tmp_path / "mark.away").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        for process in left(mark) if stopped else ():
            if process.pid != running.pid:
                process.suspend()
        running.kill()
    assert (tmp_path / "mark.away").exists()
    assert gone(mark)


SLOT = f"""
import ctypes, json, sys
from multiprocessing.connection import Connection
ctypes.CDLL(None).prctl(36, 1)
line = Connection(int(sys.argv[3]))
line.recv_bytes()
open(sys.argv[1] + "/mark", "w").close()
escape(sys.argv[1] + "/mark")
os.write(2, {END!r} + b"\\n")
line.send_bytes(b'{{"type": "finished", "seconds": 1, "replace": true}}')
line.recv_bytes()
"""


def test_a_slot_that_leaves_processes_behind_is_replaced_and_they_end(tmp_path: Path, mark: str) -> None:
    lease = Lease("job_a.toy", 1, "job_a", "toy", None, "cpu", '{"owner": "me", "results": {}}', 0, 0)
    argv = [sys.executable, "-S", "-c", ESCAPE + SLOT]
    deps = ChildDeps(argv, lambda _: {"MARK": mark}, tmp_path, lambda lease: BlankAttempt(None, lease))  # type: ignore[arg-type]
    heard = queue.Queue[inputs.Input]()
    slots = Slots(deps, heard.put, lambda *_: None, lambda: None, tasks=100)
    try:
        slots.start(0, lease)
        assert isinstance(heard.get(timeout=60), inputs.TaskFinished)
        assert gone(mark)
    finally:
        slots.close()


def test_a_slot_knows_whether_something_it_started_still_runs() -> None:
    code = (
        "import subprocess, os, signal\n"
        "from rushes.worker.sandbox.processes import adopt_orphans, has_children\n"
        "adopt_orphans(); print(has_children())\n"
        "away = subprocess.run(['sh', '-c', 'setsid sleep 1000 >/dev/null & echo $!'], stdout=-1)\n"
        "print(has_children()); os.kill(int(away.stdout), signal.SIGKILL)\n"
        "os.waitpid(-1, 0); print(has_children())\n"
    )
    said = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True, timeout=60)
    assert said.stdout.split() == [b"False", b"True", b"False"]
