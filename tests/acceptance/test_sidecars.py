"""Sidecars that are read again, beside runs of this home, or were written by somebody else: the index goes on."""

import base64
import os
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from rushes.annotations import imported_sidecars
from rushes.domain.keys import JSON
from rushes.domain.observation import Observation
from rushes.domain.span import Span
from rushes.exports import sidecar
from rushes.index.changes import Reset
from rushes.index.follower import SIDECAR_FILE
from rushes.index.people import PERSON
from rushes.index.port import find_video
from rushes.library import Library
from tests.acceptance.synthetic_library import Film, plant

SECOND = Span(0, 1000, Fraction(1, 1000))
LOOK = {"span": SECOND.to_json(), "box": [0, 0, 1, 1], "detections": [[SECOND.to_json(), [0, 0, 1, 1], 0.9]]}
UNIT = base64.b64encode(b"\0\0\x80\x3f" + b"\0" * 28).decode()


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with Library(tmp_path / ".rushes") as library:
        yield library


def _sidecar(
    folder: Path, *kinds: str, video: str = "vid_a", people: JSON = None, text: str = "hello", **facts: JSON
) -> Path:
    path = folder / str(facts.pop("file", "a.rushes.jsonl"))
    said = facts.pop("confidence", 1.0), facts.pop("language", "")
    lines = [Observation(kind, SECOND, text, *said) for kind in kinds or (facts.pop("kind", "speech"),)]
    head = {"video": video, "name": "a.mp4", "duration_us": 1_000_000, **facts}
    path.write_bytes(sidecar.write(head, lines, people or {}))
    return path


def test_a_sidecar_that_was_written_anew_is_read_again_and_its_video_is_settled(
    library: Library, tmp_path: Path
) -> None:
    library.maintenance.read_sidecars([_sidecar(tmp_path, "speech", "text")])
    library.maintenance.read_sidecars([_sidecar(tmp_path, text="goodbye")])
    for _ in range(2):
        library.videos.select_run(library.videos.get("vid_a"), "speech", "")
        assert [(h.kind, h.text) for h in library.search("hello OR goodbye").hits] == [("speech", "goodbye")]
        library.maintenance.reindex()


def test_a_run_of_this_home_counts_more_than_a_sidecar_that_is_newer(library: Library, tmp_path: Path) -> None:
    job = plant(library, Film(1).say(10, "the budget"))
    assert library.search("budget").total == 1
    library.maintenance.read_sidecars([_sidecar(tmp_path, "speech", "sound", video="vid_film01", people={})])
    for _ in range(2):
        library.videos.select_run(library.videos.get_many(["vid_film01"])["vid_film01"], "speech", "")
        assert [(h.kind, h.text) for h in library.search("hello OR budget", order="time").hits] == [
            ("sound", "hello"),
            ("speech", "the budget"),
        ]
        video = find_video(library.home.index, library.home.settings.owner, "vid_film01")
        assert video
        assert (video.job, video.name) == (job, "clip_01.mp4")
        library.maintenance.reindex()


def test_an_index_that_is_made_anew_by_itself_reads_sidecars_again(library: Library, tmp_path: Path) -> None:
    library.maintenance.read_sidecars([_sidecar(tmp_path)])
    library.home.index.apply(Reset())
    assert library.search("hello").total == 1


def test_a_sidecar_whose_drive_is_not_plugged_in_is_read_when_it_is(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _sidecar(tmp_path)
    library.maintenance.read_sidecars([path])
    unplugged = path.rename(tmp_path / "unplugged")
    library.home.index.apply(Reset())
    assert library.search("hello").total == 0
    unplugged.rename(path)
    assert library.search("hello").total == 0  # not looked for at every request
    monkeypatch.setattr(imported_sidecars, "AGAIN_SECONDS", -1.0)
    assert library.search("hello").total == 1
    assert library.home.index.cursor(SIDECAR_FILE) == "read"


def test_a_video_asked_for_by_its_id_is_read_again_too(library: Library, tmp_path: Path) -> None:
    library.maintenance.read_sidecars([_sidecar(tmp_path)])
    library.home.index.apply(Reset())
    assert library.videos.get("vid_a").name == "a.mp4"


def test_a_run_that_comes_later_takes_the_place_of_a_sidecar(library: Library, tmp_path: Path) -> None:
    library.maintenance.read_sidecars([_sidecar(tmp_path, video="vid_film01")])
    plant(library, Film(1).say(10, "the budget"))
    assert [h.text for h in library.search("hello OR budget").hits] == ["the budget"]


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"people": {"said": {"face_x": {"name": "Bob"}}}}, "people"),
        ({"people": {"said": {"face_x": {"start_us": 0, "end_us": 1, "box": [1, 2]}}}}, "people"),
        ({"people": {"said": ["Bob"]}}, "people"),
        ({"people": {"tracks": [{**LOOK, "embedding": "AAA="}]}}, "people"),
        ({"people": {"tracks": [{**LOOK, "embedding": base64.b64encode(b"\xff" * 4).decode()}]}}, "people"),
        ({"people": {"tracks": [{**LOOK, "span": [0, 1, 1, 0], "embedding": UNIT}]}}, "people"),
        ({"width": "wide"}, "about the video"),
        ({"rate": [25]}, "about the video"),
        ({"duration_us": 10**30}, "about the video"),
        ({"text": 5}, "not a sidecar"),
        ({"video": {"id": 5}}, "not a sidecar"),
        ({"video": "../vid"}, "not a sidecar"),
        ({"video": "vid\0"}, "not a sidecar"),
        ({"kind": "\ud800"}, "not a sidecar"),
        ({"language": "\ud800"}, "not a sidecar"),
        ({"confidence": 2}, "not a sidecar"),
        ({"people": {"said": {"\ud800": {"start_us": 0, "end_us": 1, "name": "Bob"}}}}, "people"),
    ],
)
def test_a_sidecar_that_cannot_be_is_refused_and_nothing_of_it_is_kept(
    library: Library, tmp_path: Path, facts: dict[str, JSON], why: str
) -> None:
    (read,) = library.maintenance.read_sidecars([_sidecar(tmp_path, **facts)])
    assert why in read.kept
    for _ in range(2):
        assert (library.search("hello").total, library.videos.page()[0], library.people.all()) == (0, (), [])
        assert not library.home.records.list(PERSON, library.home.settings.owner)[0]
        library.maintenance.reindex()


def test_a_sidecar_beside_a_film_whose_name_is_no_text_is_read_and_read_again(library: Library, tmp_path: Path) -> None:
    name = os.fsdecode(b"\xff.mp4")
    (read,) = library.maintenance.read_sidecars([_sidecar(tmp_path, file=os.fsdecode(b"\xff.rushes.jsonl"), name=name)])
    assert not read.kept
    for _ in range(2):
        assert library.search("hello").total == 1
        library.maintenance.reindex()


def test_a_home_that_took_in_what_cannot_be_said_of_a_face_goes_on(
    library: Library, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    good = {"video": "vid_a", "start_us": 0, "end_us": 1_000_000, "name": "Anna"}
    people = {"tracks": [{**LOOK, "embedding": UNIT}], "said": {"face_good": good}}
    library.home.records.put(PERSON, library.home.settings.owner, "face_bad", {"video": "vid_a", "name": "Bob"})
    library.maintenance.read_sidecars([_sidecar(tmp_path, people=people)])
    assert [p.name for p in library.people.all()] == ["Anna"]
    assert "face_bad" in caplog.text
