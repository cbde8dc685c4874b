"""The sea at dawn: paper waves, a sun half risen, a sail and some gulls."""

from functools import cache

import numpy as np

from film.captions import Draw, caption
from film.shapes import WIDTH, Alpha, Picture, Row, backdrop, disc, fade, glow, lay, polygon, ridge, settle, stroke

SKY = [(0, "#2f4f8f"), (0.3, "#7f8fc0"), (0.5, "#f3a683"), (0.62, "#ffd3a1"), (1, "#ffe6c0")]
SUN = (820, 392, 92)
# height of the wave's line, swing, length, pace, colour at the top and below
WAVES = (
    (418, 4, 150, 14, "#f2a07a", "#d9776a"),
    (446, 8, 190, -22, "#d77f74", "#b55a66"),
    (488, 12, 240, 34, "#a9566d", "#86446a"),
    (544, 17, 310, -48, "#74406c", "#553463"),
    (612, 22, 390, 66, "#46305f", "#2c2350"),
    (676, 26, 480, -90, "#241d47", "#171437"),
)
BOAT_WAVE = 2


def draw() -> Draw:
    """The scene."""
    sky = _sky()
    paints = [fade([(0, w[4]), (w[0] / 720 - 0.03, w[4]), (min(1, w[0] / 720 + 0.13), w[5]), (1, w[5])]) for w in WAVES]
    sails = _sails()

    def at(seconds: float) -> Picture:
        picture = sky.copy()
        _gulls(picture, seconds)
        for number, (wave, paint) in enumerate(zip(WAVES, paints, strict=True)):
            if number == BOAT_WAVE:
                _boat(picture, sails, seconds)
            ridge(picture, _line(*wave[:4], seconds), paint)
            if number < 3:
                _glitter(picture, number, seconds)
        caption(picture, "THE SEA AT DAWN", seconds)
        return picture

    return at


def _sky() -> Picture:
    sky = backdrop(SKY)
    glow(sky, SUN[0], SUN[1] + 40, 190, (255, 222, 160), 0.8)
    picture = settle(sky, seed=4)
    body = disc(SUN[2], 1.5)
    lay(picture, body, (255, 244, 214), SUN[0] - body.shape[0] // 2, SUN[1] - body.shape[0] // 2)
    _clouds(picture)
    return picture


def _clouds(picture: Picture) -> None:
    for x, y, length, strength in (
        (150, 150, 420, 0.35),
        (760, 96, 360, 0.3),
        (330, 236, 300, 0.4),
        (930, 262, 380, 0.5),
    ):
        for row, (inset, part) in enumerate(((0.12, 0.5), (0, 1), (0.2, 0.55))):
            bar = _bar(int(length * part), 13)
            lay(picture, bar, (255, 226, 205), x + length * inset, y + row * 13, strength)


def _bar(length: int, height: int) -> Alpha:
    """A lying bar with round ends."""
    y, x = np.ogrid[:height, :length]
    radius = height / 2
    away = np.hypot(np.maximum(0, np.maximum(radius - x, x - length + radius)), y + 0.5 - radius)
    return np.clip(radius - away + 0.5, 0, 1).astype(np.float32)


def _line(height: float, swing: float, length: float, pace: float, seconds: float) -> Row:
    x = (np.arange(WIDTH) + seconds * pace) * 2 * np.pi / length
    crest = np.abs(np.sin(x / 2)) * 1.6 - 1  # round troughs, pointed crests
    line: Row = height + swing * (crest + 0.35 * np.sin(x * 0.37 + seconds * 0.9))
    return line


def _glitter(picture: Picture, number: int, seconds: float) -> None:
    """The sun's path on the water: short bars that come and go."""
    rng = np.random.default_rng(70 + number)
    for _ in range(11):
        y = WAVES[number][0] + rng.uniform(4, 30 + 8 * number)
        x = SUN[0] + rng.normal(0, 46 + 22 * number) + 9 * np.sin(seconds * 1.3 + rng.uniform(0, 7))
        light = max(0.0, np.sin(seconds * 2.2 + rng.uniform(0, 7)))
        bar = _bar(int(rng.uniform(26, 74)), 4)
        lay(picture, bar, (255, 236, 196), x - bar.shape[1] / 2, y, 0.8 * light)


def _sails() -> list[tuple[Alpha, tuple[int, int, int]]]:
    hull = polygon([(10, 150), (150, 150), (132, 176), (34, 176)], 160, 180)
    main = polygon([(82, 8), (82, 140), (140, 140), (116, 74)], 160, 180)
    jib = polygon([(74, 26), (74, 140), (22, 140), (50, 92)], 160, 180)
    mast = polygon([(77, 2), (80, 2), (80, 152), (77, 152)], 160, 180)
    return [(hull, (74, 38, 58)), (mast, (74, 38, 58)), (main, (255, 247, 230)), (jib, (250, 206, 160))]


def _boat(picture: Picture, sails: list[tuple[Alpha, tuple[int, int, int]]], seconds: float) -> None:
    x = 250 + seconds * 34
    line = _line(*WAVES[BOAT_WAVE][:4], seconds)
    y = float(line[int(x) + 50 : int(x) + 110].mean()) - 164
    for shape, paint in sails:
        lay(picture, shape, paint, x, y)


def _gulls(picture: Picture, seconds: float) -> None:
    for place, high, size in ((420, 190, 15), (470, 168, 12), (388, 160, 10), (1010, 130, 11)):
        lift = 0.35 * np.sin(seconds * 5 + place)
        wings = _wings(size, round(lift * 8) / 8)
        lay(picture, wings, (52, 48, 84), place + seconds * (14 + size), high + 5 * np.sin(seconds + place), 0.85)


@cache
def _wings(size: float, lift: float) -> Alpha:
    """A gull: two bows that meet, the tips higher or lower."""
    canvas = np.zeros((int(size * 2), int(size * 3)), np.float32)
    way = np.linspace(-1, 1, 17)
    high = np.abs(way) * (1 - np.abs(way)) * 2.4 + lift * way**2
    stroke(canvas, np.stack([size * (1.5 + 1.2 * way), size * (1.1 - high)], axis=1), 1.3)
    return canvas
