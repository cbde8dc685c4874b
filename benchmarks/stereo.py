"""3D: the warp of both eyes against an inverse warp in cv2 and a sorted forward warp in numpy; flicker of depth.

CPU seconds of one thread, rounds interleaved, medians compared: `stereo.py [--pair FOLDER] [-n 5]`. The folder holds
motorcycle_left.png, motorcycle_right.png and motorcycle_disp.npz (Middlebury 2014); without it a made scene stands in.
"""

import argparse
import functools
import statistics
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rushes.engines.images import decode_jpeg
from rushes.engines.local import LocalEngine
from rushes.engines.models.store import ModelStore
from rushes.media.stereo.depth import DepthWriter, GradeOptions, TemporalDepth, grade_shots, read_map
from rushes.media.stereo.warp import SUBPIXELS, Disparity, Planes, SubpixelPicture, dilate
from rushes.model_settings import models_folder
from rushes.settings import load

cv2: Any = import_module("cv2")  # opencv-python-headless: the peer, and nothing of ours
PAIR = Path(__file__).parents[2] / "shared" / "samples" / "images"
MEDIA = Path(__file__).parents[1] / "tests" / "media"
MADE = "a made scene"
MARGIN = 80  # columns at the sides that only one camera sees
BARS = {"inverse": 0.8, "forward": 0.09, "gain": 3.0}

Rgb = NDArray[np.uint8]
Floats = NDArray[np.float32]


def pair(folder: Path) -> tuple[Rgb, Rgb, Floats, str]:
    """Left view, right view, and by how many pixels each part of the left one lies farther right."""
    if not (folder / "motorcycle_disp.npz").is_file():
        return (*made_pair(), MADE)
    left, right = (cv2.imread(str(folder / f"motorcycle_{side}.png"))[:, :740, ::-1] for side in ("left", "right"))
    file = np.load(folder / "motorcycle_disp.npz")
    apart = file[file.files[0]][:, :740].astype(np.float32)
    return np.ascontiguousarray(left), np.ascontiguousarray(right), known(apart), "the motorcycle pair"


def made_pair() -> tuple[Rgb, Rgb, Floats]:
    """Walls one before the other."""
    chance = np.random.default_rng(3)
    texture = cv2.resize(chance.integers(0, 256, (125, 220, 3), dtype=np.uint8), (880, 500))
    left, right = texture[:, 60:800].copy(), texture[:, 68:808].copy()
    apart = np.full((500, 740), 8, np.float32)
    for n, near in enumerate((16, 24, 36, 48, 60)):
        x, y, wall = 90 + 110 * n, 40 + 60 * n, chance.integers(0, 256, (180, 90, 3), dtype=np.uint8)
        left[y : y + 180, x : x + 90], right[y : y + 180, x - near : x - near + 90] = wall, wall
        apart[y : y + 180, x : x + 90] = near
    return left, right, apart


def known(apart: Floats) -> Floats:
    """Places without a measurement get that of the farther neighbour in their row."""
    there = np.isfinite(apart)
    x = np.arange(apart.shape[1])
    before = np.maximum.accumulate(np.where(there, x, 0), axis=1)
    after = np.minimum.accumulate(np.where(there, x, len(x) - 1)[:, ::-1], axis=1)[:, ::-1]
    sides = [np.take_along_axis(np.where(there, apart, np.inf), at, 1) for at in (before, after)]
    least = np.minimum(*sides)
    return np.asarray(np.where(np.isfinite(least), least, apart[there].min()), np.float32)


def psnr(a: Rgb, b: Rgb) -> float:
    """Of the middle, in dB."""
    apart = a[:, MARGIN:-MARGIN].astype(np.float64) - b[:, MARGIN:-MARGIN]
    return float(10 * np.log10(255**2 / np.mean(apart**2)))


@functools.cache
def grid(shape: tuple[int, ...]) -> Floats:
    """Row and column of every place, made once."""
    return np.indices(shape, np.float32)


