"""A film joined from pieces keeps what the original has beside its pictures, or says that it is not whole."""

from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from rushes.domain.errors import TryAgain
from rushes.domain.video import AudioTrack
from rushes.media.joining import join as joining
from rushes.media.joining.packets import (
    PieceFile,
    add_video_stream,
    copied_packets,
    encoded_packets,
    plain_text,
    to_mov_text,
    video_packets,
)
from rushes.media.reading.audio import Resampler
from rushes.media.reading.probe import probe
from rushes.media.stereo.frame_packing import PACKINGS, StereoFormat, ass
from rushes.media.subtitles import Cue
from tests.unit.film_work import room_for_one
from tests.unit.media_files import Film, cfr, make
from tests.unit.stereo_kit import in_3d

SECONDS = 6
MS = Fraction(1, 1000)


def rich(path: Path, folder: Path) -> Path:
    """A Matroska film with sound that no MP4 holds, chapters, and subtitles in German."""
    pictures = make(folder / "plain.mp4", Film(cfr(SECONDS, rate=8), rate=8, size=(160, 90), gop=8))
    with av.open(str(pictures)) as source, av.open(str(path), "w") as out:
        video = out.add_stream_from_template(source.streams.video[0])
        sound = out.add_stream("pcm_s16le", rate=48000)
        sound.codec_context.layout = "mono"
        text = out.add_mux_stream("subrip")
        text.time_base, text.metadata["language"] = MS, "ger"
        rows = [(1, 0, 2500, "Anfang"), (2, 2500, 6000, "Ende")]
        out.set_chapters(
            [{"id": n, "start": a, "end": b, "time_base": MS, "metadata": {"title": t}} for n, a, b, t in rows]
        )
        for packet in source.demux(video=0):
            if packet.dts is not None:
                packet.stream = video
                out.mux(packet)
        wave = (np.sin(np.arange(SECONDS * 48000) / 20) * 9000).astype(np.int16)
        for first in range(0, len(wave), 4800):
            frame = av.AudioFrame.from_ndarray(wave[None, first : first + 4800], format="s16", layout="mono")
            frame.sample_rate, frame.pts, frame.time_base = 48000, first, Fraction(1, 48000)
            out.mux(sound.encode(frame))
        for start, said in ((1000, "Guten <i>Tag</i>"), (3000, "Auf\nWiedersehen")):
            line = av.Packet(said.encode())
            line.pts = line.dts = start
            line.duration, line.time_base, line.stream = 1500, MS, text
            out.mux(line)
    return path


def _seconds(chapter: Any) -> tuple[Fraction, Fraction]:
    return chapter["start"] * chapter["time_base"], chapter["end"] * chapter["time_base"]


def test_sound_chapters_and_subtitles_are_kept(tmp_path: Path) -> None:
    made = in_3d(rich(tmp_path / "x.mkv", tmp_path), tmp_path, 5)
    assert len(made.pieces) == 2
    (film,) = [a for a in made.film.artifacts if a.name == "film.mp4"]
    path = made.work.blobs.local("me", film.sha256)
    with av.open(str(path)) as now:
        chapters = [(*_seconds(c), c["metadata"]["title"]) for c in now.chapters()]
        assert chapters == [(0, Fraction(5, 2), "Anfang"), (Fraction(5, 2), 6, "Ende")]
        (text,) = [s for s in now.streams.subtitles if s.metadata.get("language") == "ger"]
        said = [(p.pts, p.duration, plain_text(bytes(p), "mov_text")) for p in now.demux(text) if p.size > 2]
    assert said == [(1000, 1500, "Guten Tag"), (3000, 1500, "Auf\nWiedersehen")]
    with av.open(str(path)) as now:
        assert now.streams.audio[0].codec_context.name == "aac"
        assert sum(f.samples for f in now.decode(audio=0)) >= SECONDS * 48000
    (lines,) = [a for a in made.film.artifacts if a.name == "film.ass"]
    with made.work.blobs.open("me", lines.sha256) as f:
        assert f.read().decode().count("Guten Tag") == 2  # one for each eye


def test_a_film_is_joined_where_its_pieces_do_not_all_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    room_for_one(monkeypatch)
    made = in_3d(make(tmp_path / "x.mp4", Film(cfr(6, rate=8), rate=8, size=(160, 90), gop=8)), tmp_path, 2)
    assert len(made.pieces) == 2
    assert made.film.count == 48


