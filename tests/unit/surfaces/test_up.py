"""A whole fleet on this machine: real servers that are stopped, killed, started again, and keep their data."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

from tests.unit.cli_worker import films

DEADLINE = 240.0
HINT = "DATABASE_URL"  # of another database: must not win over the fleet's own


class Up:
    """`rushes up` in a folder, heard line by line."""

    def __init__(self, folder: Path, workers: int = 0) -> None:
        argv = [sys.executable, "-m", "rushes", "up", str(folder), "--workers", str(workers), "--json"]
        env = {**os.environ, HINT: "postgres://elsewhere/none"}
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
        self.parts: list[dict[str, Any]] = []

    def ready(self) -> dict[str, Any]:
        """Wait until everything is up."""
        assert self.process.stdout
        for line in self.process.stdout:
            message: dict[str, Any] = json.loads(line)
            if message["message_type"] == "up":
                return message
            self.parts.append(message)
        raise AssertionError(self.parts)

    def end(self, number: int) -> int:
        """Send a signal and wait for the exit code."""
        self.process.send_signal(number)
        self.process.communicate(timeout=DEADLINE)
        return self.process.returncode

    @property
    def alive(self) -> list[int]:
        """The servers that are still there."""
        return [part["pid"] for part in self.parts if psutil.pid_exists(part["pid"])]


@pytest.fixture
def folder() -> Iterator[Path]:
    """Not below pytest's own, which only its user may enter: root's PostgreSQL is run by nobody."""
    with tempfile.TemporaryDirectory(prefix="fleet-") as made:
        yield Path(made)


@pytest.fixture
def ups(folder: Path) -> Iterator[list[Up]]:  # ended before its folder goes
    made: list[Up] = []
    yield made
    for one in made:
        if one.process.poll() is None:
            one.end(signal.SIGTERM)


def test_a_fleet_works_keeps_its_data_through_a_kill_and_leaves_nothing_running(
    ups: list[Up], folder: Path, tmp_path: Path
) -> None:
    """One test, because three servers take 7 s to start."""
    ups.append(Up(folder))
    first = ups[0].ready()
    assert [part["name"] for part in ups[0].parts] == ["PostgreSQL", "Valkey", "SeaweedFS"]
    with psycopg.connect(first["settings"]["store"], autocommit=True) as database:
        database.execute("CREATE TABLE kept (word text)")
    refused_while_it_runs(folder)

    assert ups[0].end(signal.SIGKILL) == -signal.SIGKILL
    assert len(ups[0].alive) == 3
    (folder / "home" / "rushes.toml").write_text('profile = "fast"\n')
    ups.append(Up(folder, workers=2))
    second = ups[1].ready()
    assert not ups[0].alive, "what was left behind is ended first"
    with psycopg.connect(second["settings"]["store"]) as database:
        assert database.execute("SELECT count(*) FROM kept").fetchone() == (0,)
    settings_are_private_and_leave_what_a_person_wrote(folder, second["settings"]["store"])

    finds_out_that_these_are_no_films(second["home"], films(tmp_path, 2))
    assert ups[1].end(signal.SIGINT) == 130
    assert not ups[1].alive
    workers_said_what_they_did(folder)


def refused_while_it_runs(folder: Path) -> None:
    argv = [sys.executable, "-m", "rushes", "up", str(folder)]
    other = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert other.returncode == 2
    assert "already running in" in other.stderr


def settings_are_private_and_leave_what_a_person_wrote(folder: Path, store: str) -> None:
    file = folder / "home" / "rushes.toml"
    assert 'profile = "fast"' in file.read_text()
    assert store in file.read_text()
    assert file.stat().st_mode & 0o077 == 0


def finds_out_that_these_are_no_films(home: str, paths: list[Path]) -> None:
    added = rushes(home, "add", *map(str, paths))
    for job in [message["job"] for message in added if message["message_type"] == "job"]:
        events = rushes(home, "jobs", "events", job, "--follow")  # until it is over
        assert events[-1]["data"]["state"] == "failed"


def workers_said_what_they_did(folder: Path) -> None:
    texts = [(folder / f"worker-{n}.log").read_text() for n in (1, 2)]
    lines = [json.loads(line) for text in texts for line in text.splitlines()]
    assert sorted(line["name"] for line in lines if line.get("message_type") == "task") == ["film0.mp4", "film1.mp4"]
    assert [line["code"] for line in lines if line.get("message_type") == "summary"] == [143, 143]


def rushes(home: str, *args: str) -> list[dict[str, Any]]:
    """What a command says to a program."""
    argv = [sys.executable, "-m", "rushes", "--home", home, *args, "--json"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=DEADLINE, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]
