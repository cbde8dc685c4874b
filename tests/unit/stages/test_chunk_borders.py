"""What lies exactly on a seam or a tick belongs to one side, and no sample of sound is lost or doubled there."""

from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import av
import numpy as np
import pytest

from rushes.domain.observation import load
from rushes.domain.span import Span, rescale_up, to_us
from rushes.domain.video import VideoFacts, VideoTrack
from rushes.engines.port import RATE, Word
from rushes.media.clips.clip import cut_clip
from rushes.media.developing.audio import PCM_RATE, extract_audio
from rushes.media.reading.audio import SampleTimeline
from rushes.media.reading.probe import probe
from rushes.media.timeline import PeriodicSampler, movie_timescale
from rushes.plan.grid import grid
from rushes.stages.audio import Audio
from rushes.stages.clip import Clip
from rushes.stages.develop import Develop
from rushes.stages.probe import Probe
from rushes.stages.speech.windows import Window
from rushes.stages.transcribe import Transcribe
from tests.hostile.containers import wav
from tests.memory_blobs import MemoryBlobs
from tests.unit.film_work import FilmWork, chunks, room_for_one
from tests.unit.media_files import Film, cfr, decoded, make, plain
from tests.unit.speech_kit import FakeEngine, make_work, results, sound_facts, transcription, write_wav
from tests.unit.stages.test_transcribe import transcriber

NTSC = Fraction(1, 30000)
SEAMS = (5, 10)  # seconds
WINDOWS = [0, 5 * RATE - 1, 5 * RATE, 5 * RATE + 1, 10 * RATE - 1, 10 * RATE]  # first samples


