"""3D through its stages: seamless, in time, whole."""

import hashlib
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from rushes.domain.errors import NeverWorks
from rushes.domain.span import Span
from rushes.media.stereo.depth import (
    MAX_NEGATIVE_PARALLAX,
    MAX_POSITIVE_PARALLAX,
    MAX_STRENGTH,
    REACH,
    DepthEntry,
    DepthIndex,
    DepthMap,
    TemporalDepth,
    read_map,
)
from rushes.media.stereo.frame_packing import StereoFormat
from rushes.stages.stereo import _near
from tests.unit.media_files import Film, cfr, make, vfr
from tests.unit.stereo_kit import Made, in_3d

SMALL = (160, 90)


def pictures(path: Path) -> list[tuple[int, str]]:
    """Time and hash of each picture as decoded."""
    with av.open(str(path)) as film:
        return [(f.pts or 0, hashlib.sha256(f.to_ndarray().tobytes()).hexdigest()) for f in film.decode(video=0)]


def out(tmp_path: Path, name: str) -> Path:
    (tmp_path / name).mkdir()
    return tmp_path / name


def test_the_same_film_in_chunks_of_any_length_renders_the_same_pixels(tmp_path: Path) -> None:
    film = make(tmp_path / "x.mp4", Film(cfr(21, rate=8), rate=8, size=SMALL, gop=8, cuts=(45, 102), noise=8))
    lossless = {"format": "full-sbs", "crf": 0}
    seen = []
    for seconds in (5, 20, 60):
        made = in_3d(film, out(tmp_path, str(seconds)), seconds, stereo=lossless)
        assert len(made.pieces) == {5: 5, 20: 2, 60: 1}[seconds]
        seen.append(pictures(made.path(tmp_path / str(seconds))))
    assert len(seen[0]) == 168
    assert seen[0] == seen[1] == seen[2]


def test_depth_moves_no_more_across_a_bound_than_between_any_two_frames(tmp_path: Path) -> None:
    film = make(tmp_path / "x.mp4", Film(cfr(16, rate=8), rate=8, size=SMALL, gop=8))
    made = in_3d(film, tmp_path, 5)
    track = made.work.facts.video
    assert track
    step = int(Fraction(1, 8) / track.base)
    levels, bounds = list[float](), list[int]()
    for piece in made.pieces:
        span = Span(piece.manifest.facts["start"], piece.manifest.facts["end"], track.base)
        shown = depth_of(made, span)
        levels += [shown.at(pts, made.grades[0]).mean() for pts in range(span.start, span.end, step)]
        bounds.append(len(levels) - 1)
    moves = np.abs(np.diff(levels))
    assert bounds == [39, 79, 119, 127]
    assert moves[bounds[:-1]].max() <= np.delete(moves, bounds[:-1]).max()


def depth_of(made: Made, span: Span) -> TemporalDepth:
    """Depth as the task of one chunk knows it."""
    grade = made.work.made["grade.grade"][0]
    near = _near(grade.json("grade.json")["maps"], span, REACH)
    indices = {n: DepthIndex.from_json(grade.json(f"depth_{n:05d}.json")) for n in near}
    homes = {depth.pts: n for n, index in indices.items() for depth in index.maps}

    def read(depth: DepthEntry) -> DepthMap:
        n = homes[depth.pts]
        with grade.path(f"depth_{n:05d}.bin").open("rb") as file:
            return read_map(file, depth, indices[n].size)

    return TemporalDepth([depth for index in indices.values() for depth in index.maps], read, span.base)


def test_frames_times_and_sound_are_those_of_the_original(tmp_path: Path) -> None:
    film = make(tmp_path / "x.mp4", Film(cfr(11), size=SMALL, tone=Fraction(11)))
    made = in_3d(film, tmp_path, 5)
    with av.open(str(film)) as was, av.open(str(made.path(tmp_path))) as now:
        assert [f.time for f in was.decode(video=0)] == [f.time for f in now.decode(video=0)]
    with av.open(str(film)) as was, av.open(str(made.path(tmp_path))) as now:
        before, after = ([bytes(p) for p in c.demux(audio=0) if p.size] for c in (was, now))
        assert before == after
    assert made.film.facts["frames"] == 275


