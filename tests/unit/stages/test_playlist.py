import hashlib
import re
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import av
import numpy as np
import pytest
import simplejpeg

from rushes.media.developing.audio import extract_audio
from rushes.media.developing.frame_pack import PackedFrame, PackIndex
from rushes.media.developing.hls import RenditionFile, Segment, SegmentIndex, media_playlist
from rushes.media.developing.trickplay import sheets, tiles, webvtt
from rushes.media.timeline import shift_seconds
from rushes.stages.develop import Develop
from rushes.stages.playlist import Playlist
from rushes.stages.port import OutputDraft
from rushes.stages.probe import Probe
from tests.unit.film_work import FilmWork, chunks
from tests.unit.media_files import Film, cfr, decoded, make, number_of, plain

MS = Fraction(1, 1000)


def through_all_stages(film: Path, folder: Path, seconds: int = 5) -> tuple[FilmWork, dict[str, OutputDraft]]:
    work = FilmWork(film, folder)
    work.run(Probe())
    for span in chunks(work.facts, seconds) if work.facts.video else []:
        work.run(Develop(), span)
    work.keep("audio", "sound", _sound(work, folder))
    return work, work.run(Playlist())


def _sound(work: FilmWork, folder: Path) -> OutputDraft:
    """As the audio stage saves it."""
    if not work.facts.audio:
        return OutputDraft()
    made = extract_audio(work.film, work.facts, folder / "pcm.wav", folder / "sound.tmp", lambda _: None)
    assert made.sound
    artifact = work.artifact("sound.mp4", (folder / "sound.tmp").read_bytes(), "audio/mp4")
    init = hashlib.sha256((folder / "sound.tmp").read_bytes()[: made.sound.init]).hexdigest()
    return OutputDraft([artifact], 0, {**made.sound.to_json(), "init_sha256": init})


FILMS = {
    "plain.mp4": Film(cfr(12), tone=Fraction(12)),
    "late_picture.mkv": Film(cfr(12, 25, MS, 1500), base=MS, tone=Fraction(12)),
    "silent.mp4": Film([i * 1001 for i in range(270)], base=Fraction(1, 24000), rate=Fraction(24000, 1001)),
}


@pytest.mark.parametrize("name", FILMS)
def test_a_player_sees_every_frame_once_and_at_its_time(name: str, tmp_path: Path) -> None:
    film = make(tmp_path / name, FILMS[name])
    work, saved = through_all_stages(film, tmp_path)
    (tmp_path / "hls").mkdir()
    folder = work.export(saved["hls"], tmp_path / "hls")
    assert work.facts.video
    with av.open(str(folder / "video.m3u8")) as player:
        base = player.streams.video[0].time_base
        assert base
        seen = [((f.pts or 0) * base, number_of(f)) for f in player.decode(video=0)]
    want = [(pts * work.facts.video.base, n) for pts, n in decoded(film)]
    assert [n for _, n in seen] == [n for _, n in want]
    shift = shift_seconds(work.facts)
    assert [float(t) for t, _ in seen] == pytest.approx([float(t + shift) for t, _ in want], abs=1e-4)


@pytest.mark.parametrize("name", FILMS)
def test_a_transport_stream_has_the_same_frames_and_the_sound(name: str, tmp_path: Path) -> None:
    film = make(tmp_path / name, FILMS[name])
    work, _ = through_all_stages(film, tmp_path)
    saved = work.run(Playlist(), wanted=["hls"], options={"segments": "ts"})["hls"]
    published = [a.publish for a in saved.artifacts]
    numbered = [f"segment_{n:05d}.ts" for n in range(len(published) - 1)]
    assert [str(p).rpartition("/")[2] for p in published] == ["index.m3u8", *numbered]
    (tmp_path / "exported").mkdir()
    folder = work.export(saved, tmp_path / "exported")
    with av.open(str(folder / "index.m3u8")) as player:
        assert bool(player.streams.audio) == bool(work.facts.audio)
        seen = [(f.time, number_of(f)) for f in player.decode(video=0)]
    want = [(float(pts * work.facts.video.base), n) for pts, n in decoded(film)] if work.facts.video else []
    assert [n for _, n in seen] == [n for _, n in want]
    shift = (seen[0][0] or 0) - want[0][0]
    assert [t for t, _ in seen] == pytest.approx([t + shift for t, _ in want], abs=1e-4)
    for segment in numbered:  # each begins with its parameter sets and a key frame: it plays by itself
        with av.open(str(folder / segment)) as alone:
            assert next(alone.decode(video=0)).key_frame


