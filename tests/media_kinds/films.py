"""Tiny films of every kind that has ever gone wrong, made at test time by the encoders of the media library."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray

MS, TS, MP4 = Fraction(1, 1000), Fraction(1, 90000), Fraction(1, 12800)
SOUND_RATE = 48_000
Picture = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Sound:
    """One track of sound: clicks every third of a second, so that a shift of few samples shows."""

    seconds: Fraction = Fraction(3)
    at: Fraction = Fraction(0)
    codec: str = "aac"
    default: bool = True


@dataclass(frozen=True, slots=True)
class Kind:
    """How to make one film, and what is expected of it."""

    times: Sequence[int] = ()
    base: Fraction = MP4
    rate: Fraction = Fraction(25)
    codec: str = "libx264"
    size: tuple[int, int] = (96, 64)
    pixels: str = "yuv420p"
    gop: int = 20
    options: dict[str, str] = field(default_factory=dict)
    muxing: dict[str, str] = field(default_factory=dict)
    sounds: Sequence[Sound] = ()
    rotation: int = 0
    sar: Fraction = Fraction(1)
    context: dict[str, int] = field(default_factory=dict)  # what only attributes of the encoder say
    after: Callable[[Path], None] = lambda _path: None  # what happens to the file when it is made
    refused: str = ""  # the reason expected; else everything must be exact
    chunks: int = 0  # at most so many; 0: as many as there are key frames


def steady(count: int, step: int = 512, start: int = 0) -> list[int]:
    return [start + n * step for n in range(count)]


def uneven(count: int) -> list[int]:
    """Steps of 10 to 130 ms, and a gap of one and a half seconds."""
    steps = np.random.default_rng(7).choice([10, 17, 33, 40, 67, 130], count)
    steps[count // 2] = 1500
    return [0, *(int(t) for t in np.cumsum(steps)[:-1])]


def draw(number: int, size: tuple[int, int]) -> Picture:
    """A picture that no neighbour looks like: a bar at a place of its own over a gradient."""
    width, height = size
    y, x = np.mgrid[0:height, 0:width]
    gray = 60 + 60 * x // width + 40 * y // height
    at = number * 11 % max(1, width - 8)
    gray[:, at : at + 8] = 235 if number % 2 else 20
    return np.stack([gray, np.roll(gray, 5, 1), 255 - gray], axis=2).astype(np.uint8)


def make(path: Path, kind: Kind) -> Path:
    """Write the film; pictures and sound in the order of their times, as cameras do."""
    with av.open(str(path), "w", options=kind.muxing) as out:
        video = _video(out, kind) if kind.times else None
        sounds = [_sound(out, sound) for sound in kind.sounds]
        parts = [_pictures(video, kind)] if video else []
        parts += [_clicks(stream, sound) for stream, sound in zip(sounds, kind.sounds, strict=True)]
        for _, packets in sorted((pair for part in parts for pair in part), key=lambda pair: pair[0]):
            out.mux(packets())
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))  # as root SVT-AV1 takes real time for who calls it
    kind.after(path)
    return path


_Due = list[tuple[float, Callable[[], "list[av.Packet[Any]]"]]]


def _video(out: av.container.OutputContainer, kind: Kind) -> av.VideoStream:
    quick = {
        "libx264": {"preset": "ultrafast", "bf": "2", "sc_threshold": "0", "threads": "1"},
        "libx265": {"preset": "ultrafast", "x265-params": "log-level=none:pools=none:frame-threads=1:bframes=2"},
        "libsvtav1": {"preset": "12", "svtav1-params": "lp=1"},
        "libvpx-vp9": {"deadline": "realtime", "cpu-used": "8", "lag-in-frames": "8", "auto-alt-ref": "1"},
        "libvpx": {"deadline": "good", "cpu-used": "5", "lag-in-frames": "8", "auto-alt-ref": "1"},
    }
    stream = out.add_stream(kind.codec, rate=kind.rate, options={**quick.get(kind.codec, {}), **kind.options})
    assert isinstance(stream, av.VideoStream)
    stream.width, stream.height = kind.size
    stream.pix_fmt = kind.pixels
    context = stream.codec_context
    context.time_base, context.gop_size = kind.base, kind.gop
    for name, value in kind.context.items():
        setattr(context, name, value)
    if kind.sar != 1:
        stream.sample_aspect_ratio = kind.sar
    if kind.rotation:
        stream.set_display_rotation(kind.rotation)
    return stream


def _pictures(stream: av.VideoStream, kind: Kind) -> _Due:
    def encoded(number: int, pts: int) -> "list[av.Packet[Any]]":
        frame = av.VideoFrame.from_ndarray(draw(number, kind.size), format="rgb24")
        frame.pts, frame.time_base = pts, kind.base
        return stream.encode(frame)

    due: _Due = [(float(pts * kind.base), partial(encoded, n, pts)) for n, pts in enumerate(kind.times)]
    return [*due, (due[-1][0] + 0.001, lambda: stream.encode(None))]


def _sound(out: av.container.OutputContainer, sound: Sound) -> av.AudioStream:
    noiseless = {"aac_pns": "0"} if sound.codec == "aac" else {}  # else decoders make noise of their own
    stream = out.add_stream(sound.codec, rate=SOUND_RATE, layout="mono", options=noiseless)
    assert isinstance(stream, av.AudioStream)
    kind = stream.disposition
    stream.disposition = kind.default if sound.default else kind.comment
    return stream


def _clicks(stream: av.AudioStream, sound: Sound) -> _Due:
    samples = int(sound.seconds * SOUND_RATE)
    wave = np.random.default_rng(3).normal(0, 200, samples)
    for first in range(0, samples, SOUND_RATE // 3):
        wave[first : first + 200] += 16000

    def encoded(first: int) -> "list[av.Packet[Any]]":
        part = wave[None, first : first + 960].astype(np.int16)
        frame = av.AudioFrame.from_ndarray(part, format="s16", layout="mono")
        frame.rate, frame.pts, frame.time_base = SOUND_RATE, first + int(sound.at * SOUND_RATE), Fraction(1, SOUND_RATE)
        return stream.encode(frame)

    due: _Due = [(float(sound.at) + first / SOUND_RATE, partial(encoded, first)) for first in range(0, samples, 960)]
    return [*due, (due[-1][0] + 0.001, lambda: stream.encode(None))]
