"""A correction reaches every reader: exports, files beside the film, the sidecar, subtitles of clips."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import av
import pytest

from rushes.exports import sidecar
from rushes.library import JobRequest, Library
from rushes.library.videos import Video
from tests.acceptance.synthetic_library import Film, plant

WISH = JobRequest(only=("transcript",), profile="fast")
SAID, MEANT = "country", "continent"
TEXTS = ("srt", "vtt", "txt", "json", "words", "csv", "jsonl")


@pytest.fixture(scope="module")
def transcribed(tmp_path_factory: pytest.TempPathFactory, spoken_film: Path) -> Path:
    """A folder with a film, its home and the files beside it."""
    folder = tmp_path_factory.mktemp("transcribed")
    film = Path(shutil.copy(spoken_film, folder / "spoken.mp4"))
    with Library(folder / ".rushes") as library:
        assert library.run([film], WISH).exit_code == 0
    return folder


@pytest.fixture
def library(transcribed: Path, tmp_path: Path) -> Iterator[Library]:
    shutil.copytree(transcribed, tmp_path / "films")
    with Library(tmp_path / "films" / ".rushes") as library:
        library.videos.write_sidecars(library.videos.find("spoken.mp4"))
        yield library


@pytest.fixture
def video(library: Library) -> Video:
    return library.videos.find("spoken.mp4")


def beside(library: Library) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in library.originals.iterdir() if p.is_file() and p.suffix != ".mp4"}


def correct(library: Library, video: Video, old: str = SAID, new: str = MEANT) -> str:
    line = next(line for line in library.videos.lines(video.id) if old in line.text)
    text = line.text.replace(old, new)
    return library.videos.correct(video, line.span.start_us, line.span.end_us, text).id


def test_every_export_follows_a_correction(library: Library, video: Video) -> None:
    before = {kind: library.videos.export(video, kind) for kind in TEXTS}
    id = correct(library, video)
    for kind in TEXTS:
        data = library.videos.export(video, kind).decode()
        assert MEANT in data, kind
        assert SAID not in data, kind
    assert library.search(MEANT).total
    library.videos.undo_correction(id)
    assert {kind: library.videos.export(video, kind) for kind in TEXTS} == before


def test_a_line_that_is_corrected_to_nothing_goes_everywhere(library: Library, video: Video) -> None:
    for line in library.videos.lines(video.id):
        library.videos.correct(video, line.span.start_us, line.span.end_us, "")
    assert json.loads(library.videos.export(video, "json"))["lines"] == []
    assert SAID not in library.videos.export(video, "srt").decode()
    assert SAID not in (library.originals / "spoken.en.srt").read_text()


def test_files_beside_the_film_are_written_by_who_corrects_and_stay_so_after_a_run(
    library: Library, video: Video
) -> None:
    before, film = beside(library), library.originals / "spoken.mp4"
    id = correct(library, video)
    for name in ("spoken.en.srt", "spoken.en.vtt", "spoken.txt", "spoken.words.json", "spoken.rushes.jsonl"):
        assert MEANT in beside(library)[name].decode(), name
    found = sidecar.read(beside(library)["spoken.rushes.jsonl"])
    assert found
    assert any(MEANT in line.text for line in found.lines)
    corrected = beside(library)
    assert library.run([film], WISH).exit_code == 0
    assert beside(library) == corrected
    library.videos.undo_correction(id)
    assert beside(library) == before


def test_a_file_that_somebody_changed_or_removed_is_left_as_it_is(library: Library, video: Video) -> None:
    (library.originals / "spoken.en.srt").write_text("mine")
    (library.originals / "spoken.en.vtt").unlink()
    correct(library, video)
    assert (library.originals / "spoken.en.srt").read_text() == "mine"
    assert not (library.originals / "spoken.en.vtt").exists()
    assert MEANT in (library.originals / "spoken.txt").read_text()


def test_subtitles_of_a_clip_are_the_corrected_ones(library: Library, video: Video) -> None:
    def cut() -> tuple[str, bytes]:
        made = library.clip(video.id, 0, 12_000_000, 0, subtitles="track")
        with av.open(made.path) as container:
            return made.id, b" ".join(bytes(p)[2:] for p in container.demux(subtitles=0) if p.size > 2)

    first, heard = cut()
    assert SAID.encode() in heard
    correct(library, video)
    second, said = cut()
    assert second != first
    assert MEANT.encode() in said
    assert SAID.encode() not in said


def test_a_film_in_two_languages_has_subtitles_in_each(tmp_path: Path) -> None:
    with Library(tmp_path / ".rushes") as library:
        plant(library, Film(1).say(5, "good morning everybody").say(20, "guten Morgen zusammen", "de"))
        video = library.videos.find("vid_film01")
        (library.originals / video.path).parent.mkdir(parents=True)
        (library.originals / video.path).touch()
        names = {f.path.name for f in library.videos.write_sidecars(video)}
        assert {"clip_01.en.srt", "clip_01.de.srt", "clip_01.en.vtt", "clip_01.de.vtt"} <= names
        german = (library.originals / video.path).with_name("clip_01.de.srt").read_text()
        assert "guten Morgen" in german
        assert "good" not in german
        assert library.videos.export(video, "srt", language="de").decode() == german