def test_sound_and_picture_lie_on_one_timeline(tmp_path: Path) -> None:
    film = make(tmp_path / "x.mkv", FILMS["late_picture.mkv"])  # the tone begins at 0, the picture at 1.5 s
    work, saved = through_all_stages(film, tmp_path)
    (tmp_path / "hls").mkdir()
    folder = work.export(saved["hls"], tmp_path / "hls")
    with av.open(str(folder / "index.m3u8")) as player:
        assert {s.type for s in player.streams} == {"video", "audio"}
    with av.open(str(folder / "video.m3u8")) as player:
        first_seen = next(player.decode(video=0)).time
    with av.open(str(folder / "audio.m3u8")) as player:
        frames = list(player.decode(audio=0))
    heard = np.concatenate([f.to_ndarray()[0] for f in frames])
    first_loud = (frames[0].time or 0) + np.flatnonzero(np.abs(heard) > 0.1)[0] / 48000
    assert first_seen - first_loud == pytest.approx(1.5, abs=0.04)


def test_playlists_are_of_the_kind_that_players_want(tmp_path: Path) -> None:
    work, saved = through_all_stages(make(tmp_path / "x.mp4", FILMS["plain.mp4"]), tmp_path)
    (tmp_path / "hls").mkdir()
    folder = work.export(saved["hls"], tmp_path / "hls")
    text = (folder / "video.m3u8").read_text()
    lines = text.splitlines()
    assert lines[:2] == ["#EXTM3U", "#EXT-X-VERSION:7"]
    assert lines[-1] == "#EXT-X-ENDLIST"
    assert {"#EXT-X-PLAYLIST-TYPE:VOD", "#EXT-X-INDEPENDENT-SEGMENTS"} <= set(lines)
    assert text.count("#EXT-X-MAP") == 1
    assert "DISCONTINUITY" not in text
    durations = [float(d) for d in re.findall(r"#EXTINF:([\d.]+),", text)]
    assert sum(durations) == pytest.approx(12, abs=1e-4)
    target = int(re.findall(r"TARGETDURATION:(\d+)", text)[0])
    assert all(round(d) <= target for d in durations)
    for size, offset, uri in re.findall(r"#EXT-X-BYTERANGE:(\d+)@(\d+)\n(.+)", text):
        assert int(offset) + int(size) <= (folder / uri).stat().st_size
    master = (folder / "index.m3u8").read_text()
    assert 'RESOLUTION=192x108,CODECS="avc1.' in master
    assert 'mp4a.40.2",AUDIO="sound"' in master


def test_published_names_are_those_of_the_contract(tmp_path: Path) -> None:
    work, saved = through_all_stages(make(tmp_path / "x.mp4", FILMS["plain.mp4"]), tmp_path)
    names = {a.publish for a in saved["hls"].artifacts}
    (video,) = {str(n).split("/")[2] for n in names}
    files = (
        "index.m3u8",
        "video.m3u8",
        "audio.m3u8",
        "piece_00000.mp4",
        "piece_00001.mp4",
        "piece_00002.mp4",
        "sound.mp4",
    )
    assert names == {f"videos/proxy/{video}/{file}" for file in files}
    (poster,) = saved["poster"].artifacts
    assert poster.publish == f"thumbs/{video}/poster.jpg"
    with work.blobs.open("me", poster.sha256) as f:
        assert simplejpeg.decode_jpeg(f.read()).shape == (108, 192, 3)
    assert saved["hls"].facts["origin_us"] == 0


