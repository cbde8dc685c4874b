"""Footage that lies elsewhere is the same footage: through a reader of ours, never by URL."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from rushes.domain.errors import BadMedia, RushesError, SourceChanged, StoreAway
from rushes.domain.video import Fingerprint
from rushes.media.open import open_footage
from rushes.media.reading.frames import decode
from rushes.media.reading.probe import hash_file, probe
from tests.unit.media_files import Film, cfr, decoded, make, number_of, plain


class _Elsewhere:
    """A file whose reader may fail after some reads."""

    def __init__(self, path: Path, failing: Callable[[int], RushesError | None] = lambda _at: None) -> None:
        self._path, self._failing = path, failing
        self.name = path.name
        self.taken_in = Fingerprint(f"s3://films/{path.name}", path.stat().st_size, 0, etag="one")

    def open(self) -> BinaryIO:
        return io.BufferedReader(_Reader(self._path, self._failing), 1 << 12)


class _Reader(io.FileIO):
    def __init__(self, path: Path, failing: Callable[[int], RushesError | None]) -> None:
        super().__init__(path)
        self._failing = failing

    def readinto(self, buffer: Any) -> int:
        if error := self._failing(self.tell()):
            raise error
        return super().readinto(memoryview(buffer)[:4096])


@pytest.mark.parametrize("kind", ["film.mp4", "film.mkv", "film.ts"])
def test_a_film_elsewhere_has_the_same_facts_and_frames(tmp_path: Path, kind: str) -> None:
    path = plain(tmp_path / kind)
    facts = probe(path)
    assert probe(_Elsewhere(path)) == facts
    assert hash_file(_Elsewhere(path)) == hash_file(path)
    assert facts.video
    near = [(f.pts, number_of(f)) for f in decode(path, facts, facts.video.span)]
    assert [(f.pts, number_of(f)) for f in decode(_Elsewhere(path), facts, facts.video.span)] == near
    assert near == decoded(path)


@pytest.mark.parametrize("error", [StoreAway("gone"), SourceChanged("other")])
@pytest.mark.parametrize("kind", ["film.mp4", "film.mkv", "film.ts"])
def test_a_store_that_fails_in_the_middle_is_no_fault_of_the_film(
    tmp_path: Path, kind: str, error: RushesError
) -> None:
    path = make(tmp_path / kind, Film(cfr(4), noise=40))
    facts, half = probe(path), path.stat().st_size // 2
    assert facts.video
    far = _Elsewhere(path, lambda at: error if half <= at < half + 50_000 else None)
    with pytest.raises(type(error)):
        hash_file(far)
    with pytest.raises(type(error)):
        probe(far)
    with pytest.raises(type(error)):
        list(decode(far, facts, facts.video.span))


def test_what_is_no_footage_is_refused_there_as_well(tmp_path: Path) -> None:
    playlist = tmp_path / "list.mp4"
    playlist.write_bytes(b"#EXTM3U\nfile:///etc/passwd\n")
    empty = tmp_path / "empty.mp4"
    empty.touch()
    for path in (playlist, empty):
        with pytest.raises(BadMedia), open_footage(_Elsewhere(path)):
            pass
