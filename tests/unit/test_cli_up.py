"""A whole fleet on this machine: real servers that are stopped, killed, started again, and keep their data."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

DEADLINE = 120.0
HINT = "DATABASE_URL"  # of another database: must not win over the fleet's own


class Up:
    """`rushes up` in a folder, heard line by line."""

    def __init__(self, folder: Path) -> None:
        argv = [sys.executable, "-m", "rushes", "up", str(folder), "--workers", "0", "--json"]
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
def ups(tmp_path: Path) -> Iterator[list[Up]]:
    made: list[Up] = []
    yield made
    for one in made:
        if one.process.poll() is None:
            one.end(signal.SIGTERM)


def test_a_fleet_keeps_its_data_through_a_kill_and_leaves_nothing_running(ups: list[Up], tmp_path: Path) -> None:
    folder = tmp_path / "fleet"
    ups.append(Up(folder))
    first = ups[0].ready()
    assert [part["name"] for part in ups[0].parts] == ["PostgreSQL", "Valkey", "SeaweedFS"]
    with psycopg.connect(first["settings"]["store"], autocommit=True) as database:
        database.execute("CREATE TABLE kept (word text)")

    other = subprocess.run(
        [sys.executable, "-m", "rushes", "up", str(folder)], capture_output=True, text=True, check=False
    )
    assert other.returncode == 2
    assert "runs in" in other.stderr

    assert ups[0].end(signal.SIGKILL) == -signal.SIGKILL
    assert len(ups[0].alive) == 3
    (folder / "home" / "rushes.toml").write_text('profile = "fast"\n')
    ups.append(Up(folder))
    second = ups[1].ready()
    assert not ups[0].alive, "what was left behind is ended first"
    with psycopg.connect(second["settings"]["store"]) as database:
        assert database.execute("SELECT count(*) FROM kept").fetchone() == (0,)
    written = (folder / "home" / "rushes.toml").read_text()
    assert 'profile = "fast"' in written, "what a person wrote stays"
    assert second["settings"]["store"] in written
    assert (folder / "home" / "rushes.toml").stat().st_mode & 0o077 == 0

    assert ups[1].end(signal.SIGINT) == 130
    assert not ups[1].alive
