"""A film that has taken over its decoder gets nowhere: no network, no file, no program, no secret, no other process."""

import json
import os
import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from rushes.blobs.manifests import read_manifest
from rushes.library import JobRequest, Library
from rushes.plan.planner import results_of
from rushes.worker.sandbox import ON, REQUIRED
from rushes.worker.sandbox.report import layers_here

BURGLAR = Path(__file__).resolve().parents[1] / "burglar"
SECRET = "hunter2-of-the-worker"


@pytest.fixture(scope="module")
def loot(tmp_path_factory: pytest.TempPathFactory, toy_film: Path) -> Iterator[Any]:
    """What a stage that tries to get out has found, and where it was."""
    if missing := [name for name in REQUIRED if layers_here()[name] != ON]:
        pytest.skip(f"this kernel has no {missing}")
    folder = tmp_path_factory.mktemp("home")
    film = folder / "films" / "film.mp4"
    film.parent.mkdir()
    film.write_bytes(toy_film.read_bytes())
    film.chmod(0o640)
    (film.parent / "diary.txt").write_text(SECRET)
    with ExitStack() as held, pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BURGLAR))
        patch.setenv("PYTHONPATH", str(BURGLAR))
        for name in ("AWS_SECRET_ACCESS_KEY", "RUSHES_TOKEN"):
            patch.setenv(name, SECRET)
        library = held.enter_context(Library(folder / "home"))
        told = _told(folder, film, library, held)
        wanted = JobRequest(only=("burglar",), options={"burglar": {"told": told}})
        (job,) = library.run([film], wanted, slots=1).jobs
        (task,) = [t for t in library.jobs.tasks(job.id) if t.stage == "burglar"]
        assert task.failure is None, task.failure
        manifest = read_manifest(library.home.blobs, "me", results_of(task.spec)["loot"])
        with library.home.blobs.open("me", manifest.artifact("loot.json").sha256) as file:
            yield {**json.load(file), "film": film, "folder": folder}


def _told(folder: Path, film: Path, library: Library, held: ExitStack) -> Any:
    home = folder / "home"
    (home / "rushes.toml").write_text(f'token = "{SECRET}"\n')
    server = held.enter_context(socket.create_server(("127.0.0.1", 0)))
    unix = held.enter_context(socket.socket(socket.AF_UNIX))
    unix.bind(str(folder / "line"))
    unix.listen()
    blob = library.home.blobs.put("me", SECRET.encode())
    return {
        "home": str(home),
        "film": str(film),
        "port": server.getsockname()[1],
        "unix": str(folder / "line"),
        "blob": blob.sha256,
        "secrets": [
            str(home / "ledger.sqlite"),
            str(home / "rushes.toml"),
            str(library.home.blobs.local("me", blob.sha256)),
            str(film),
            str(film.parent / "diary.txt"),
            "/etc/shadow",
            "/etc/passwd",
            str(Path.home() / ".bashrc"),
        ],
        "folders": [
            str(home),
            str(home / "scratch"),
            str(film.parent),
            "/tmp",
            "/dev/shm",
            str(Path(os.__file__).parent),
        ],
    }


def test_everything_that_a_slot_tries_against_its_home_fails(loot: Any) -> None:
    assert {name: found for name, found in loot["tried"].items() if found == "done"} == {}
    assert len(loot["tried"]) >= 29


def test_each_try_is_stopped_by_the_layer_that_is_meant_to(loot: Any) -> None:
    tried = loot["tried"]
    files = [found for name, found in tried.items() if name.startswith(("read /", "write /", "run a", "list"))]
    refused = ("PermissionError", "OSError: [Errno 38]", "FileNotFoundError")  # not every home has a .bashrc
    assert [found for found in files if not found.startswith(refused)] == []
    assert tried["read a blob of another task"].startswith("NeverWorks")
    assert tried["store for another owner"].startswith("NeverWorks")
    for name in ("connect over TCP", "open a socket of this machine", "trace the worker", "mount", "write the film"):
        assert tried[name].startswith("PermissionError"), tried[name]


def test_no_secret_of_the_worker_is_in_the_environment_of_a_slot(loot: Any) -> None:
    environment = loot["state"]["environment"]
    assert SECRET not in json.dumps(environment)
    assert not {name for name in environment if name.startswith(("AWS", "RUSHES")) and name != "RUSHES_WORKER_PID"}


def test_a_slot_has_no_capabilities_no_network_and_an_end_to_everything(loot: Any) -> None:
    state = loot["state"]
    assert int(state["status"]["CapEff"], 16) == 0
    assert (state["status"]["NoNewPrivs"], state["status"]["Seccomp"]) == ("1", "2")
    assert state["interfaces"] == ["lo"]
    assert state["limits"]["CORE"] == 0
    assert all(limit != resource.RLIM_INFINITY for limit in state["limits"].values())


def test_the_mode_of_a_foreign_file_stays_as_it_is(loot: Any) -> None:
    assert loot["film"].stat().st_mode & 0o777 == 0o640


def test_nothing_was_left_outside_the_scratch(loot: Any) -> None:
    assert list(loot["folder"].rglob("mine")) == []
    assert list((loot["folder"] / "home" / "scratch").iterdir()) == []
