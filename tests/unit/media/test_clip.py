import hashlib
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from rushes.domain.errors import BadMedia
from rushes.media.clips.clip import _span, cut_clip
from rushes.media.reading.probe import probe
from tests.unit.media.test_audio import clicks
from tests.unit.media_files import Film, cfr, decoded, make, plain, vfr

TS = Fraction(1, 90000)
MS = Fraction(1, 1000)
FILMS = {
    "cfr.mp4": Film(cfr(4), tone=Fraction(4)),
    "ntsc.mp4": Film([i * 1001 for i in range(96)], base=Fraction(1, 24000), rate=Fraction(24000, 1001)),
    "vfr.mkv": Film(vfr(5), base=MS),
    "late.mkv": Film(cfr(4, 25, MS, 1500), base=MS),
    "negative.ts": Film(cfr(5, 25, TS, 2**33 - 180000), base=TS),
    "open_gop.mp4": Film(cfr(4), options={"x264-params": "open-gop=1:bframes=2"}),
}


@pytest.mark.parametrize("name", FILMS)
def test_a_clip_has_exactly_the_frames_that_were_asked_for(name: str, tmp_path: Path) -> None:
    path = make(tmp_path / name, FILMS[name])
    facts = probe(path)
    assert facts.video
    base = facts.video.base
    frames = [(pts * base, number) for pts, number in decoded(path)]
    start, end = frames[31][0], frames[-20][0]  # from one frame to another, the latter excluded
    made = cut_clip(path, facts, start, end, tmp_path / "clip.mp4", lambda _: None)
    want = [(t - start, n) for t, n in frames if start <= t < end]
    with av.open(str(tmp_path / "clip.mp4")) as container:
        stream = container.streams.video[0]
        assert stream.time_base
        got = [(pts * stream.time_base, n) for pts, n in decoded(tmp_path / "clip.mp4")]
        assert (stream.duration or 0) * stream.time_base == end - start
    assert got == want
    assert (made.frames, made.start, made.end) == (len(want), start, end)


def test_between_frames_the_next_one_is_the_first(tmp_path: Path) -> None:
    path = plain(tmp_path / "x.mp4", 3)
    cut_clip(path, probe(path), Fraction("1.001"), Fraction("1.999"), tmp_path / "clip.mp4", lambda _: None)
    assert [n for _, n in decoded(tmp_path / "clip.mp4")] == list(range(26, 50))


def test_sound_is_cut_to_the_sample(tmp_path: Path) -> None:
    sound = clicks(tmp_path / "x.mkv", 48000, [96000, 120000], 192000)
    facts = probe(sound)
    made = cut_clip(sound, facts, Fraction(3, 2), Fraction(3), tmp_path / "clip.mp4", lambda _: None)
    with av.open(str(tmp_path / "clip.mp4")) as container:
        stream = container.streams.audio[0]
        assert stream.time_base
        assert (stream.duration or 0) * stream.time_base == Fraction(3, 2)
        heard = np.concatenate([f.to_ndarray()[0] for f in container.decode(audio=0)])
    loud = np.flatnonzero(np.abs(heard) > 0.2)
    assert loud[0] == pytest.approx(24000, abs=100)  # 2.0 s of the film is 0.5 s of the clip
    assert made.frames == 0


def test_the_same_clip_has_the_same_bytes(tmp_path: Path) -> None:
    path = plain(tmp_path / "x.mp4", 3, tone=Fraction(3))
    shas = set()
    for name in ("a.mp4", "b.mp4"):
        cut_clip(path, probe(path), Fraction(1), Fraction(2), tmp_path / name, lambda _: None)
        shas.add(hashlib.sha256((tmp_path / name).read_bytes()).hexdigest())
    assert len(shas) == 1


def test_a_clip_can_be_played_before_it_is_all_there(tmp_path: Path) -> None:
    path = plain(tmp_path / "x.mp4", 2)
    cut_clip(path, probe(path), Fraction(0), Fraction(1), tmp_path / "c.mp4", lambda _: None)
    data = (tmp_path / "c.mp4").read_bytes()
    assert data.index(b"moov") < data.index(b"mdat")


