import tracemalloc
from dataclasses import replace
from fractions import Fraction
from itertools import repeat
from pathlib import Path

import av
import numpy as np
import pytest
from numpy.typing import NDArray

from rushes.domain.errors import BadMedia
from rushes.domain.span import Span
from rushes.media.clips import smart_cut
from rushes.media.clips.clip import ClipFacts, cut_clip
from rushes.media.reading.nal import ParameterSets
from rushes.media.reading.probe import probe
from tests.unit.media_files import Film, cfr, make, vfr

TS, MS = Fraction(1, 90000), Fraction(1, 1000)
PLAIN = Film(cfr(4), tone=Fraction(4), noise=10)
OPEN = {"x264-params": "open-gop=1:bframes=3", "bf": "3"}
FILMS = {
    "25.mp4": PLAIN,
    "23_976.mp4": Film([i * 1001 for i in range(96)], base=Fraction(1, 24000), rate=Fraction(24000, 1001), noise=10),
    "60.mov": Film(cfr(3, 60, Fraction(1, 15360)), base=Fraction(1, 15360), rate=60, noise=10),
    "vfr.mkv": Film(vfr(6), base=MS, noise=10),
    "25.ts": Film(cfr(4, 25, TS), base=TS, noise=10),
    "pyramid.mp4": Film(cfr(4), noise=10, options={"x264-params": "bframes=4:b-pyramid=normal", "bf": "4"}),
    "baseline.mp4": Film(cfr(4), noise=10, bframes=0, options={"profile": "baseline"}),
    "wide.mp4": Film(cfr(4), noise=10, sar=Fraction(4, 3)),
    "full_range.mp4": Film(cfr(4), noise=10, pixels="yuvj420p"),
    "late.mp4": replace(PLAIN, times=cfr(4, start=19200)),
}


def frames(path: Path) -> list[tuple[Fraction, NDArray[np.uint8]]]:
    with av.open(str(path)) as container:
        base = container.streams.video[0].time_base
        assert base
        return [((f.pts or 0) * base, f.to_ndarray().astype(np.uint8)) for f in container.decode(video=0)]


def cut(path: Path, start: Fraction, end: Fraction, out: Path) -> ClipFacts:
    return cut_clip(path, probe(path), start, end, out, lambda _: None)


def psnr(a: NDArray[np.uint8], b: NDArray[np.uint8]) -> float:
    return float(10 * np.log10(255**2 / (np.mean((a.astype(float) - b) ** 2) + 1e-9)))


@pytest.mark.parametrize("name", FILMS)
def test_the_middle_is_copied_and_both_ends_are_close(name: str, tmp_path: Path) -> None:
    path = make(tmp_path / name, FILMS[name])
    whole = frames(path)
    start, end = whole[13][0], whole[-9][0]
    made = cut(path, start, end, tmp_path / "clip.mp4")
    want, got = [(t - start, p) for t, p in whole if start <= t < end], frames(tmp_path / "clip.mp4")
    assert [t for t, _ in got] == [t for t, _ in want]
    same = [np.array_equal(a, b) for (_, a), (_, b) in zip(got, want, strict=True)]
    assert sum(same) >= made.copied > len(want) // 4
    assert all(same[25:30])  # a key frame every 25 frames: these lie behind the first
    assert min(psnr(a, b) for (_, a), (_, b) in zip(got, want, strict=True)) > 33


def test_from_key_frame_to_key_frame_nothing_is_encoded(tmp_path: Path) -> None:
    path = make(tmp_path / "x.mp4", PLAIN)
    made = cut(path, Fraction(1), Fraction(3), tmp_path / "clip.mp4")
    assert (made.frames, made.copied) == (50, 50)
    whole, got = frames(path)[25:75], frames(tmp_path / "clip.mp4")
    assert all(np.array_equal(a, b) for (_, a), (_, b) in zip(got, whole, strict=True))


