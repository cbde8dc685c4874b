"""Nothing goes on running when tests or scripts are stopped or killed: no server, no child of a test."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from tests.acceptance.conftest import DEADLINE, ROOT, wait_for

SCRIPT = (str(ROOT / "scripts/supervise.py"), sys.executable, "-m", "pytest", "-n", "1", "test_servers.py")
SERVERS = """
import os, signal, subprocess, sys
from pathlib import Path
from rushes.servers import postgres, valkey

def test_that_does_not_end():
    folder = Path(os.environ["FOLDER"])
    started = postgres.start(folder / "postgres"), valkey.start(folder / "valkey")
    in_a_session_of_its_own = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    subprocess.run(["sh", "-c", "sleep 1000 & echo $! >orphan"], cwd=folder, start_new_session=True)
    (folder / "started").touch()
    signal.pause()
"""


@contextmanager
def begun(folder: Path, *argv: str) -> Iterator[tuple[subprocess.Popen[bytes], list[psutil.Process]]]:
    """A command that runs the test above, and every process of it when that has started its servers."""
    (folder / "test_servers.py").write_text(SERVERS)
    env = {**os.environ, "FOLDER": str(folder)}
    command = subprocess.Popen([sys.executable, *argv], cwd=folder, env=env, stdout=subprocess.DEVNULL)
    wait_for(lambda: (folder / "started").exists() or command.poll() is not None, "servers")
    orphan = psutil.Process(int((folder / "orphan").read_text()))
    processes = [orphan, *psutil.Process(command.pid).children(recursive=True)]
    try:
        yield command, processes
    finally:
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_everything_that_a_script_has_started(tmp_path: Path, number: signal.Signals) -> None:
    with begun(tmp_path, *SCRIPT) as (script, processes):
        assert {"postgres", "valkey-server", "sleep"} <= {process.name() for process in processes}
        script.send_signal(number)
        assert script.wait(DEADLINE) == 128 + number
        assert not psutil.wait_procs(processes, DEADLINE)[1]


def test_a_script_ends_everything_when_pytest_is_killed(tmp_path: Path) -> None:
    with begun(tmp_path, *SCRIPT) as (script, processes):
        psutil.Process(script.pid).children()[0].kill()
        assert script.wait(DEADLINE) == 128 + signal.SIGKILL
        assert not psutil.wait_procs(processes, DEADLINE)[1]


def test_servers_end_with_the_process_that_started_them_even_if_it_is_killed(tmp_path: Path) -> None:
    with begun(tmp_path, "-c", "from test_servers import *; test_that_does_not_end()") as (killed, processes):
        servers = [process for process in processes if process.name() in ("postgres", "valkey-server")]
        assert len(servers) > 2, "PostgreSQL has children"
        killed.kill()
        killed.wait()
        assert not psutil.wait_procs(servers, DEADLINE)[1]
