from fractions import Fraction
from pathlib import Path

import av
import pytest

from rushes.domain.errors import NeverWorks
from rushes.domain.keys import canonical
from rushes.domain.observation import Observation
from rushes.domain.span import Span
from rushes.stages import clip, probe
from rushes.stages.port import OutputDraft
from tests.unit.film_work import FilmWork
from tests.unit.media_files import Film, cfr, decoded, make, plain


def clipped(film: Path, folder: Path, **options: object) -> FilmWork:
    work = FilmWork(film, folder)
    work.run(probe.STAGE)
    work.run(clip.STAGE, options=options)
    return work


def test_a_clip_has_room_on_both_sides(tmp_path: Path) -> None:
    film = plain(tmp_path / "x.mp4", 4)
    work = clipped(film, tmp_path, start_us=1_600_000, end_us=2_000_000, padding_ms=400, clip_id="clip_abc")
    made = work.made["clip.clip"][0]
    (artifact,) = made.manifest.artifacts
    assert artifact.publish
    assert artifact.publish.startswith("videos/clips/vid_")
    assert artifact.publish.endswith("/clip_abc.mp4")
    assert [n for _, n in decoded(made.path("clip.mp4"))] == list(range(30, 60))
    assert made.manifest.facts == {"start_us": 1_200_000, "end_us": 2_400_000, "frames": 30, "copied": 0}


def test_sound_alone_can_be_cut(tmp_path: Path) -> None:
    film = make(tmp_path / "x.m4a", Film([], tone=Fraction(3)))
    work = clipped(film, tmp_path, start_us=1_000_000, end_us=2_000_000, padding_ms=0)
    assert work.made["clip.clip"][0].manifest.facts["frames"] == 0


@pytest.mark.parametrize(
    "options",
    [
        {"start_us": 5, "end_us": 5},
        {"start_us": 0, "end_us": 900_000, "clip_id": "../../etc/passwd"},
        {"start_us": 0, "end_us": 900_000, "source": "file:/etc/passwd"},
        {"start_us": 0, "end_us": 900_000, "subtitles": "burn"},
    ],
)
def test_nonsense_is_refused_in_words(options: dict[str, object], tmp_path: Path) -> None:
    film = plain(tmp_path / "x.mp4", 1)
    with pytest.raises(NeverWorks, match="clip"):
        clipped(film, tmp_path, **options)


def spoken(folder: Path) -> FilmWork:
    """Four seconds in which something is said after one and a half."""
    work = FilmWork(make(folder / "x.mp4", Film(cfr(4), tone=Fraction(4))), folder)
    work.run(probe.STAGE)
    said = Observation("speech", Span(1500, 2500, Fraction(1, 1000)), "hello there", 0.9)
    doc = {"language": "en", "lines": [said.to_json()]}
    artifact = work.artifact("transcript.json", canonical(doc), "application/json")
    work.keep("transcript", "transcript", OutputDraft([artifact]))
    return work


@pytest.mark.parametrize("kind", ["track", "burnt"])
def test_where_nobody_speaks_a_clip_has_no_subtitles(kind: str, tmp_path: Path) -> None:
    work = spoken(tmp_path)
    work.run(clip.STAGE, options={"start_us": 0, "end_us": 1_000_000, "padding_ms": 0, "subtitles": kind})
    path = work.made["clip.clip"][-1].path("clip.mp4")
    assert [n for _, n in decoded(path)] == list(range(25))
    with av.open(str(path)) as container:
        assert not container.streams.subtitles


@pytest.mark.parametrize("kind", ["track", "burnt"])
def test_what_is_said_can_be_read_in_the_clip(kind: str, tmp_path: Path) -> None:
    work = spoken(tmp_path)
    asked = {"start_us": 1_000_000, "end_us": 3_000_000, "padding_ms": 0}
    work.run(clip.STAGE, options=asked | {"subtitles": kind})
    path = work.made["clip.clip"][-1].path("clip.mp4")
    assert [n for _, n in decoded(path)] == list(range(25, 75))
    with av.open(str(path)) as container:
        assert len(container.streams.subtitles) == (kind == "track")
        if kind == "track":
            packets = [p for p in container.demux(subtitles=0) if p.size > 2]
            assert [bytes(p)[2:] for p in packets] == [b"hello there"]
            assert [float((p.pts or 0) * p.time_base) for p in packets] == [0.5]
