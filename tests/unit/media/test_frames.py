import random
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import av
import pytest

from rushes.domain.errors import BadMedia
from rushes.domain.span import Span
from rushes.domain.video import VideoFacts
from rushes.media.reading.frames import decode
from rushes.media.reading.probe import probe
from tests.unit.media_files import Film, cfr, decoded, make, number_of, vfr

TS = Fraction(1, 90000)
MS = Fraction(1, 1000)
FILMS = {
    "cfr.mp4": Film(cfr(6)),
    "ntsc.mp4": Film([i * 1001 for i in range(144)], base=Fraction(1, 24000), rate=Fraction(24000, 1001)),
    "vfr.mkv": Film(vfr(6), base=MS),
    "late.mkv": Film(cfr(6, 25, MS, 1500), base=MS),
    "negative.ts": Film(cfr(6, 25, TS, 2**33 - 180000), base=TS),
    "plain.ts": Film(cfr(6, 25, TS), base=TS),
    "open_gop.mp4": Film(cfr(6), options={"x264-params": "open-gop=1:bframes=2"}),
    "intra_refresh.mp4": Film(cfr(6), options={"intra-refresh": "1"}, bframes=0),
    "mpeg4.avi": Film(list(range(150)), base=Fraction(1, 25), codec="mpeg4", options={"bf": "2"}),
    "mpeg2.mpg": Film(list(range(150)), base=Fraction(1, 25), codec="mpeg2video", options={"bf": "2"}, gop=12),
    "vp8.webm": Film(cfr(3, 25, MS), base=MS, codec="libvpx", options={"auto-alt-ref": "1", "lag-in-frames": "16"}),
    "one_key.mp4": Film(cfr(6), gop=1000),
}


@pytest.mark.parametrize("name", FILMS)
@pytest.mark.parametrize("seconds", [Fraction(2), Fraction(1, 3)])
def test_spans_give_every_frame_once_wherever_they_begin(name: str, seconds: Fraction, tmp_path: Path) -> None:
    path = make(tmp_path / name, FILMS[name])
    facts = probe(path)
    got = [(f.pts, number_of(f)) for span in _spans(facts, seconds) for f in _decoded_or_none(path, facts, span)]
    assert got == decoded(path)


def _spans(facts: VideoFacts, seconds: Fraction) -> Iterator[Span]:
    """Not aligned to key frames at all: a clip may begin anywhere."""
    track = facts.video
    assert track
    step = int(seconds / track.base)
    for start in range(track.start, track.end, step):
        yield Span(start, min(start + step, track.end), track.base)


def _decoded_or_none(path: Path, facts: VideoFacts, span: Span) -> Iterator[av.VideoFrame]:
    try:
        yield from decode(path, facts, span)
    except BadMedia as e:
        if "cannot be found" not in str(e):  # a gap of the film without any frame
            raise


def test_more_threads_give_the_same_frames(tmp_path: Path) -> None:
    path = make(tmp_path / "x.mp4", FILMS["cfr.mp4"])
    facts = probe(path)
    assert facts.video
    one, two = ([number_of(f) for f in decode(path, facts, facts.video.span, threads=n)] for n in (1, 2))
    assert one == two == list(range(150))


def test_a_damaged_picture_is_an_error_and_not_a_guess(tmp_path: Path) -> None:
    path = make(tmp_path / "x.mp4", Film(cfr(3), noise=40))
    facts = probe(path)
    data = bytearray(path.read_bytes())
    start = data.index(b"mdat") + len(data) // 3
    for i in range(start, start + 3000, 7):
        data[i] ^= 0x55
    path.write_bytes(data)
    assert facts.video
    with pytest.raises(BadMedia, match=r"the frame at 0:0\d"):
        list(decode(path, facts, facts.video.span))


def test_one_damaged_picture_is_hidden_and_told_where_that_is_wanted(tmp_path: Path) -> None:
    path = make(tmp_path / "x.mp4", Film(cfr(3), noise=40))
    facts = probe(path)
    with av.open(str(path)) as container:
        packet = [p for p in container.demux(video=0) if p.pts is not None][40]
        at, size, pts = packet.pos or 0, packet.size, packet.pts
    data = bytearray(path.read_bytes())
    for i in range(at + 12, at + size, 3):
        data[i] ^= 0x55
    path.write_bytes(data)
    assert facts.video
    with pytest.raises(BadMedia):
        list(decode(path, facts, facts.video.span))
    told: list[int] = []
    times = [f.pts for f in decode(path, facts, facts.video.span, on_damage=told.append)]
    assert pts in told
    assert len(times) >= 74
    assert times == sorted(set(times), key=lambda t: t or 0)


def test_footage_that_is_mostly_lost_is_refused_all_the_same(tmp_path: Path) -> None:
    path = make(tmp_path / "x.mp4", Film(cfr(3), noise=40))
    facts = probe(path)
    with av.open(str(path)) as container:
        places = [((p.pos or 0), p.size) for p in container.demux(video=0) if p.pts is not None][10:60]
    data = bytearray(path.read_bytes())
    for at, size in places:
        data[at + 4 : at + size] = bytes(size - 4)
    path.write_bytes(data)
    assert facts.video
    with pytest.raises(BadMedia, match="lost"):
        list(decode(path, facts, facts.video.span, on_damage=lambda _: None))


def test_damage_of_single_bits_is_noticed_where_it_shows(tmp_path: Path) -> None:
    path = make(tmp_path / "x.mp4", Film(cfr(3), noise=40))
    facts, good = probe(path), path.read_bytes()
    assert facts.video
    start, noticed = good.index(b"mdat"), 0
    for seed in range(12):
        chance, data = random.Random(seed), bytearray(good)
        data[start + chance.randrange(2000, len(good) * 2 // 3)] ^= 1 << chance.randrange(8)
        path.write_bytes(data)
        try:
            list(decode(path, facts, facts.video.span))
        except BadMedia:
            noticed += 1
    assert noticed >= 3  # a plain decode notices none of them


def test_known_damage_is_lived_with(tmp_path: Path) -> None:
    path = make(tmp_path / "x.ts", Film(cfr(6, 25, TS), base=TS, noise=20))
    data = path.read_bytes()
    middle = len(data) // 2 // 188 * 188
    path.write_bytes(data[:middle] + data[middle + 40 * 188 :])
    facts = probe(path)
    assert facts.video
    times = [f.pts or 0 for f in decode(path, facts, facts.video.span)]
    assert len(times) > 100
    assert times == sorted(set(times))
