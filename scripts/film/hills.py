"""The moon over the hills: five ridges that pass at their own pace, the nearest with firs."""

import numpy as np

from film.captions import Draw, Stars, caption, ease
from film.shapes import WIDTH, Picture, Row, backdrop, disc, fade, glow, lay, ridge, settle

SKY = [(0, "#070b24"), (0.35, "#1b2a5e"), (0.62, "#4d5d9a"), (0.85, "#c79aa8"), (1, "#e9b99b")]
MOON = (905, 205, 84)
PARTS = 3  # where firs stand, each column is looked at in three places: they are steep
# height above the lower edge, wave, roughness, pace, colour at the ridge and below, firs
RIDGES = (
    (330, 46, 0.0026, 5, "#7a84b6", "#a99fc0", 0),
    (262, 54, 0.0034, 10, "#55639c", "#8a88b4", 0),
    (190, 50, 0.0043, 18, "#35457d", "#5f699f", 0),
    (128, 40, 0.0052, 32, "#1d2b58", "#34447a", 34),
    (62, 34, 0.0060, 56, "#0a1230", "#101a3c", 40),
)


def draw() -> Draw:
    """The scene, eight seconds at most."""
    sky, stars = _sky(), Stars(150, 400, seed=3)
    ranges = [_range(i, *r[:4], r[6]) for i, r in enumerate(RIDGES)]
    paints = [fade([(0, r[4]), (1 - r[0] / 720, r[4]), (1, r[5])]) for r in RIDGES]

    def at(seconds: float) -> Picture:
        picture = sky.copy()
        stars.draw(picture, seconds)
        _shooting_star(picture, seconds - 4.2)
        _moon(picture)
        for (*_, pace, _top, _low, firs), heights, paint in zip(RIDGES, ranges, paints, strict=True):
            ridge(picture, _window(heights, seconds * pace, firs), paint)
        caption(picture, "THE MOON OVER THE HILLS", seconds)
        return picture

    return at


def _sky() -> Picture:
    sky = backdrop(SKY)
    glow(sky, MOON[0], MOON[1], 330, (140, 150, 220), 0.55)
    glow(sky, MOON[0], MOON[1], 130, (230, 225, 230), 0.6)
    return settle(sky, seed=2)


def _moon(picture: Picture) -> None:
    x, y, radius = MOON
    body = disc(radius, 1.5)
    corner = body.shape[0] // 2
    lay(picture, body, (250, 242, 222), x - corner, y - corner)
    for dx, dy, r in ((-30, -22, 20), (18, 26, 26), (34, -30, 11), (-34, 34, 13), (2, -52, 8), (-4, 2, 9)):
        spot = disc(r, 3)
        lay(picture, spot, (226, 212, 196), x + dx - spot.shape[0] // 2, y + dy - spot.shape[0] // 2, 0.75)


def _shooting_star(picture: Picture, seconds: float) -> None:
    if not 0 < seconds < 0.9:
        return
    for step in range(120):
        way = ease(seconds / 0.9) * 420 - step * 1.5
        light = (1 - step / 120) ** 2 * np.sin(seconds / 0.9 * np.pi)
        lay(picture, disc(1.5 - step / 100, 1.4), (255, 250, 240), 180 + way, 70 + way * 0.32, 0.5 * light)


def _range(number: int, height: float, wave: float, rough: float, pace: float, firs: int) -> Row:
    """The line of one ridge, long enough for the whole pan."""
    rng = np.random.default_rng(40 + number)
    parts = PARTS if firs else 1
    x = np.arange((WIDTH + pace * 8 + 8) * parts) / parts
    line = sum(np.sin(x * rough * f + rng.uniform(0, 7)) * wave / f for f in (1, 1.9, 4.3, 9.1))
    ground = 720 - height - np.asarray(line)
    top = ground.copy()
    for place in np.linspace(0, x[-1], firs) + rng.normal(0, 14, firs):
        _plant(top, ground, x, place, rng.uniform(0.55, 1.25) * (20 + pace * 1.5))
    return top


def _plant(top: Row, ground: Row, x: Row, place: float, tall: float) -> None:
    """Raise the line where a fir stands: four tiers, each wider than the one above."""
    near = np.abs(x - place)
    foot = np.interp(place, x, ground) + 2
    for tier in range(4):
        base, tip = tall * (0.1 + 0.2 * tier), tall * (0.46 + 0.18 * tier)
        half = tall * (0.27 - 0.055 * tier)
        under = near < half
        raised = foot - (base + (tip - base) * (1 - near[under] / half))
        top[under] = np.minimum(top[under], raised)
    trunk = near < tall * 0.03
    top[trunk] = np.minimum(top[trunk], foot - tall * 0.2)


def _window(heights: Row, shift: float, firs: int) -> Row:
    parts = PARTS if firs else 1
    wanted = np.arange(WIDTH * parts) + shift * parts
    seen: Row = np.interp(wanted, np.arange(heights.size), heights)
    return seen
