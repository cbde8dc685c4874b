"""Films made by seed for the measurements: textures that move under grain, with known cuts and slow changes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray

FPS, SOUND_RATE = 25, 48_000
BLACK = 16
SLOW = 24  # frames of a fade or a dissolve
KINDS = ("cut", "cut", "cut", "cut", "fade", "dissolve")
BITS, STRIPE = 12, 30  # of a number that is written into a picture, and which part of its height that takes

Plane = NDArray[np.int16]
Planes = tuple[Plane, Plane, Plane]
Size = tuple[int, int]
Chance = np.random.Generator


@dataclass(frozen=True, slots=True)
class Film:
    """A film and the truth about it: first frames of shots after hard cuts, first and end of slow changes by kind."""

    path: Path
    cuts: tuple[int, ...]
    slow: tuple[tuple[int, int, str], ...]


@dataclass(frozen=True, slots=True)
class Shot:
    """What a camera sees from one frame to another: a wide picture it moves over, and a thing that crosses it."""

    first: int
    end: int
    kind: str  # how it begins
    planes: Planes
    thing: tuple[int, float, int]  # where it begins, pixels a frame, how light it is
    pan: tuple[float, float]  # parts of the room a frame
    every: int  # footage of fewer frames a second repeats them
    flash: int

    def seen(self, number: int, size: Size) -> Planes:
        """The picture at a frame of the film, in Y, U and V."""
        at = number - self.first + SLOW
        at -= at % self.every
        (wide, high), room = size, (size[0] // 2, size[1] // 4)
        x, y = (int(min(1.0, p * at) * r) // 2 * 2 for p, r in zip(self.pan, room, strict=True))
        luma, u, v = (
            p[y // n : (y + high) // n, x // n : (x + wide) // n] for p, n in zip(self.planes, (1, 2, 2), strict=True)
        )
        start, speed, light = self.thing
        left, shown = int(start + speed * at) % wide, luma.copy()
        shown[high // 3 : 2 * high // 3, left : left + wide // 6] += light
        return shown + np.int16(70 * (self.flash <= number < self.flash + 2)), u, v


def make_film(path: Path, size: Size, seconds: int, seed: int, grain: float = 3, *, numbered: bool = False) -> Film:
    """Write an H.264 film with stereo sound, under grain of that strength; the same seed gives the same film.

    Frames that are `numbered` can be told apart where nothing moves.
    """
    chance = np.random.default_rng(seed)
    plan = _plan(seconds * FPS, chance)
    with av.open(str(path), "w") as out:
        stream = out.add_stream("libx264", rate=FPS, options={"preset": "veryfast", "crf": "22", "threads": "2"})
        heard = out.add_stream("aac", rate=SOUND_RATE, layout="stereo")
        assert isinstance(stream, av.VideoStream)
        stream.width, stream.height, stream.pix_fmt = *size, "yuv420p"
        for number, picture in enumerate(_pictures(plan, size, grain, chance)):
            if numbered:
                _write(number, picture, size)
            frame = av.VideoFrame.from_ndarray(picture, format="yuv420p")
            frame.pts, frame.time_base = number, Fraction(1, FPS)
            out.mux(stream.encode(frame))
            out.mux(heard.encode(_sound(number, chance)))
        out.mux(stream.encode(None))
        out.mux(heard.encode(None))
    half = SLOW // 2
    slow = tuple((first - half, first + half, kind) for first, _, kind in plan[1:] if kind != "cut")
    return Film(path, tuple(first for first, _, kind in plan if kind == "cut"), slow)


def number_of(frame: av.VideoFrame) -> int:
    """The number that is written into a picture of any size."""
    row = frame.to_ndarray(format="gray")[: frame.height // STRIPE // 2].mean(axis=0)
    return sum(int(row[frame.width * (2 * bit + 1) // (2 * BITS)] > 128) << bit for bit in range(BITS))


def _write(number: int, picture: NDArray[np.uint8], size: Size) -> None:
    """In black and white, a bit beside the other."""
    cells = np.arange(size[0]) * BITS // size[0]
    picture[: size[1] // STRIPE] = np.where(number >> cells & 1, 235, 16)


def _plan(frames: int, chance: Chance) -> list[tuple[int, int, str]]:
    """First frame and end of every shot, and how it begins."""
    plan, first, kind = [], 0, "start"
    while first < frames:
        end = first + int(chance.integers(40, 110))
        end = frames if end > frames - 60 else end
        plan.append((first, end, kind))
        first, kind = end, str(chance.choice(KINDS))
    return plan


def _pictures(
    plan: Sequence[tuple[int, int, str]], size: Size, strength: float, chance: Chance
) -> Iterator[NDArray[np.uint8]]:
    grain = [np.rint(chance.normal(0, strength, size[::-1])).astype(np.int16) for _ in range(8)]
    before = now = _shot(plan[0], size, chance)
    for following in [*plan[1:], (plan[-1][1] + SLOW, 0, "end")]:
        after = _shot(following, size, chance)
        for number in range(now.first, now.end):
            seen = now.seen(number, size)
            if now.kind != "cut" and number < now.first + SLOW // 2:
                seen = _mixed(before.seen(number, size), seen, number - now.first, now.kind)
            elif after.kind != "cut" and number >= after.first - SLOW // 2:
                seen = _mixed(seen, after.seen(number, size), number - after.first, after.kind)
            noise = grain[int(chance.integers(8))]
            yield _packed((seen[0] + np.roll(noise, int(chance.integers(size[1])), axis=0), *seen[1:]), size)
        before, now = now, after


def _shot(row: tuple[int, int, str], size: Size, chance: Chance) -> Shot:
    wide, high = size[0] * 3 // 2, size[1] * 5 // 4
    luma = _texture((wide, high), int(chance.integers(60, 180)), 70, chance)
    u, v = (_texture((wide // 2, high // 2), int(chance.integers(90, 166)), 25, chance) for _ in "uv")
    still = chance.random() < 0.7  # a tripod, before which somebody hardly moves: a sixth of the samples is new
    pan = (0.0, 0.0) if still else (float(chance.uniform(0, 0.008)), float(chance.uniform(0, 0.008)))
    speed = float(chance.uniform(0, 1) if still else chance.uniform(2, 12)) * size[0] / 1280
    thing = (int(chance.integers(size[0])), speed, int(chance.choice((-50, 50))))
    flash = int(chance.integers(row[0] + SLOW, row[0] + 2 * SLOW)) if chance.random() < 0.2 else -9
    return Shot(*row, (luma, u, v), thing, pan, int(chance.choice((1, 1, 1, 2))), flash)


def _texture(size: Size, middle: int, depth: int, chance: Chance) -> Plane:
    """Shapes of four sizes, the smaller the fainter."""
    plane = np.full(size[::-1], middle, np.int16)
    for n, coarse in enumerate((120, 40, 12, 4)):
        few = chance.integers(0, 256, (size[1] // coarse + 2, size[0] // coarse + 2)).astype(np.uint8)
        grown = av.VideoFrame.from_ndarray(few, format="gray").reformat(*size, interpolation="BICUBIC").to_ndarray()
        plane += (grown.astype(np.int16) - 128) * depth // (128 << n)
    return plane


def _mixed(a: Planes, b: Planes, since: int, kind: str) -> Planes:
    """Two pictures on the way from one to the other, which is half done at 0."""
    share = since / SLOW + 0.5
    if kind == "dissolve":
        y, u, v = ((p + (q - p) * np.float32(share)).astype(np.int16) for p, q in zip(a, b, strict=True))
        return y, u, v
    seen, left = (a, 1 - 2 * share) if share < 0.5 else (b, 2 * share - 1)
    y, u, v = (
        (to + (p - to) * np.float32(left)).astype(np.int16) for p, to in zip(seen, (BLACK, 128, 128), strict=True)
    )
    return y, u, v


def _packed(planes: Planes, size: Size) -> NDArray[np.uint8]:
    whole = np.concatenate([p.reshape(-1) for p in planes])
    packed: NDArray[np.uint8] = np.clip(whole, 16, 235).astype(np.uint8).reshape(size[1] * 3 // 2, size[0])
    return packed


def _sound(number: int, chance: Chance) -> av.AudioFrame:
    """A chord that changes every second, under noise."""
    few = SOUND_RATE // FPS
    time = (np.arange(few) + number * few) / SOUND_RATE
    tone = sum(np.sin(2 * np.pi * (110 + 40 * (number // FPS % 9)) * n * time) for n in (1, 2, 3)) * 3000
    both = np.stack([tone, tone]) + chance.normal(0, 300, (2, few))
    frame = av.AudioFrame.from_ndarray((both / 32768).astype(np.float32), format="fltp", layout="stereo")
    frame.sample_rate, frame.pts, frame.time_base = SOUND_RATE, number * few, Fraction(1, SOUND_RATE)
    return frame
