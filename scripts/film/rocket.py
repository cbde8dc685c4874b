"""Lift-off: smoke on the ground, then the rocket climbs from dusk into the stars."""

from functools import cache

import numpy as np

from film.captions import Draw, Stars, caption, ease
from film.shapes import (
    HEIGHT,
    WIDTH,
    Alpha,
    Colour,
    Picture,
    backdrop,
    disc,
    fade,
    glow,
    lay,
    polygon,
    ridge,
    settle,
    stroke,
)

TALL = 3 * HEIGHT
SKY = [(0, "#05061a"), (0.3, "#0d1440"), (0.55, "#25408a"), (0.75, "#4c7fb8"), (0.9, "#f0a98c"), (1, "#f7cfa0")]
PAD_X, GROUND = 700, TALL - 96
LENGTH = 300
IGNITION, PULL = 0.9, 92.0  # seconds; pixels per second and second

Shape = tuple[Alpha, Colour]


def draw() -> Draw:
    """The scene, seven seconds at most."""
    world, stars, body = _world(), Stars(170, 1150, seed=8), _body()
    rng = np.random.default_rng(9)
    puffs = rng.uniform(0, 1, (170, 4))

    def at(seconds: float) -> Picture:
        climb = 0.5 * PULL * max(0.0, seconds - IGNITION) ** 2
        top = TALL - HEIGHT - min(TALL - HEIGHT, max(0.0, climb - 150))
        picture = world[int(top) : int(top) + HEIGHT].copy()
        stars.draw(picture, seconds, shift=-top, strength=ease((1440 - top) / 900))
        nose = GROUND - LENGTH - climb - top
        if seconds > IGNITION - 0.5:
            _flame(picture, PAD_X, nose + LENGTH - 12, seconds, room=climb + 40)
        lay(picture, *body, PAD_X - 70, nose)
        _smoke(picture, puffs, seconds, top, climb)
        caption(picture, "LIFT-OFF", seconds)
        return picture

    return at


def _world() -> Picture:
    sky = backdrop(SKY, height=TALL)
    glow(sky, PAD_X, TALL - 120, 420, (255, 196, 150), 0.45)
    picture = settle(sky, seed=6)
    x = np.arange(WIDTH)
    for base, swing, length, top, low in (
        (190, 26, 300, "#8a6f9c", "#a87f98"),
        (140, 20, 210, "#5b4a7c", "#6d5580"),
        (92, 3, 460, "#2b2550", "#1c1a3c"),
    ):
        line = TALL - base - swing * (np.sin(x / length + base) + 0.4 * np.sin(x / length * 2.7))
        ridge(picture, line, fade([(0, top), (1 - base / TALL, top), (1, low)], TALL))
    _tower(picture)
    return picture


def _tower(picture: Picture) -> None:
    """The frame that held the rocket: two posts, cross-braces, three arms."""
    canvas = np.zeros((410, 140), np.float32)
    for post in (20, 62):
        stroke(canvas, np.array([(post, 10.0), (post, 396.0)]), 3)
    for brace in range(16, 340, 44):
        stroke(canvas, np.array([(20.0, brace), (62.0, brace + 44), (20.0, brace + 44), (62.0, brace)]), 1.6)
    for arm in (60.0, 170.0, 280.0):
        stroke(canvas, np.array([(62.0, arm), (112.0, arm)]), 3)
    stroke(canvas, np.array([(41.0, 10.0), (41.0, 2.5)]), 1.5)
    lay(picture, canvas, (34, 28, 62), PAD_X - 160, GROUND - 390)


def _body() -> tuple[Alpha, Picture]:
    """The rocket as one shape with its colours."""
    parts = _parts()
    colours = np.zeros((LENGTH, 140, 4), np.uint8)
    colours[..., :3] = 255
    cover = np.zeros((LENGTH, 140), np.float32)
    for shape, paint in parts:
        # Where the part below is thin, its neighbour's colour would shine through: paint wide, cover exactly.
        lay(colours, np.where((cover < 1) & (shape > 0), 1, shape).astype(np.float32), paint, 0, 0)
        cover = np.maximum(cover, shape)
    return cover, colours[..., :3]