def test_a_film_without_sound_has_no_sound_playlist(tmp_path: Path) -> None:
    _, saved = through_all_stages(plain(tmp_path / "x.mp4", 2), tmp_path)
    assert "audio.m3u8" not in {a.name for a in saved["hls"].artifacts}


def test_sound_alone_can_be_played_and_has_no_poster(tmp_path: Path) -> None:
    film = make(tmp_path / "x.m4a", Film([], tone=Fraction(6)))
    work, saved = through_all_stages(film, tmp_path)
    (tmp_path / "hls").mkdir()
    folder = work.export(saved["hls"], tmp_path / "hls")
    assert saved["poster"].artifacts == saved["trickplay"].artifacts == []
    with av.open(str(folder / "index.m3u8")) as player:
        heard = sum(f.samples for f in player.decode(audio=0))
    assert heard / 48000 == pytest.approx(6, abs=0.1)


def test_a_new_header_is_announced(tmp_path: Path) -> None:
    layout = SegmentIndex(700, Fraction(1, 1000), (Segment(700, 5000, 0, 4000),))
    parts = [
        RenditionFile("a.mp4", "one", layout),
        RenditionFile("b.mp4", "one", layout),
        RenditionFile("c.mp4", "two", layout),
    ]
    text = media_playlist(parts)
    assert text.count("#EXT-X-MAP") == 2
    assert text.index("#EXT-X-DISCONTINUITY") > text.index("b.mp4")
    assert media_playlist([replace(p, init_sha256="one") for p in parts]).count("DISCONTINUITY") == 0


def test_sheets_for_seeking_show_what_is_on_screen_every_ten_seconds(tmp_path: Path) -> None:
    cuts = [230, 480, 730]  # a new shot shortly before 10, 20 and 30 s
    film = make(tmp_path / "x.mp4", Film(cfr(32), cuts=cuts, gop=50, still=True))
    work, saved = through_all_stages(film, tmp_path)
    sheet, vtt = saved["trickplay"].artifacts
    assert sheet.publish
    assert sheet.publish.endswith("/trickplay/320 - 10x10/0.jpg")
    with work.blobs.open("me", sheet.sha256) as f:
        picture = simplejpeg.decode_jpeg(f.read())
    assert picture.shape == (1800, 3200, 3)
    tiles = [picture[:180, n * 320 : (n + 1) * 320].astype(int) for n in range(5)]
    assert min(np.abs(a - b).mean() for a, b in pairwise(tiles)) > 20
    assert tiles[4].mean() < 2
    with work.blobs.open("me", vtt.sha256) as f:
        text = f.read().decode()
    assert text.startswith("WEBVTT\n\n00:00:00.000 --> 00:00:10.000\n320%20-%2010x10/0.jpg#xywh=0,0,320,180\n\n")
    assert text.endswith("00:00:30.000 --> 00:00:32.000\n320%20-%2010x10/0.jpg#xywh=960,0,320,180\n\n")
    assert saved["trickplay"].facts == {"interval_ms": 10_000, "width": 320, "height": 180, "tiles": 4}


def test_more_than_a_hundred_tiles_are_two_sheets() -> None:
    kept = PackedFrame(0, 0, 0, 9, "0", 0, 0)
    shown = tiles([PackIndex(MS, 64, 36, (kept,))], Fraction(0), Fraction(1011))
    jpeg = simplejpeg.encode_jpeg(np.zeros((36, 64, 3), np.uint8))
    assert len(shown) == 102
    assert len(list(sheets(shown, (32, 18), lambda _: jpeg))) == 2
    assert "1.jpg#xywh=32,0,32,18" in webvtt(shown, (32, 18), Fraction(1011))
