"""Results do not depend on the grid: chunks of 5, 20 and 60 seconds give the same shots, kept frames and words."""

import json
from pathlib import Path
from typing import Any

import pytest

from rushes.blobs.manifests import read_manifest
from rushes.library import JobRequest, Library
from rushes.plan.planner import results_of
from tests.acceptance.conftest import VOICE, draw

STAGES = ("playlist", "shots", "transcript")  # what is seen is compared in tests/unit/stages/test_sight.py


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty-six seconds with eleven of speech that cross a chunk bound, and a cut every three seconds."""
    return draw(tmp_path_factory.mktemp("grid") / "film.mp4", 26, (160, 90), voice=VOICE)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, film: Path) -> dict[str, dict[str, Any]]:
    found = {}
    for chunk in ("5", "20", "60"):
        with Library(tmp_path_factory.mktemp("home") / "home") as library:
            ran = library.run([film], JobRequest(only=STAGES, chunk=chunk, profile="fast"), beside=False)
            assert ran.exit_code == 0
            found[chunk] = gathered(library, ran.jobs[0].id)
    return found


def gathered(library: Library, job: str) -> dict[str, Any]:
    home = library.home
    pictures: list[tuple[int, str]] = []
    for task in library.jobs.tasks(job):
        if task.stage == "develop":
            manifest = read_manifest(home.blobs, "me", results_of(task.spec)["frames"])
            with home.blobs.open("me", manifest.artifact("frames.json").sha256) as f:
                index = json.load(f)
            with home.blobs.open("me", manifest.artifact("frames.pack").sha256) as f:
                pack = f.read()
            rows = index["frames"] if isinstance(index, dict) else index
            pictures += [(r["us"], pack[r["offset"] : r["offset"] + r["length"]].hex()) for r in rows]
    lines = library.videos.lines(library.videos.page()[0][0].id)
    chunks = len([t for t in library.jobs.tasks(job) if t.stage == "transcribe"])
    return {
        "chunks": chunks,
        "shots": library.videos.shots(library.videos.find(library.videos.page()[0][0].id)),
        "frames": sorted(pictures),
        "words": [w for line in lines for w in line.words],
    }


def test_the_grids_really_differ(runs: dict[str, dict[str, Any]]) -> None:
    assert [runs[c]["chunks"] for c in ("5", "20", "60")] == [6, 2, 1]


@pytest.mark.parametrize("what", ["shots", "frames", "words"])
def test_every_grid_gives_the_same(what: str, runs: dict[str, dict[str, Any]]) -> None:
    assert runs["60"][what]
    assert runs["5"][what] == runs["60"][what]
    assert runs["20"][what] == runs["60"][what]


def test_no_word_is_lost_or_doubled(runs: dict[str, dict[str, Any]]) -> None:
    said = " ".join(w[0] for w in runs["5"]["words"]).lower().replace(",", "").replace(".", "").replace("!", "")
    assert "ask not what your country can do for you ask what you can do for your country" in " ".join(said.split())
