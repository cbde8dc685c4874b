"""A worker as a process that operators run: what it waits for, what ends it, and the shape of every line it writes."""

import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from shutil import rmtree
from typing import Any

import psycopg
import pytest

from rushes.library import JobRequest, Library
from rushes.servers import postgres
from rushes.servers.process import free_port
from tests.api.kit import DEADLINE

SHM = Path("/dev/shm")
SECRET = "a-secret-of-the-test"


@contextmanager
def started(home: Path, *options: str, **settings: str) -> Iterator[subprocess.Popen[str]]:
    """`rushes worker --json`, ended at the end."""
    argv = [sys.executable, "-m", "rushes", "--home", str(home), "worker", "--json", "--slots", "1", *options]
    env = {f"RUSHES_{name.upper()}": value for name, value in settings.items()}
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env) as process:
        try:
            yield process
        finally:
            process.kill()


def next_line(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout
    line: dict[str, Any] = json.loads(process.stdout.readline())
    return line


def test_a_worker_that_starts_before_its_database_waits_for_it(tmp_path: Path) -> None:
    port = free_port()
    url = f"postgres://rushes:{SECRET}@127.0.0.1:{port}/rushes"
    with tempfile.TemporaryDirectory(dir=SHM if SHM.is_dir() else None) as folder, ExitStack() as stack:
        postgres.start(Path(folder), port=port, secret=SECRET).stop()  # its role and its database are there
        with started(tmp_path / "home", store=url, shared="true", start_seconds="600") as process:
            waiting = next_line(process)
            assert (waiting["message_type"], waiting["seconds"]) == ("waiting", 600)
            assert "does not respond" in waiting["reason"]
            server = postgres.start(Path(folder), port=port, secret=SECRET)
            stack.callback(server.stop)
            assert server.url.partition("@")[2] == url.partition("@")[2]
            assert next_line(process)["message_type"] == "worker"
            with psycopg.connect(server.url) as db:
                names = db.execute("SELECT application_name FROM pg_stat_activity").fetchall()
            assert any(name.startswith("rushes worker ") for (name,) in names)
            process.send_signal(signal.SIGTERM)
            assert process.wait(DEADLINE) == 128 + signal.SIGTERM


def test_it_waits_only_so_long_and_not_for_what_does_not_come_by_waiting(tmp_path: Path) -> None:
    away = f"postgres://rushes:{SECRET}@127.0.0.1:{free_port()}/rushes"
    with started(tmp_path / "home", store=away, shared="true", start_seconds="0") as process:
        assert (next_line(process)["kind"], process.wait(DEADLINE)) == ("StoreAway", 5)
    with tempfile.TemporaryDirectory(dir=SHM if SHM.is_dir() else None) as folder:
        server = postgres.start(Path(folder))
        wrong = server.url.replace(server.secret, "wrong")
        with started(tmp_path / "home", store=wrong, shared="true", start_seconds="600") as process:
            assert (next_line(process)["kind"], process.wait(DEADLINE)) == ("StoreRefuses", 4)
        server.stop()


def test_a_worker_whose_home_is_gone_stops(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with started(home) as process:
        assert next_line(process)["message_type"] == "worker"
        home.rename(tmp_path / "moved")
        rmtree(tmp_path / "moved", ignore_errors=True)
        assert process.wait(DEADLINE) == 7
        assert process.stdout
        last = json.loads(process.stdout.read().splitlines()[-1])
        assert (last["kind"], "is gone" in last["message"]) == ("WrongHome", True)


@pytest.mark.parametrize("level", ["info", "warning"])
def test_every_line_of_a_worker_has_a_time_and_a_level(tmp_path: Path, toy_film: Path, level: str) -> None:
    home = tmp_path / "home"
    with Library(home) as library:
        library.add([toy_film], JobRequest(only=("probe",)))
    with started(home, "--until-idle", log_level=level) as process:
        out, errors = process.communicate(timeout=DEADLINE)
    assert process.returncode == 0
    lines = [json.loads(line) for line in (out + errors).splitlines()]
    assert all({"time", "level"} <= line.keys() for line in lines)
    (outcome,) = [line for line in lines if line.get("message_type") == "task"]
    assert outcome["level"] == "info"
    logged = [json.loads(line) for line in errors.splitlines()]
    words = [line["message"].partition(" ")[0] for line in logged if line.get("task") == outcome["task"]]
    assert words == (["started", "done"] if level == "info" else [])
    assert all({"job", "stage", "worker", "attempt"} <= line.keys() for line in logged if "task" in line)
