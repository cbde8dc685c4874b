"""A stage of somebody else: installed like any package, planned, run, adopted and searched for like ours."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rushes.blobs.manifests import read_manifest
from rushes.domain.event import EventType
from rushes.library import JobRequest, Library
from rushes.plan.planner import results_of

PACKAGE = Path(__file__).resolve().parents[1] / "example_package"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The example package, installed by pip into a folder of its own."""
    target = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "--target", str(target), str(PACKAGE)], check=True, capture_output=True)
    monkeypatch.syspath_prepend(str(target))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(target)]))
    return target


@pytest.mark.usefixtures("installed")
def test_an_installed_package_adds_a_stage(tmp_path: Path, toy_film: Path) -> None:
    with Library(tmp_path / "home") as library:
        (job,) = library.run([toy_film], JobRequest(only=("brightness",), chunk="5")).jobs
        tasks = [t for t in library.jobs.tasks(job.id) if t.stage == "brightness"]
        assert len(tasks) == 8
        manifest = read_manifest(library.home.blobs, "me", results_of(tasks[0].spec)["levels"])
        with library.home.blobs.open("me", manifest.artifact("levels.json").sha256) as f:
            levels = json.load(f)
        assert levels
        assert all(0 <= row["level"] <= 1 for row in levels)
        assert [e.data["line"] for e in library.jobs.log(tasks[0].id)] == [f"{len(levels)} frames looked at"]

        (again,) = library.run(
            [toy_film], JobRequest(only=("brightness",), chunk="5", options={"brightness": {"digits": 3}})
        ).jobs
        ran = {e.data["stage"] for e in library.jobs.follow(again.id) if e.type is EventType.DONE}
        assert ran == {"brightness"}, "other options are another question; everything else is adopted"