@pytest.mark.parametrize("start", [1, 7, 321])
def test_pictures_that_begin_between_two_milliseconds_keep_their_times(start: int, tmp_path: Path) -> None:
    late = Film(cfr(1, start=start), size=(160, 90), tone=Fraction(1), muxing={"movie_timescale": "12800"}, kind="mp4")
    path = make(tmp_path / "x.mp4", late)
    made = in_3d(path, tmp_path)
    zero = made.work.facts.start
    with av.open(str(made.path(tmp_path))) as film:
        times = [f.pts * f.time_base for f in film.decode(video=0) if f.pts is not None and f.time_base]
    assert times == [Fraction(t, 12800) - zero for t in late.times]


def test_a_film_that_lost_a_frame_on_the_way_is_not_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = joining.read_back

    def short(path: Path) -> joining.FilmContents:
        found = whole(path)
        return joining.FilmContents(found.frames - 1, found.times, found.sounds)

    monkeypatch.setattr(joining, "read_back", short)
    with pytest.raises(TryAgain, match="is incomplete"):
        in_3d(make(tmp_path / "x.mp4", Film(cfr(0.4), size=(160, 90))), tmp_path)


def test_a_film_that_lost_sound_on_the_way_is_not_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make(tmp_path / "x.mp4", Film(cfr(1.2), size=(160, 90), tone=Fraction(1)))
    assert in_3d(path, tmp_path).film.facts["sounds"]
    monkeypatch.setattr(joining, "copied_packets", lambda *given: islice(copied_packets(*given), 20))
    with pytest.raises(TryAgain, match="sound is missing"):
        in_3d(path, tmp_path)


def test_a_film_whose_sound_was_not_all_encoded_is_not_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Resampler.push
    monkeypatch.setattr(Resampler, "push", lambda *given: whole(*given)[1:])
    with pytest.raises(TryAgain, match="samples of sound were encoded"):
        in_3d(rich(tmp_path / "x.mkv", tmp_path), tmp_path, 5)


@pytest.mark.parametrize(
    ("codec", "data"),
    [
        ("subrip", b"<b>Hello</b>"),
        ("mov_text", to_mov_text("Hello") + b"\0\0\0\x0cstyl"),
        ("ass", b"0,0,Default,,0,0,0,,{\\i1}Hello"),
        ("webvtt", b"<c.yellow>Hello</c>"),
    ],
)
def test_subtitles_of_every_kind_become_plain(codec: str, data: bytes) -> None:
    assert plain_text(data, codec) == "Hello"


def test_lines_stand_below_in_the_middle_of_each_view() -> None:
    cue = [Cue(61_230, 63_000, ("one", "{two}"))]
    beside, above = (ass(cue, PACKINGS[f]).splitlines()[-2:] for f in (StereoFormat.HALF_SBS, StereoFormat.FULL_TB))
    assert beside[0] == "Dialogue: 0,0:01:01.23,0:01:03.00,Eye,{\\pos(480,1020)}one\\N(two)"
    assert "\\pos(1440,1020)" in beside[1]
    assert "\\pos(960,1020)" in above[0]
    assert "\\pos(960,2100)" in above[1]


def test_a_stream_keeps_its_language_and_none_of_its_other_tags(tmp_path: Path) -> None:
    assert joining._language({"language": "deu", "title": "by somebody"}) == {"language": "deu"}
    for language in ("deu", ""):
        track = AudioTrack(1, "pcm_s16le", 48000, 2, Fraction(1, 48000), 0, 48000, language)
        with av.open(str(tmp_path / f"{language}.mp4"), "w") as film:
            encoded_packets(film, tmp_path / "never opened", track, Fraction(0))
            assert film.streams.audio[0].metadata.get("language", "") == language


def test_the_last_picture_lasts_until_the_end_of_the_film(tmp_path: Path) -> None:
    piece = make(tmp_path / "x.mp4", Film(cfr(2)))
    track = probe(piece).video
    assert track is not None
    with av.open(str(tmp_path / "film.mp4"), "w") as film:
        stream = add_video_stream(film, piece, "")
        parts = [PieceFile(piece, track.start, track.end)]
        packets = list(video_packets(parts, stream, track.base, Fraction(0), track.base.denominator))
    assert packets[-1].duration == pytest.approx(1 / 25 / track.base, rel=0.5)