def inverse(picture: Rgb, apart: Floats, sign: int = 1) -> Rgb:
    """The peer: where a place comes from is guessed three times, then looked up."""
    y, x = grid(apart.shape)
    guess = apart
    for _ in range(3):
        guess = cv2.remap(apart, x + sign * guess, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    seen = cv2.remap(picture, x + sign * guess, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return np.asarray(seen, np.uint8)


def forward(picture: Rgb, apart: Floats, sign: int = 1) -> Rgb:
    """The other peer: all pixels from far to near, each drawn where it goes; holes take what lies beside them."""
    height, width = apart.shape
    order = np.argsort(apart, axis=None, kind="stable")
    rows, columns = np.divmod(order, width)
    to = np.rint(columns - sign * apart.reshape(-1)[order]).astype(np.intp)
    inside = (to >= 0) & (to < width)
    seen, there = np.zeros_like(picture), np.zeros((height, width), bool)
    seen[rows[inside], to[inside]] = picture.reshape(-1, 3)[order[inside]]
    there[rows[inside], to[inside]] = True
    x = np.arange(width)
    side = np.minimum.accumulate(np.where(there, x, width - 1)[:, ::-1], axis=1)[:, ::-1]
    return np.asarray(np.take_along_axis(seen, side[:, :, None] if sign > 0 else _before(there)[:, :, None], 1))


def _before(there: NDArray[np.bool_]) -> NDArray[np.intp]:
    return np.maximum.accumulate(np.where(there, np.arange(there.shape[1]), 0), axis=1)


def shift_of(apart: Floats) -> Disparity:
    """As the warp takes it: quarters of a pixel, a row for two."""
    whole = np.rint(apart * SUBPIXELS).astype(np.int16)
    return dilate(np.maximum(whole[::2], whole[1::2]))


def ours(picture: Rgb, apart: Floats) -> Rgb:
    """One eye, channel by channel, so that nothing is lost to YUV."""
    colour = np.zeros((picture.shape[0] // 2, picture.shape[1] // 2), np.uint8)
    planes = [np.ascontiguousarray(picture[:, :, n]) for n in range(3)]
    return np.stack(
        [SubpixelPicture.of((p, colour, colour)).warp(shift_of(apart), left=False)[0] for p in planes], axis=2
    )


def both(planes: Planes, shift: Disparity) -> None:
    """Both eyes of a picture, as the product makes them."""
    fine, wide = SubpixelPicture.of(planes), dilate(shift)
    fine.warp(wide, left=True)
    fine.warp(wide, left=False)


def yuv(picture: Rgb) -> Planes:
    """Planes as decoders give them."""
    height, width = picture.shape[:2]
    flat = cv2.cvtColor(picture, cv2.COLOR_RGB2YUV_I420)
    small = flat[height:].reshape(2, height // 2, width // 2)
    return np.ascontiguousarray(flat[:height]), np.ascontiguousarray(small[0]), np.ascontiguousarray(small[1])


def milliseconds(work: Callable[[], Any], times: int) -> float:
    """CPU time of one call."""
    begun = time.process_time()
    for _ in range(times):
        work()
    return (time.process_time() - begun) / times * 1000


def warp(folder: Path, rounds: int) -> bool:
    """Print quality and pace; whether the bars are met."""
    left, right, apart, name = pair(folder)
    quality = {"ours": ours(left, apart), "inverse": inverse(left, apart), "forward": forward(left, apart)}
    decibels = {who: psnr(seen, right) for who, seen in quality.items()}
    large = np.ascontiguousarray(cv2.resize(left, (1280, 720)))
    near = cv2.resize(apart, (1280, 720)) * np.float32(19 / apart.max())  # 3 % of the width for both eyes together
    planes, shift = yuv(large), np.rint(near * SUBPIXELS).astype(np.int16)[::2].copy()
    work: dict[str, tuple[Callable[[], Any], int]] = {
        "ours": (lambda: both(planes, shift), 8),
        "inverse": (lambda: [inverse(large, near, sign) for sign in (1, -1)], 8),
        "inverse on YUV": (lambda: [inverse_yuv(planes, near, sign) for sign in (1, -1)], 8),
        "forward": (lambda: [forward(large, near, sign) for sign in (1, -1)], 1),
    }
    times: dict[str, list[float]] = {who: [] for who in work}
    for _ in range(rounds + 1):  # the first one warms up
        for who, (call, repeats) in work.items():
            times[who].append(milliseconds(call, repeats))
    cost = {who: statistics.median(found[1:]) for who, found in times.items()}
    for who in work:
        said = f"{decibels[who]:6.2f} dB" if who in decibels else " " * 9
        print(f"  {who:16} {said}  {cost[who]:7.1f} ms  ours is {cost['ours'] / cost[who]:.2f}x")
    gain = decibels["ours"] - decibels["inverse"]
    better = decibels["ours"] - decibels["forward"]
    print(f"  on {name}: {gain:+.2f} dB over the inverse warp, {better:+.2f} over the sorted one")
    quick = cost["ours"] <= BARS["inverse"] * cost["inverse"] and cost["ours"] <= BARS["forward"] * cost["forward"]
    return quick and gain >= BARS["gain"] and (better >= 0 or name == MADE)


def inverse_yuv(planes: Planes, apart: Floats, sign: int) -> list[Rgb]:
    """The first peer on planes of YUV, for those who find RGB unfair to it."""
    seen = [inverse(planes[0], apart, sign)]
    half = cv2.resize(apart, planes[1].shape[::-1], interpolation=cv2.INTER_NEAREST) / 2
    y, x = grid(half.shape)
    return [*seen, *(cv2.remap(plane, x + sign * half, y, cv2.INTER_LINEAR) for plane in planes[1:])]


def flicker(frames: int = 40) -> bool:
    """Print how much depth moves where nothing does, by the way in which it is normalised; whether ours is least."""
    still = decode_jpeg((MEDIA / "coffee.jpg").read_bytes())[:400, :600]
    near, base = measured(still, frames), Fraction(1, 10)
    ends = np.array([np.percentile(one, (2, 98)) for one in near])
    decayed = ends.copy()
    for n in range(1, frames):
        decayed[n] = 0.9 * decayed[n - 1] + 0.1 * ends[n]
    found = {"per frame": moves(near, ends), "exponential decay 0.9": moves(near, decayed)}
    whole = np.tile(np.percentile(near, (2, 98)), (frames, 1))
    found |= {
        "per shot": moves(near, whole),
        "per shot, smoothed": moves(smoothed(near, base), np.tile((0, 1), (frames, 1))),
    }
    for who, value in found.items():
        print(f"  {who:24} {value:.2e}")
    return found["per shot, smoothed"] < found["per shot"] < min(found["per frame"], found["exponential decay 0.9"])


def measured(still: Rgb, frames: int) -> Floats:
    """What FastDepth says of a still picture with grain, past which something bright moves."""
    store = ModelStore(models_folder(load().settings))
    store.pull(["fastdepth"])
    engine, chance = LocalEngine(store), np.random.default_rng(2)
    found = []
    for n in range(frames):
        frame = np.clip(still.astype(np.int16) + chance.integers(-8, 9, still.shape), 0, 255).astype(np.uint8)
        frame[120:320, n * 12 : n * 12 + 90] = (240, 220, 60)
        found += engine.inverse_depth("fastdepth", [frame], inverse=False)
    return np.array(found)


def moves(near: Any, ends: Any) -> float:
    """The variance over time of normalised depth, in the upper quarter, which nothing crosses."""
    low, high = (np.asarray(ends)[:, n][:, None, None] for n in (0, 1))
    level = np.clip((np.asarray(near) - low) / (high - low), 0, 1)
    return float(level[:, : level.shape[1] // 4].var(axis=0).mean())


def smoothed(near: Floats, base: Fraction) -> Floats:
    """As the product shows it."""
    with TemporaryDirectory() as folder:
        file = Path(folder, "depth.bin")
        writer = DepthWriter(file, base, (600, 400))
        for pts, one in enumerate(near):
            writer.add(pts, one)
        index = writer.finish()
        (shot,) = grade_shots([(0, len(near))], index.maps, GradeOptions())
        with file.open("rb") as maps:
            shown = TemporalDepth(index.maps, lambda one: read_map(maps, one, index.size), base)
            return np.array([shown.at(pts, shot) for pts in range(len(near))], np.float32) / np.float32(65535)


def main() -> int:
    """Print the figures; 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pair", type=Path, default=PAIR)
    parser.add_argument("-n", type=int, default=5)
    asked = parser.parse_args()
    cv2.setNumThreads(1)
    print("Warp of both eyes, 720p, CPU time; PSNR of one view against the photograph:")
    good = warp(asked.pair, asked.n)
    print("Variance over time of depth where nothing moves (static camera, grain):")
    steady = flicker()
    return 0 if good and steady else 1


if __name__ == "__main__":
    sys.exit(main())
