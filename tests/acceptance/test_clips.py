"""Clips as people ask for them, from the original and from the proxy."""

from collections.abc import Iterator
from pathlib import Path

import av
import pytest

from rushes.domain.errors import Refused, SourceMissing
from rushes.library import JobRequest, Library
from tests.acceptance.conftest import draw

WISH = JobRequest(chunk="5", only=("playlist",))


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with Library(tmp_path / ".rushes") as opened:
        yield opened


def frames(path: str) -> int:
    with av.open(path) as container:
        return sum(1 for _ in container.decode(video=0))


def test_a_clip_from_the_proxy_needs_no_original(library: Library, tmp_path: Path) -> None:
    film = draw(tmp_path / "film.mp4", 4)
    library.run([film], WISH)
    original = library.clip("film.mp4", 1_000_000, 3_000_000, 0)
    film.rename(tmp_path / "elsewhere.mov")
    proxy = library.clip("film.mp4", 1_000_000, 3_000_000, 0, proxy=True)
    assert original.id != proxy.id
    assert frames(original.path) == frames(proxy.path)
    assert not library.clip("film.mp4", 1_000_000, 3_000_000, 0, proxy=True).made
    assert {clip.id for clip in library.clips.newest()} == {original.id, proxy.id}  # also those of the terminal
    with pytest.raises(SourceMissing):
        library.clip("film.mp4", 2_000_000, 3_000_000, 0)


def test_without_a_proxy_that_is_said(library: Library, tmp_path: Path) -> None:
    library.run([draw(tmp_path / "film.mp4", 2)], JobRequest(only=("audio",)))
    with pytest.raises(Refused, match="no proxy"):
        library.clip("film.mp4", 0, 1_000_000, 0, proxy=True)