def _heard(chunk: int, span: Span, starts: list[int], tmp_path: Path, offset: int = 0) -> list[int]:
    """The first samples of the windows that a chunk transcribes."""
    blobs, facts = MemoryBlobs(), sound_facts(15, Fraction(offset, RATE))
    prepared = make_work(Audio(), facts, tmp_path, blobs=blobs)
    silence = write_wav(tmp_path / "a.wav", np.zeros(15 * RATE, np.float32))
    prepared.save("pcm", "pcm.wav", silence, "audio/wav")
    windows = [Window(((start, start + RATE),)).to_json() for start in starts]
    prepared.save_json("windows", "windows.json", {"offset": offset, "windows": windows})
    said = FakeEngine(transcription((Word(" word", 0, RATE // 2, 0.9),)))
    work = make_work(
        Transcribe(), facts, tmp_path, inputs=results(prepared), blobs=blobs, span=span, chunk=chunk, engine=said,
        models={"speech": "every"}, options={"language": "en"},
    )  # fmt: skip
    Transcribe().run(work)
    (lines,) = results(work)["transcribe.lines"]
    return [round(line.span.start * line.span.base * RATE) - offset for line in load(lines.bytes("lines.jsonl"))]


@pytest.mark.parametrize("offset", [0, 441, -24_000])
def test_a_window_on_a_seam_belongs_to_the_chunk_that_begins_there(offset: int, tmp_path: Path) -> None:
    at = Fraction(offset, RATE)
    bounds = [(at + second) / Fraction(1, RATE) for second in (0, *SEAMS, 15)]
    spans = [Span(int(a), int(b), Fraction(1, RATE)) for a, b in pairwise(bounds)]
    mine = [_heard(chunk, span, WINDOWS, tmp_path, offset) for chunk, span in enumerate(spans)]
    assert mine == [WINDOWS[:2], WINDOWS[2:5], WINDOWS[5:]]


def test_a_word_in_the_middle_of_a_seam_of_groups_belongs_to_the_later(tmp_path: Path) -> None:
    groups = ((10 * RATE, 13 * RATE), (16 * RATE, 19 * RATE))
    ends, across, before = (2 * RATE, 3 * RATE), (5 * RATE // 2, 7 * RATE // 2), (5 * RATE // 2 - 2, 7 * RATE // 2 - 2)
    for (start, end), want in (
        (ends, (12 * RATE, 13 * RATE)),
        (across, (16 * RATE, 16 * RATE + RATE // 2)),
        (before, (13 * RATE - RATE // 2 - 2, 13 * RATE)),
    ):
        assert _said(groups, Word(" word", start, end, 0.9), tmp_path) == [want]


def _said(groups: tuple[tuple[int, int], ...], word: Word, tmp_path: Path) -> list[tuple[int, int]]:
    fake = FakeEngine(transcription((word,)))
    lines = transcriber(tmp_path, fake, language="en").transcribe(Window(groups))
    return [(a, b) for line in lines for _, a, b, _ in line.words]


@pytest.mark.parametrize("base", [Fraction(1, 1000), NTSC, Fraction(1001, 30000), Fraction(1, 90000)])
def test_a_frame_on_a_multiple_of_the_period_is_due_and_the_tick_before_is_not(base: Fraction) -> None:
    on = rescale_up(Fraction(5), base)
    for pts, due in ((on - 1, False), (on, True), (on + 1, False)):
        sampler = PeriodicSampler(Fraction(5), base)
        assert sampler.is_due(0)
        if pts > on:
            sampler.is_due(on)
        assert sampler.is_due(pts) is due


def _film(keys: list[int], end: int) -> VideoFacts:
    track = VideoTrack(0, "h264", 16, 16, NTSC, 0, end, 1, tuple(keys), Fraction(30))
    return VideoFacts("ab" * 32, 1, "mov", track)


def test_a_key_frame_exactly_a_chunk_away_is_a_seam_and_a_tick_less_is_none() -> None:
    second = 30_000
    starts = [s.start for s in grid(_film([0, 5 * second, 10 * second - 1, 10 * second, 15 * second], 20 * second), 5)]
    assert starts == [0, 5 * second, 10 * second, 15 * second]
    assert [s.start for s in grid(_film([0, 5 * second], 5 * second), 5)] == [0]  # nothing begins where the film ends


@pytest.mark.parametrize("base", [Fraction(1, 1000), NTSC, Fraction(1001, 30000)])
def test_a_time_on_a_tick_is_that_tick(base: Fraction) -> None:
    tiny = base / 1_000_000
    for tick in (-1, 0, 1, 149_999, 150_000):
        assert rescale_up(tick * base, base) == tick
        assert rescale_up(tick * base + tiny, base) == tick + 1
        assert rescale_up(tick * base - tiny, base) == tick


def test_a_clip_from_a_frame_to_a_frame_in_whole_microseconds_has_the_first_and_not_the_last(tmp_path: Path) -> None:
    """Microseconds are rounded down: 1/3 of one is still that frame."""
    film = Film([n * 1001 for n in range(90)], base=NTSC, rate=Fraction(30000, 1001), gop=10)
    work = FilmWork(make(tmp_path / "x.mp4", film), tmp_path)
    work.run(Probe())
    start, end = to_us(40 * 1001, NTSC), to_us(50 * 1001, NTSC)
    work.run(Clip(), options={"start_us": start, "end_us": end, "padding_ms": 0})
    made = work.made["clip.clip"][0]
    assert [number for _, number in decoded(made.path("clip.mp4"))] == list(range(40, 50))
    work.run(Clip(), options={"start_us": start + 1, "end_us": end + 1, "padding_ms": 0})
    assert [n for _, n in decoded(work.made["clip.clip"][1].path("clip.mp4"))] == list(range(41, 51))


@pytest.mark.parametrize(("part", "touched"), [((3, 6), [1]), ((0, 3), [0]), ((2.96, 3), [0]), ((2.96, 3.04), [0, 1])])
def test_a_clip_of_the_proxy_touches_no_piece_beyond_a_seam(
    part: tuple[float, float], touched: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = FilmWork(make(tmp_path / "x.mp4", Film(cfr(9), gop=75)), tmp_path)
    work.run(Probe())
    bounds = [0, 3 * 12800, 6 * 12800, 9 * 12800]
    for a, b in pairwise(bounds):
        work.run(Develop(), Span(a, b, Fraction(1, 12800)), wanted=["proxy"])
    asked = room_for_one(monkeypatch)
    start, end = (round(second * 1_000_000) for second in part)
    work.run(Clip(), options={"start_us": start, "end_us": end, "padding_ms": 0, "source": "proxy"})
    pieces = [piece.manifest.artifact("piece.mp4").sha256 for piece in work.made["develop.proxy"]]
    assert [pieces.index(sha256) for sha256 in asked if sha256 in pieces] == touched
    made = work.made["clip.clip"][0]
    assert [n for _, n in decoded(made.path("clip.mp4"))] == list(range(round(part[0] * 25), round(part[1] * 25)))


def test_a_frame_on_a_seam_is_developed_once(tmp_path: Path) -> None:
    work = FilmWork(plain(tmp_path / "x.mp4", 6), tmp_path)
    work.run(Probe())
    spans = chunks(work.facts, 5)
    counts = [work.run(Develop(), span, wanted=["metrics"])["metrics"].count for span in spans]
    assert [s.end for s in spans[:-1]] == [s.start for s in spans[1:]] == [5 * 12800]
    assert counts == [125, 25]


@pytest.mark.parametrize("rate", [8_000, 11_025, 22_050, 44_100, 48_000, 96_000])
@pytest.mark.parametrize("samples", [8_191, 8_192, 8_193, 44_101, 100_003])
def test_the_samples_of_a_track_are_counted_to_one(rate: int, samples: int, tmp_path: Path) -> None:
    path = tmp_path / "x.wav"
    path.write_bytes(wav(rate, samples=samples))
    made = extract_audio(path, probe(path), tmp_path / "pcm.wav", tmp_path / "sound.mp4", lambda _: None)
    assert abs(made.samples - Fraction(samples * PCM_RATE, rate)) < 1
    assert made.sound
    player = made.sound.base.denominator
    last = made.sound.segments[-1]
    assert abs(last.start + last.duration - Fraction(samples * player, rate)) < 1


def _samples(line: SampleTimeline) -> np.ndarray:
    return np.concatenate([frame.to_ndarray().reshape(-1) for frame in line.frames()])


@pytest.mark.parametrize("rate", [44_100, 48_000])
@pytest.mark.parametrize("seam", [1, 1024, 4095, 4096, 4097, 8191, 12_287])
def test_two_parts_of_a_sound_are_the_whole_to_the_sample(rate: int, seam: int, tmp_path: Path) -> None:
    path = tmp_path / "x.wav"
    path.write_bytes(wav(rate, samples=100_003))
    (track,) = probe(path).audio
    at, end = Fraction(seam, rate), Fraction(100_003, rate)
    parts = [_samples(SampleTimeline(path, track, a, b)) for a, b in ((Fraction(0), at), (at, end))]
    assert [len(part) for part in parts] == [seam, 100_003 - seam]
    assert np.array_equal(np.concatenate(parts), _samples(SampleTimeline(path, track)))


@pytest.mark.parametrize("rate", [22_050, 44_100, 48_000])
@pytest.mark.parametrize("part", [("1/2", "3/2"), ("1/3", "5/3"), ("1.001", "2.002"), ("0", "2")])
def test_a_clip_of_sound_lasts_as_many_samples_as_were_asked_for(
    rate: int, part: tuple[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "x.wav"
    path.write_bytes(wav(rate, 3))
    start, end = map(Fraction, part)
    cut_clip(path, probe(path), start, end, tmp_path / "clip.mp4", lambda _: None)
    with av.open(str(tmp_path / "clip.mp4")) as clip:
        stream = clip.streams.audio[0]
        assert stream.time_base
        assert abs((stream.duration or 0) * stream.time_base - (end - start)) < Fraction(1, stream.rate)


def test_every_tick_of_picture_and_sound_is_a_tick_of_the_film() -> None:
    assert movie_timescale(12_800, 48_000) == 192_000
    assert movie_timescale(30_000, 44_100) == 4_410_000
    assert movie_timescale(50_000, 44_101) == 50_000  # else it does not fit into 31 bits
