"""Shapes with soft edges, laid over a picture of bytes."""

import itertools
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Picture = npt.NDArray[np.uint8]  # height, width, red-green-blue and a spare byte: four are moved as one number
Alpha = npt.NDArray[np.float32]  # height, width: how much of a pixel is covered
Row = npt.NDArray[np.float64]  # one number for each column

WIDTH, HEIGHT = 1280, 720
Colour = tuple[int, int, int]


def colour(text: str) -> Colour:
    """`"#ffcc00"` as three bytes."""
    return int(text[1:3], 16), int(text[3:5], 16), int(text[5:7], 16)


def fade(stops: Sequence[tuple[float, str]], height: int = HEIGHT) -> npt.NDArray[np.float32]:
    """A column of colours: between the stops (0 top, 1 bottom) they change smoothly."""
    at = np.linspace(0, 1, height)
    places = [p for p, _ in stops]
    channels = [np.interp(at, places, [colour(c)[i] for _, c in stops]) for i in range(3)]
    return np.stack(channels, axis=1).astype(np.float32)


def backdrop(stops: Sequence[tuple[float, str]], width: int = WIDTH, height: int = HEIGHT) -> npt.NDArray[np.float32]:
    """A picture that fades from top to bottom, in numbers fine enough to paint light on."""
    return np.repeat(fade(stops, height)[:, None], width, axis=1)


def glow(picture: npt.NDArray[np.float32], x: float, y: float, reach: float, light: Colour, power: float) -> None:
    """Add a soft light to a backdrop."""
    rows, columns = np.ogrid[: picture.shape[0], : picture.shape[1]]
    near = np.exp(-((columns - x) ** 2 + (rows - y) ** 2) / (2 * reach * reach)).astype(np.float32)
    for channel in range(3):
        picture[..., channel] += near * (light[channel] - picture[..., channel]) * power


def settle(picture: npt.NDArray[np.float32], seed: int = 1) -> Picture:
    """Round a backdrop to bytes, with a grain that hides the steps of a slow fade."""
    grain = np.random.default_rng(seed).uniform(-0.6, 0.6, picture.shape[:2]).astype(np.float32)
    settled = np.zeros((*picture.shape[:2], 4), np.uint8)
    settled[..., :3] = np.clip(picture + grain[..., None] + 0.5, 0, 255)
    return settled


def disc(radius: float, soft: float = 1.0) -> Alpha:
    """A round shape; `soft` pixels wide at its edge."""
    half = int(radius + soft + 1)
    y, x = np.ogrid[-half : half + 1, -half : half + 1]
    return np.clip((radius - np.hypot(x, y)) / soft + 0.5, 0, 1).astype(np.float32)


def polygon(points: Sequence[tuple[float, float]], width: int, height: int) -> Alpha:
    """A filled shape, each pixel looked at in sixteen places."""
    y, x = np.mgrid[0 : height * 4, 0 : width * 4] / 4 + 0.125
    inside = np.zeros(x.shape, bool)
    for (ax, ay), (bx, by) in zip(points, [*points[1:], points[0]], strict=True):
        if ay != by:
            inside ^= ((y < ay) != (y < by)) & (x < (bx - ax) * (y - ay) / (by - ay) + ax)
    cover: Alpha = inside.reshape(height, 4, width, 4).mean(axis=(1, 3)).astype(np.float32)
    return cover


def stroke(canvas: Alpha, points: npt.NDArray[np.float64], radius: float) -> None:
    """Draw a chain of lines with round ends: how near each pixel is to the nearest of them."""
    for (ax, ay), (bx, by) in itertools.pairwise(points):
        left, right = int(min(ax, bx) - radius - 1), int(max(ax, bx) + radius + 2)
        top, bottom = int(min(ay, by) - radius - 1), int(max(ay, by) + radius + 2)
        y, x = np.mgrid[top:bottom, left:right]
        dx, dy = bx - ax, by - ay
        along = np.clip(((x - ax) * dx + (y - ay) * dy) / max(dx * dx + dy * dy, 1e-9), 0, 1)
        away = np.hypot(x - ax - along * dx, y - ay - along * dy)
        box = canvas[top:bottom, left:right]
        np.maximum(box, np.clip(radius - away + 0.5, 0, 1), out=box)


