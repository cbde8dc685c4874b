import os
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import av
import pytest

from rushes.domain.errors import BadMedia
from rushes.domain.video import VideoFacts
from rushes.media.reading.probe import probe
from tests.unit.media_files import Film, cfr, decoded, make, plain, vfr

NTSC = Film([i * 1001 for i in range(48)], base=Fraction(1, 24000), rate=Fraction(24000, 1001))
PLAIN = Film(cfr(2))
FILMS = {
    "cfr.mp4": PLAIN,
    "ntsc.mp4": NTSC,
    "vfr.mkv": Film(vfr(3), base=Fraction(1, 1000)),
    "late.mkv": Film(cfr(2, 25, Fraction(1, 1000), 1500), base=Fraction(1, 1000)),
    "late.mp4": replace(PLAIN, times=cfr(2, start=19200)),
    "negative.ts": Film(cfr(4, 25, Fraction(1, 90000), 2**33 - 180000), base=Fraction(1, 90000)),
    "plain.ts": Film(cfr(2, 25, Fraction(1, 90000)), base=Fraction(1, 90000)),
    "fragmented.mp4": replace(PLAIN, muxing={"movflags": "frag_keyframe+empty_moov"}),
    "mpeg4.avi": Film(list(range(50)), base=Fraction(1, 25), codec="mpeg4", options={"bf": "2"}),
}


@pytest.mark.parametrize("name", FILMS)
def test_times_and_counts_are_those_of_the_frames(name: str, tmp_path: Path) -> None:
    path = make(tmp_path / name, FILMS[name])
    track = probe(path).video
    assert track
    times = [pts for pts, _ in decoded(path)]
    assert (track.start, track.frames) == (times[0], len(times))
    assert times[-1] < track.end <= times[-1] + 2 * max(b - a for a, b in pairwise(times))
    assert track.keys[0] == track.start
    assert set(track.keys) <= set(times)


def test_chunks_may_begin_at_the_first_key_frame_at_or_after_each_multiple_of_five_seconds(tmp_path: Path) -> None:
    path = make(tmp_path / "x.mp4", Film(cfr(21), gop=75, size=(192, 32)))  # a key frame every three seconds
    track = probe(path).video
    assert track
    assert [k * track.base for k in track.keys] == [0, 6, 12, 15]


def test_facts_survive_their_document(tmp_path: Path) -> None:
    facts = probe(make(tmp_path / "x.mp4", replace(NTSC, tone=Fraction(1), sar=Fraction(4, 3))))
    assert VideoFacts.from_json(facts.to_json()) == facts
    assert facts.video
    assert facts.video.sar == Fraction(4, 3)
    assert facts.video.rate == Fraction(24000, 1001)


def test_rotation_says_how_far_to_turn_clockwise(tmp_path: Path) -> None:
    for written, needed in ((-90, 90), (90, 270), (180, 180)):
        track = probe(plain(tmp_path / f"{needed}.mp4", 1, rotation=written)).video
        assert track
        assert track.rotation == needed


def test_sound_alone_is_footage(tmp_path: Path) -> None:
    facts = probe(make(tmp_path / "x.m4a", Film([], tone=Fraction(2))))
    assert facts.video is None
    assert facts.audio[0].rate == 48000
    assert facts.duration == 2


def test_a_cover_picture_is_no_film(tmp_path: Path) -> None:
    make(tmp_path / "x.m4a", Film([], tone=Fraction(1)))
    make(tmp_path / "cover.mp4", Film([0], codec="mjpeg"))
    with (
        av.open(str(tmp_path / "x.mp4"), "w") as out,
        av.open(str(tmp_path / "x.m4a")) as sound,
        av.open(str(tmp_path / "cover.mp4")) as cover,
    ):
        picture = out.add_stream_from_template(cover.streams.video[0])
        picture.disposition = picture.disposition.attached_pic
        track = out.add_stream_from_template(sound.streams.audio[0])
        for source, stream in ((cover.streams.video[0], picture), (sound.streams.audio[0], track)):
            for packet in source.container.demux(source):  # type: ignore[attr-defined]
                if packet.size:
                    packet.stream = stream
                    out.mux(packet)
    assert probe(tmp_path / "x.mp4").video is None