@pytest.mark.parametrize(
    ("name", "film"),
    [
        ("open_gop.mp4", replace(PLAIN, options=OPEN)),  # what follows a key frame may need what lies before it
        ("short.mp4", replace(PLAIN, gop=1000)),  # no key frame inside
        ("mpeg4.mp4", replace(PLAIN, codec="mpeg4")),
        ("10_bit.mkv", replace(PLAIN, pixels="yuv420p10le")),
        ("interlaced.mp4", replace(PLAIN, options={"flags": "+ildct+ilme", "x264-params": "tff=1"})),
    ],
)
def test_where_it_would_not_be_exact_all_is_encoded(name: str, film: Film, tmp_path: Path) -> None:
    path = make(tmp_path / name, film)
    made = cut(path, Fraction(1, 2), Fraction(7, 2), tmp_path / "clip.mp4")
    assert (made.frames, made.copied) == (75, 0)


def test_a_film_without_entries_is_not_read_again_and_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make(tmp_path / "x.mp4", Film(cfr(20), noise=10, options=OPEN))
    looked: list[int] = []
    monkeypatch.setattr(smart_cut, "is_idr", lambda data, prefix: looked.append(len(data)))
    track = probe(path).video
    assert track
    assert smart_cut.find_cut_points(path, track, Span(12 * 12800, 19 * 12800, track.base)) is None
    assert 0 < len(looked) < 10


def test_ten_hours_of_packets_take_little_memory(tmp_path: Path) -> None:
    with av.open(str(make(tmp_path / "x.mp4", PLAIN))) as container:
        marks = smart_cut._PacketScan(ParameterSets.of(container.streams.video[0].codec_context.extradata or b""))
        packet = next(container.demux(video=0))
    count = 100_000
    tracemalloc.start()
    assert marks.add_all(repeat(packet, count))
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert taken < 24 * count  # a time and, of this one, the number of an entry


def test_a_clip_that_begins_at_zero_or_ends_with_the_film_needs_one_end_only(tmp_path: Path) -> None:
    path = make(tmp_path / "x.mp4", PLAIN)
    assert cut(path, Fraction(0), Fraction(5, 2), tmp_path / "a.mp4").copied == 50
    assert cut(path, Fraction(3, 2), Fraction(9), tmp_path / "b.mp4").copied == 50
    assert [len(frames(tmp_path / name)) for name in ("a.mp4", "b.mp4")] == [63, 62]


def test_a_header_that_ends_too_early_is_bad_media(tmp_path: Path) -> None:
    with av.open(str(make(tmp_path / "x.mp4", PLAIN))) as container:
        header = container.streams.video[0].codec_context.extradata or b""
    whole = ParameterSets.of(header)
    needed = 7 + sum(2 + len(u) for u in (*whole.sps, *whole.pps))
    for length in range(1, needed):
        with pytest.raises(BadMedia, match="truncated"):
            ParameterSets.of(header[:length])
    assert ParameterSets.of(header[:needed]) == whole


def test_sets_of_parameters_keep_apart(tmp_path: Path) -> None:
    with av.open(str(make(tmp_path / "x.mp4", PLAIN))) as container:
        mine = ParameterSets.of(container.streams.video[0].codec_context.extradata or b"")
    with av.open(str(make(tmp_path / "x.ts", FILMS["25.ts"]))) as container:
        other = ParameterSets.of(container.streams.video[0].codec_context.extradata or b"")
    assert (mine.length_size, other.length_size) == (4, 0)
    assert mine.free_id() == 31
    both = ParameterSets.of(mine.header(other))
    assert (both.sps, both.pps) == ((*mine.sps, *other.sps), (*mine.pps, *other.pps))


def test_an_id_of_parameters_that_the_film_uses_is_not_taken_again() -> None:
    last = b"\x68\x04\x00"  # a picture parameter set with id 31
    assert ParameterSets((), ()).free_id() == 31
    assert ParameterSets((), (last,)).free_id() == 30


def test_a_clip_that_is_copied_tells_how_far_it_is(tmp_path: Path) -> None:
    path, told = make(tmp_path / "x.mp4", PLAIN), list[float]()
    cut_clip(path, probe(path), Fraction(1), Fraction(3), tmp_path / "clip.mp4", told.append)
    assert len([share for share in told if 0 < share < 1]) > 40