@pytest.mark.parametrize("smart", [True, False])
def test_a_turned_film_gives_a_clip_that_is_shown_upright(smart: bool, tmp_path: Path) -> None:
    path = plain(tmp_path / "x.mp4", 1, rotation=-90)
    cut_clip(path, probe(path), Fraction(0), Fraction(1), tmp_path / "c.mp4", lambda _: None, smart=smart)
    with av.open(str(tmp_path / "c.mp4")) as container:
        frame = next(container.decode(video=0))
    shape = (frame.width, frame.height, frame.rotation)
    assert shape == ((192, 108, -90) if smart else (108, 192, 0))


def test_what_lies_outside_the_film_is_left_out(tmp_path: Path) -> None:
    path = plain(tmp_path / "x.mp4", 1)
    made = cut_clip(path, probe(path), Fraction(-5), Fraction(99), tmp_path / "c.mp4", lambda _: None)
    assert (made.start, made.end, made.frames) == (Fraction(0), Fraction(1), 25)


@pytest.mark.parametrize(("start", "end"), [("5", "9"), ("-3", "-1"), ("1", "1.001")])
def test_a_clip_of_nothing_is_refused_in_words(start: str, end: str, tmp_path: Path) -> None:
    path = plain(tmp_path / "x.mp4", 1)
    with pytest.raises(BadMedia, match=r"outside the video|no frame"):
        cut_clip(path, probe(path), Fraction(start), Fraction(end), tmp_path / "c.mp4", lambda _: None)


@pytest.mark.parametrize(("start", "end", "number"), [("0.001", "0.039", 0), ("0.97", "0.99", 24), ("0.99", "5", 24)])
def test_where_no_frame_begins_the_one_on_screen_is_shown(start: str, end: str, number: int, tmp_path: Path) -> None:
    path = plain(tmp_path / "x.mp4", 1)
    made = cut_clip(path, probe(path), Fraction(start), Fraction(end), tmp_path / "c.mp4", lambda _: None)
    assert [n for _, n in decoded(tmp_path / "c.mp4")] == [number]
    assert made.start == pytest.approx(Fraction(start), abs=1e-4)


def test_in_a_gap_of_the_film_the_frame_before_it_is_shown(tmp_path: Path) -> None:
    path = make(tmp_path / "x.mkv", Film([*cfr(1, 25, MS), *cfr(1, 25, MS, 4000)], base=MS))
    cut_clip(path, probe(path), Fraction(2), Fraction(3), tmp_path / "c.mp4", lambda _: None)
    assert [n for _, n in decoded(tmp_path / "c.mp4")] == [24]


def test_a_damaged_picture_is_hidden_and_told(tmp_path: Path) -> None:
    path = make(tmp_path / "x.mp4", Film(cfr(3), noise=40))
    facts = probe(path)
    with av.open(str(path)) as container:
        packet = [p for p in container.demux(video=0) if p.pts is not None][40]
        at, size = packet.pos or 0, packet.size
    data = bytearray(path.read_bytes())
    data[at + 12 : at + size : 3] = bytes(byte ^ 0x55 for byte in data[at + 12 : at + size : 3])
    path.write_bytes(data)
    made = cut_clip(path, facts, Fraction(1, 2), Fraction(3), tmp_path / "c.mp4", lambda _: None, smart=False)
    assert made.hidden
    assert made.frames >= 61


def test_a_range_that_ends_where_the_film_begins_has_no_frame(tmp_path: Path) -> None:
    track = probe(make(tmp_path / "a.mp4", Film(cfr(1)))).video
    assert track is not None
    begin, end = track.start * track.base, track.end * track.base
    for span in ((begin - 1, begin), (end, end + 1)):
        with pytest.raises(BadMedia, match="no frame"):
            _span(track, *span)
    assert _span(track, begin - 1, begin + track.base).start == track.start
