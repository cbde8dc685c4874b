"""Makers of tiny films with known truth: every picture carries its number, so that a decoded one can be recognised."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray

Picture = NDArray[np.uint8]
BITS = 12
SIDE = 16  # of a bit's square


@dataclass(frozen=True)
class Film:
    """What to make."""

    times: Sequence[int]  # pts of every frame
    base: Fraction = Fraction(1, 12800)
    rate: Fraction | int = 25
    size: tuple[int, int] = (192, 108)
    codec: str = "libx264"
    gop: int = 25
    bframes: int = 2
    cuts: Sequence[int] = ()  # numbers of frames at which a new shot begins
    rotation: int = 0  # counter-clockwise, as a phone writes it
    options: dict[str, str] = field(default_factory=dict)
    muxing: dict[str, str] = field(default_factory=dict)
    kind: str | None = None
    tone: Fraction | None = None  # seconds of sound
    tone_at: Fraction = Fraction(0)
    sar: Fraction | None = None
    noise: int = 0  # so that files have some weight
    pixels: str = "yuv420p"
    still: bool = False  # nothing moves within a shot, and frames carry no number


def cfr(seconds: float, rate: Fraction | int = 25, base: Fraction = Fraction(1, 12800), start: int = 0) -> list[int]:
    step = 1 / (rate * base)
    assert step == int(step)
    return [start + i * int(step) for i in range(int(seconds * rate))]


def vfr(seconds: float, seed: int = 7) -> list[int]:
    """Steps of 10 to 130 ms in 1/1000 s, with one gap of two seconds."""
    chance = random.Random(seed)
    times, now = [], 0
    while now < seconds * 1000:
        times.append(now)
        now += chance.choice((10, 17, 33, 40, 67, 130)) if len(times) != 30 else 2000
    return times


def draw(number: int, film: Film) -> Picture:
    """A picture with its number as black and white squares over a background that says which shot it is."""
    width, height = film.size
    shot = sum(number >= cut for cut in film.cuts)
    chance = np.random.default_rng(shot + 1)
    low = chance.integers(20, 236, (4, 6, 3), dtype=np.uint8)
    picture = np.repeat(np.repeat(low, -(-height // 4), 0), -(-width // 6), 1)[:height, :width].copy()
    if film.still:
        return picture
    x = (number * 3) % max(1, width - 20)
    picture[height // 2 : height // 2 + 12, x : x + 20] = 255 - picture[height // 2 : height // 2 + 12, x : x + 20]
    for bit in range(BITS):
        picture[:SIDE, bit * SIDE : (bit + 1) * SIDE] = 235 if number >> bit & 1 else 16
    if film.noise:
        noise = np.random.default_rng(number).integers(-film.noise, film.noise + 1, picture[SIDE:].shape)
        picture[SIDE:] = np.clip(picture[SIDE:].astype(np.int16) + noise, 0, 255)
    return picture


def number_of(frame: av.VideoFrame, width: int = 192) -> int:
    """The number that a picture carries, whatever size it has now (it must be upright and as wide as it was)."""
    gray = frame.reformat(format="gray").to_ndarray()
    side = SIDE * frame.width / width
    middle = int(side / 2)
    return sum(1 << bit for bit in range(BITS) if gray[middle, int((bit + 0.5) * side)] > 126)


def make(path: Path, film: Film) -> Path:
    """Write a film."""
    with av.open(str(path), "w", format=film.kind, options=film.muxing) as out:
        video: av.VideoStream | None = None
        if film.times:
            options = {"bf": str(film.bframes), "threads": "1", **film.options} if "264" in film.codec else film.options
            if film.codec == "libx264":
                options = {"preset": "ultrafast", "crf": "18", "sc_threshold": "0", **options}
            stream = out.add_stream(film.codec, rate=film.rate, options=options)
            assert isinstance(stream, av.VideoStream)
            video = stream
            video.width, video.height = film.size
            video.pix_fmt = "yuvj420p" if film.codec == "mjpeg" else film.pixels
            video.codec_context.time_base = film.base
            video.codec_context.gop_size = film.gop
            if film.sar:
                video.sample_aspect_ratio = film.sar
            if film.rotation:
                video.set_display_rotation(film.rotation)
        sound = out.add_stream("aac", rate=48000) if film.tone else None
        if sound and film.tone:
            sound.codec_context.layout = "mono"
        for number, pts in enumerate(film.times):
            assert video
            frame = av.VideoFrame.from_ndarray(draw(number, film), format="rgb24")
            frame.pts, frame.time_base = pts, film.base
            out.mux(video.encode(frame))
        if video:
            out.mux(video.encode(None))
        if sound and film.tone:
            _play(out, sound, film.tone, film.tone_at)
    return path


def _play(out: av.container.OutputContainer, sound: av.AudioStream, seconds: Fraction, at: Fraction) -> None:
    samples = int(seconds * 48000)
    wave = np.sin(np.arange(samples) * 2 * np.pi * 440 / 48000)
    wave *= (np.arange(samples) // 12000) % 2 == 0  # a quarter of a second of tone, a quarter of silence
    for first in range(0, samples, 1024):
        part = (wave[first : first + 1024] * 12000).astype(np.int16)[None, :]
        frame = av.AudioFrame.from_ndarray(part, format="s16", layout="mono")
        frame.rate, frame.pts, frame.time_base = 48000, first + int(at * 48000), Fraction(1, 48000)
        out.mux(sound.encode(frame))
    out.mux(sound.encode(None))


def plain(path: Path, seconds: float = 2, **changes: object) -> Path:
    """Constant 25 frames a second, B-frames, a key frame every second."""
    return make(path, Film(cfr(seconds), **changes))  # type: ignore[arg-type]


def decoded(path: Path) -> list[tuple[int, int]]:
    """(pts, number) of every frame as a plain decode of the whole file shows them."""
    with av.open(str(path)) as container:
        return [(frame.pts or 0, number_of(frame)) for frame in container.decode(video=0)]