def test_uneven_times_a_late_picture_and_foreign_sound_are_kept(tmp_path: Path) -> None:
    times = [1500 + t for t in vfr(8)]
    uneven = Film(times, base=Fraction(1, 1000), size=SMALL, gop=12, tone=Fraction(9), kind="matroska")
    film = make(tmp_path / "x.mkv", uneven)
    made = in_3d(film, tmp_path, 5)
    with av.open(str(made.path(tmp_path))) as now:
        shown = [round(float(f.time or 0) * 1000) for f in now.decode(video=0)]
    zero = made.work.facts.start * 1000
    assert shown == [round(t - zero) for t in times]
    assert made.film.facts["sounds"]


def test_a_phones_picture_is_upright(tmp_path: Path) -> None:
    film = make(tmp_path / "x.mp4", Film(cfr(1), size=SMALL, rotation=90))
    made = in_3d(film, tmp_path, stereo={"format": "full-sbs"})
    with av.open(str(made.path(tmp_path))) as now:
        frame = next(now.decode(video=0))
    assert (frame.width, frame.height) == (2 * 88, 160)  # 90 cannot be halved twice


@pytest.mark.parametrize(
    ("format", "size", "tag"),
    [
        (StereoFormat.HALF_SBS, (160, 90), b"st3d\0\0\0\0\2"),
        (StereoFormat.FULL_SBS, (320, 90), b"st3d\0\0\0\0\2"),
        (StereoFormat.HALF_TB, (160, 88), b"st3d\0\0\0\0\1"),
        (StereoFormat.FULL_TB, (160, 176), b"st3d\0\0\0\0\1"),
        (StereoFormat.DUBOIS, (160, 90), b""),
    ],
)
def test_each_format_has_its_size_and_says_what_it_is(
    tmp_path: Path, format: StereoFormat, size: tuple[int, int], tag: bytes
) -> None:
    film = make(tmp_path / "x.mp4", Film(cfr(0.4), size=SMALL))
    path = in_3d(film, tmp_path, stereo={"format": str(format)}).path(tmp_path)
    with av.open(str(path)) as now:
        frame = next(now.decode(video=0))
        assert (frame.width, frame.height) == size
    assert tag in path.read_bytes()
    assert (b"st3d" in path.read_bytes()) == bool(tag)


def test_the_same_film_gives_the_same_bytes(tmp_path: Path) -> None:
    film = make(tmp_path / "x.mp4", Film(cfr(6, rate=8), rate=8, size=SMALL, gop=8, tone=Fraction(6)))
    one, two = (in_3d(film, out(tmp_path, name), 5).film.artifacts[0].sha256 for name in ("a", "b"))
    assert one == two


def test_comfort_has_a_limit(tmp_path: Path) -> None:
    film = make(tmp_path / "x.mp4", Film(cfr(1), size=SMALL))
    for wanted in ({"strength": 9}, {"convergence": -5}, {"strength": "much"}):
        with pytest.raises(NeverWorks):
            in_3d(film, tmp_path, grade=wanted)
    strong = in_3d(film, tmp_path, grade={"strength": MAX_STRENGTH}).grades[0]
    assert strong.strength - strong.convergence <= MAX_NEGATIVE_PARALLAX
    assert strong.convergence <= MAX_POSITIVE_PARALLAX


def test_an_unknown_format_is_refused_with_those_that_exist(tmp_path: Path) -> None:
    film = make(tmp_path / "x.mp4", Film(cfr(0.4), size=SMALL))
    with pytest.raises(NeverWorks, match="hologram"):
        in_3d(film, tmp_path, stereo={"format": "hologram"})


def test_sound_alone_has_no_3d(tmp_path: Path) -> None:
    film = make(tmp_path / "x.m4a", Film([], tone=Fraction(2)))
    assert in_3d(film, tmp_path).film.artifacts == []
