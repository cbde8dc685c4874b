"""Names beside films that share one but for its ending: each film keeps its own files."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rushes.exports import sidecar
from rushes.library import Library
from rushes.library.videos.sidecar_files import write_all
from tests.acceptance.synthetic_library import Film, plant


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with Library(tmp_path / ".rushes") as library:
        for number in (1, 2):
            plant(library, Film(number).say(10, "the budget"))
        yield library


def _written(library: Library, video: str, film: Path) -> set[str]:
    film.touch()
    files = write_all(library.home, replace(library.videos.find(video), path=str(film)))
    assert not [f.kept for f in files if f.kept]
    return {f.path.name for f in files}


def _video_beside(path: Path) -> str:
    found = sidecar.read(path.read_bytes())
    return str(found and found.facts["video"])


def test_two_films_of_one_name_do_not_write_over_each_other(
    library: Library, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        first = _written(library, "vid_film01", tmp_path / "a.mp4")
        second = _written(library, "vid_film02", tmp_path / "a.mov")
        assert {"a.rushes.jsonl", "a.csv"} <= first
        assert second == {f"a.mov{name.removeprefix('a')}" for name in first}
        assert _video_beside(tmp_path / "a.rushes.jsonl") == "vid_film01"
        assert _video_beside(tmp_path / "a.mov.rushes.jsonl") == "vid_film02"
    assert "a.rushes.jsonl already belongs to a.mp4: writing a.mov.rushes.jsonl instead" in caplog.text


def test_a_film_that_was_made_anew_keeps_the_names_beside_it(library: Library, tmp_path: Path) -> None:
    before = _written(library, "vid_film01", tmp_path / "a.mp4")
    assert _written(library, "vid_film02", tmp_path / "a.mp4") == before
    (tmp_path / "a.mp4").unlink()
    assert _written(library, "vid_film01", tmp_path / "a.mov") == before