def test_the_default_track_of_sound_is_marked(tmp_path: Path) -> None:
    with av.open(str(tmp_path / "x.mkv"), "w") as out:
        streams = [out.add_stream("pcm_s16le", rate=48000, layout="mono") for _ in range(2)]
        streams[0].disposition = streams[0].disposition.comment
        streams[1].disposition = streams[1].disposition.default
        for stream in streams:
            frame = av.AudioFrame(format="s16", layout="mono", samples=4800)
            frame.rate, frame.pts, frame.time_base = 48000, 0, Fraction(1, 48000)
            for plane in frame.planes:
                plane.update(bytes(plane.buffer_size))
            out.mux(stream.encode(frame))
    assert [t.default for t in probe(tmp_path / "x.mkv").audio] == [False, True]


def test_hidden_frames_of_an_edit_list_do_not_count(tmp_path: Path) -> None:
    plain(tmp_path / "whole.mp4", 4)
    with av.open(str(tmp_path / "whole.mp4")) as source, av.open(str(tmp_path / "cut.mp4"), "w") as out:
        stream = out.add_stream_from_template(source.streams.video[0])
        for packet in source.demux(video=0):
            if packet.size:
                assert packet.pts is not None
                assert packet.dts is not None
                packet.pts, packet.dts = packet.pts - 4096, packet.dts - 4096  # eight frames before zero
                packet.stream = stream
                out.mux(packet)
    shown = decoded(tmp_path / "cut.mp4")
    track = probe(tmp_path / "cut.mp4").video
    assert track
    assert (track.start, track.frames) == (shown[0][0], len(shown))
    assert shown[0][1] == 8


def test_a_clock_that_jumps_back_is_noticed(tmp_path: Path) -> None:
    base = Fraction(1, 90000)
    for name in ("a.ts", "b.ts"):
        make(tmp_path / name, Film(cfr(3, 25, base, 9000000 if name == "a.ts" else 8900000), base=base))
    (tmp_path / "glued.ts").write_bytes((tmp_path / "a.ts").read_bytes() + (tmp_path / "b.ts").read_bytes())
    with pytest.raises(BadMedia, match="jump back"):
        probe(tmp_path / "glued.ts")


def test_pictures_without_times_of_their_own_are_refused(tmp_path: Path) -> None:
    path = make(tmp_path / "x.avi", Film(list(range(50)), base=Fraction(1, 25)))  # H.264 with B-frames in AVI
    with pytest.raises(BadMedia, match="have no timestamps"):
        probe(path)


def test_a_stream_with_lost_packets_is_one_chunk(tmp_path: Path) -> None:
    base = Fraction(1, 90000)
    path = make(tmp_path / "x.ts", Film(cfr(12, 25, base), base=base, noise=20))
    data = bytearray(path.read_bytes())
    middle = len(data) // 2 // 188 * 188
    path.write_bytes(data[:middle] + data[middle + 40 * 188 :])
    track = probe(path).video
    assert track
    assert not track.seekable
    assert track.keys == (track.start,)


@pytest.mark.parametrize("name", ["cut.mkv", "cut.mp4"])
def test_a_file_that_ends_too_early_is_refused(name: str, tmp_path: Path) -> None:
    path = plain(tmp_path / name, 2, muxing={"movflags": "faststart"} if name.endswith("mp4") else {}, noise=20)
    os.truncate(path, path.stat().st_size - 1000)
    with pytest.raises(BadMedia, match="is truncated"):
        probe(path)


def test_progress_only_grows(tmp_path: Path) -> None:
    told: list[float] = []
    probe(plain(tmp_path / "x.mp4", 2), told.append)
    assert told == sorted(told)
    assert 0 < told[-1] <= 1
