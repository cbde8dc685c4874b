"""Chunked and joined against undivided: no frame lost, doubled or shifted, no sample of sound either; or refused."""

import wave
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import av
import numpy as np
import pytest
from numpy.typing import NDArray

from rushes.domain.errors import BadMedia
from rushes.domain.span import Span
from rushes.domain.video import AudioTrack, VideoFacts, VideoTrack
from rushes.media.developing.audio import PCM_RATE, extract_audio
from rushes.media.developing.proxy import ProxyWriter
from rushes.media.reading.audio import Resampler, SampleTimeline
from rushes.media.reading.frames import decode, develop
from rushes.media.reading.probe import probe
from rushes.media.reading.scaling import ToneMapper, is_hdr
from rushes.media.timeline import shift_seconds
from tests.media_kinds.films import make
from tests.media_kinds.kinds import KINDS

EXACT = [name for name, kind in KINDS.items() if not kind.refused]
REFUSED = [name for name, kind in KINDS.items() if kind.refused]
Pixels = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Seen:
    """A decoded frame: its time, all its bytes, and a small picture of it."""

    pts: int
    pixels: bytes
    small: Pixels


def seen(frame: av.VideoFrame, tone: ToneMapper | None = None) -> Seen:
    deep = 1 + (frame.format.components[0].bits > 8)
    wide = 4 if frame.format.name == "bgr0" else deep
    planes = [
        np.frombuffer(bytes(p), np.uint8).reshape(-1, p.line_size)[: p.height, : p.width * wide] for p in frame.planes
    ]
    assert frame.pts is not None
    return Seen(
        frame.pts, b"".join(p.tobytes() for p in planes), small(tone.map(frame) if tone and is_hdr(frame) else frame)
    )


def small(frame: av.VideoFrame) -> Pixels:
    return frame.reformat(48, 32, "gray").to_ndarray().astype(np.uint8)


def undivided(path: Path) -> list[Seen]:
    """What a plain decode of the whole file shows."""
    with av.open(str(path)) as container:
        stream = container.streams.best("video")
        assert isinstance(stream, av.VideoStream)
        tone = ToneMapper((stream.width, stream.height), "yuv420p")  # HDR is shown otherwise than it is coded
        return [seen(frame, tone) for frame in container.decode(stream)]


def grid(track: VideoTrack, path: Path, limit: int) -> list[Span]:
    """A chunk for every key frame, finer than any plan makes them."""
    with av.open(str(path)) as container:
        stream = container.streams[track.index]
        keys = [p.pts for p in container.demux(stream) if p.is_keyframe and p.size and not p.is_discard]
    bounds = [track.start, *sorted(k for k in keys if k is not None and track.start < k < track.end), track.end]
    spans = [Span(a, b, track.base) for a, b in pairwise(bounds)]
    return [track.span] if limit == 1 else spans


@pytest.mark.parametrize("name", EXACT)
def test_chunked_and_joined_is_what_an_undivided_decode_shows(name: str, tmp_path: Path) -> None:
    kind = KINDS[name]
    path = make(tmp_path / name, kind)
    facts = probe(path)
    if facts.video:
        want, spans = undivided(path), grid(facts.video, path, kind.chunks)
        got = [seen(frame) for span in spans for frame in decode(path, facts, span)]
        assert [f.pts for f in got] == [f.pts for f in want]
        assert [f.pixels for f in got] == [f.pixels for f in want]
        assert facts.video.frames == len(want)
        check_proxy(path, facts, spans, want, tmp_path)
    else:
        assert not kind.times
    assert len(facts.audio) == len(kind.sounds)
    if facts.sound:
        check_sound(path, facts, tmp_path)