def _parts() -> list[Shape]:
    y = np.linspace(0, 1, 24)
    half = np.minimum(34, 34 * np.sin(np.minimum(1, y * 2.6) * np.pi / 2)) - 6 * np.clip(y - 0.8, 0, 1) / 0.2
    right = [(70 + float(w), 6 + float(v) * (LENGTH - 30)) for v, w in zip(y, half, strict=True)]
    left = [(140 - px, py) for px, py in reversed(right)]
    size = (140, LENGTH)
    hull = polygon([*right, *left], *size)
    lit = polygon([*right, (82, LENGTH - 24), (82, 40), (72, 6)], *size)
    cap = hull * (np.arange(LENGTH)[:, None] < 62)
    band = hull * ((np.arange(LENGTH)[:, None] > 196) & (np.arange(LENGTH)[:, None] < 208))
    fins = polygon([(40, 190), (6, 268), (8, 292), (44, 262)], *size)
    fins = np.maximum(fins, fins[:, ::-1])
    middle = polygon([(66, 212), (74, 212), (75, 292), (65, 292)], *size)
    nozzle = polygon([(52, 274), (88, 274), (96, 292), (44, 292)], *size)
    dark: Colour = (186, 54, 62)
    red: Colour = (214, 72, 70)
    ship: list[Shape] = [(nozzle, (70, 66, 92)), (fins, dark), (hull, (246, 240, 232)), (lit, (214, 206, 214))]
    window: list[Shape] = [(_spot(size, 112, 19), (70, 76, 120)), (_spot(size, 112, 14), (142, 208, 236))]
    return [*ship, (cap, red), (band, red), *window, (_spot(size, 107, 5, -4), (226, 246, 252)), (middle, dark)]


def _spot(size: tuple[int, int], y: int, radius: float, aside: int = 0) -> Alpha:
    canvas = np.zeros((size[1], size[0]), np.float32)
    shape = disc(radius)
    half = shape.shape[0] // 2
    canvas[y - half : y + half + 1, 70 + aside - half : 70 + aside + half + 1] = shape
    return canvas


def _flame(picture: Picture, x: float, y: float, seconds: float, room: float) -> None:
    strength = ease((seconds - IGNITION + 0.5) / 0.6)
    beat = 0.9 + 0.07 * np.sin(seconds * 43) + 0.05 * np.sin(seconds * 71)
    for width, length, paint in ((34, 230, (255, 120, 54)), (25, 165, (255, 190, 74)), (15, 100, (255, 248, 214))):
        tall = min(length, room * length / 230) * beat * strength
        rows = np.arange(int(tall) + 2, dtype=np.float32)[:, None]
        way = np.clip(rows / max(tall, 1), 0, 1)
        half = width * np.sqrt(np.clip(0.35 + way * 1.1, 0, 1)) * (1 - way**1.6)
        shape = np.clip(half - np.abs(np.arange(-width - 2, width + 3)) + 0.5, 0, 1).astype(np.float32)
        lay(picture, shape, paint, x - width - 2, y, 0.92)


@cache
def _puff(radius: int) -> Alpha:
    return disc(radius, 2)


def _smoke(picture: Picture, puffs: np.ndarray, seconds: float, top: float, climb: float) -> None:
    """Clouds that roll along the ground, and a trail behind the rocket."""
    for late, side, size, shade in puffs[:90]:
        age = seconds - IGNITION + 0.4 - late * 1.6
        if age > 0:
            grown = 1 - np.exp(-age * 1.1)
            x = PAD_X + (side - 0.5) * (120 + 860 * grown * late)
            radius = 4 * round((18 + 66 * size * grown) / 4)
            _cloud(picture, x, GROUND - 10 - 46 * size * grown * shade - top, radius, shade, 1)
    for late, side, size, shade in puffs[90:]:
        high = late * 1500
        age = seconds - IGNITION - np.sqrt(2 * high / PULL) - 0.75
        if age > 0 and high < climb:
            radius = 4 * round((10 + 26 * size + 20 * min(age, 1.5)) / 4)
            _cloud(
                picture,
                PAD_X + (side - 0.5) * (30 + 26 * age),
                GROUND - high - top,
                radius,
                shade,
                0.8 / (1 + age * 0.5),
            )


def _cloud(picture: Picture, x: float, y: float, radius: int, shade: float, strength: float) -> None:
    paint = (int(226 + 24 * shade), int(196 + 36 * shade), int(196 + 30 * shade))
    shape = _puff(radius)
    lay(picture, shape, paint, round(x) - shape.shape[0] // 2, round(y) - shape.shape[0] // 2, strength)