def lay(picture: Picture, alpha: Alpha, paint: Colour | Picture, x: float, y: float, strength: float = 1.0) -> None:
    """Lay a shape over the picture, its upper left corner at (x, y); what sticks out is cut off."""
    left, top = math.floor(x), math.floor(y)
    if x > left or y > top:
        alpha = _nudged(alpha, x - left, y - top)
    x0, y0 = max(0, left), max(0, top)
    x1, y1 = min(picture.shape[1], left + alpha.shape[1]), min(picture.shape[0], top + alpha.shape[0])
    if x0 >= x1 or y0 >= y1 or strength <= 0:
        return
    part = np.s_[y0 - top : y1 - top, x0 - left : x1 - left]
    over = np.asarray(_wider(paint)[part] if isinstance(paint, np.ndarray) else paint, np.float32)
    cover, below = alpha[part] * np.float32(strength), picture[y0:y1, x0:x1, :3]
    # Letters cover a quarter of their box: only the pixels that change are worth the sum.
    sparse = over.ndim == 1 and np.count_nonzero(cover) < 0.4 * cover.size
    where = np.nonzero(cover) if sparse else np.s_[:, :]
    under = below[where]
    below[where] = (under + cover[where][..., None] * (over - under) + 0.5).astype(np.uint8)


def _nudged(alpha: Alpha, x: float, y: float) -> Alpha:
    """The shape moved by a part of a pixel, so that slow things glide."""
    wide = np.pad(alpha, ((1, 1), (1, 1)))
    wide = wide[1:, :] * (1 - y) + wide[:-1, :] * y
    moved: Alpha = (wide[:, 1:] * (1 - x) + wide[:, :-1] * x).astype(np.float32)
    return moved


def _wider(paint: Picture) -> Picture:
    return np.pad(paint, ((0, 1), (0, 1), (0, 0)), mode="edge")


def ridge(picture: Picture, heights: Row, paint: npt.NDArray[np.float32]) -> None:
    """Fill everything below a line (one or more heights for each column) with the colours of the rows."""
    lines = heights.reshape(picture.shape[1], -1).T + 0.5
    full = np.ceil(lines.max(axis=0)).astype(np.int32)
    first = np.ceil(lines.min(axis=0)).astype(np.int32) - 1
    top, bottom = np.clip([full.min(), full.max()], 0, picture.shape[0])
    whole, shades = picture.view(np.uint32)[..., 0], _packed(paint)
    np.copyto(whole[top:bottom], shades[top:bottom, None], where=np.arange(top, bottom)[:, None] >= full)
    whole[bottom:] = shades[bottom:, None]
    for step in range(int((full - first).max())):
        _edge(picture, first + step, full, lines, paint)


def _edge(picture: Picture, rows: npt.NDArray[np.int32], full: npt.NDArray[np.int32], lines: Row, paint: Alpha) -> None:
    """Paint one pixel of each column that the line only partly covers."""
    x = np.nonzero((rows < full) & (rows >= 0) & (rows < picture.shape[0]))[0]
    y = rows[x]
    cover = np.clip(y + 1 - lines[:, x], 0, 1).mean(axis=0)[:, None]
    under = picture[y, x, :3]
    picture[y, x, :3] = (under + cover * (paint[y] - under) + 0.5).astype(np.uint8)


def _packed(paint: npt.NDArray[np.float32]) -> npt.NDArray[np.uint32]:
    pixels = np.zeros((len(paint), 4), np.uint8)
    pixels[:, :3] = paint + 0.5
    return pixels.view(np.uint32)[:, 0]