def check_proxy(path: Path, facts: VideoFacts, spans: list[Span], want: list[Seen], folder: Path) -> None:
    """The pieces of all chunks one after another: the same times, and every picture most like its own."""
    track = facts.video
    assert track
    data = b""
    for number, span in enumerate(spans):
        proxy = ProxyWriter(folder / f"piece{number}.mp4", facts, span)
        develop(path, facts, span, [proxy], lambda _: None)
        layout = proxy.finish()
        assert sum(s.duration for s in layout.segments) == span.end - span.start
        data += (folder / f"piece{number}.mp4").read_bytes()[layout.init if number else 0 :]
    (folder / "joined.mp4").write_bytes(data)
    shown = list(_shown(folder / "joined.mp4", shift_seconds(facts)))
    assert [time for time, _ in shown] == [f.pts * track.base for f in want]
    turns = -track.rotation // 90
    for n, (_, picture) in enumerate(shown):
        near = range(max(0, n - 2), min(len(want), n + 3))
        apart = {i: np.abs(_turned(want[i].small, turns).astype(int) - picture).mean() for i in near}
        assert min(apart, key=lambda i: apart[i]) == n


def _turned(picture: Pixels, turns: int) -> Pixels:
    turned = np.rot90(picture, turns)
    if turned.shape == picture.shape:
        return turned
    frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(turned), format="gray")
    return frame.reformat(48, 32).to_ndarray().astype(np.uint8)


def _shown(path: Path, shift: int) -> Iterator[tuple[Fraction, Pixels]]:
    with av.open(str(path)) as container:
        base = container.streams.video[0].time_base
        assert base
        for number, frame in enumerate(container.decode(video=0)):
            assert number or frame.key_frame
            assert frame.pts is not None
            yield frame.pts * base - shift, small(frame)


def check_sound(path: Path, facts: VideoFacts, folder: Path) -> None:
    """The sound made once is the track's, to the sample; parts of it are parts of the whole."""
    track = facts.sound
    assert track
    made = extract_audio(path, facts, folder / "pcm.wav", folder / "sound.mp4", lambda _: None)
    with wave.open(str(folder / "pcm.wav")) as wav:
        pcm = np.frombuffer(wav.readframes(made.samples), "<i2").astype(int)
    start, want = _heard(path, track.index)
    assert made.start == start
    assert abs(len(pcm) - len(want)) <= 1
    few = min(len(pcm), len(want))
    assert np.abs(pcm[:few] - want[:few]).max() <= 2
    check_parts(path, track)


def check_parts(path: Path, track: AudioTrack) -> None:
    """Quarters of the sound, each decoded alone, are the whole; a clock of milliseconds errs by half of one."""
    line = SampleTimeline(path, track)
    whole = _samples(line)
    cuts = [line.start + Fraction(len(whole) * n, 4 * track.rate) for n in range(5)]
    parts = [_samples(SampleTimeline(path, track, a, b)) for a, b in pairwise(cuts)]
    assert [len(p) for p in parts] == [round((b - a) * track.rate) for a, b in pairwise(cuts)]
    slack = int(track.base * track.rate / 2)
    for part, start in zip(parts, cuts, strict=False):
        at = round((start - line.start) * track.rate)
        apart = min(_apart(whole, part, at + shift) for shift in range(-slack, slack + 1))
        assert apart <= 1e-4 * float(np.abs(whole).max())


def _samples(line: SampleTimeline) -> NDArray[np.float64]:
    return np.concatenate([f.to_ndarray().reshape(-1).astype(float) for f in line.frames()])


def _apart(whole: NDArray[np.float64], part: NDArray[np.float64], at: int) -> float:
    """How much the inner half of a part differs from the whole at that place."""
    few = len(part) // 4
    same = whole[at + few : at + 3 * few]
    return float(np.abs(same - part[few : few + len(same)]).max())


def _heard(path: Path, index: int) -> tuple[Fraction, NDArray[np.int64]]:
    """The sound as a plain decode gives it, and when it begins."""
    resampler, heard, start = Resampler("s16", "mono", PCM_RATE), [], None
    with av.open(str(path)) as container:
        for frame in container.decode(container.streams[index]):
            assert isinstance(frame, av.AudioFrame)
            if start is None:
                assert frame.pts is not None
                assert frame.time_base
                start = frame.pts * frame.time_base
            frame.pts = None
            heard += resampler.push(frame)
    heard += resampler.push(None)
    assert start is not None
    return start, np.concatenate([f.to_ndarray()[0] for f in heard]).astype(np.int64)


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_done_exactly_is_refused_with_the_reason(name: str, tmp_path: Path) -> None:
    path = make(tmp_path / name, KINDS[name])
    with pytest.raises(BadMedia, match=KINDS[name].refused):
        probe(path)
