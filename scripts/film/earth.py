"""Earthrise: the blue planet comes up behind the grey ground of the moon."""

import numpy as np
import numpy.typing as npt

from film.captions import Draw, Stars, caption
from film.shapes import WIDTH, Alpha, Picture, Row, backdrop, disc, fade, glow, lay, polygon, ridge, settle, stroke

RADIUS = 158
# height above the lower edge, wave, length, pace, colour at the ridge and below
GROUND = (
    (196, 22, 210, 4, "#8d90a6", "#6f7288"),
    (132, 18, 160, 9, "#6a6d84", "#4c4f66"),
    (70, 14, 130, 17, "#41445a", "#2a2c40"),
)
CRATERS = ((1, 210, 96, 52), (1, 640, 70, 36), (1, 1130, 90, 60), (2, 420, 34, 70), (2, 900, 28, 90), (2, 1250, 36, 54))


def draw() -> Draw:
    """The scene."""
    sky, stars, planet = _sky(), Stars(190, 620, seed=12), _planet()
    paints = [fade([(0, g[4]), (1 - g[0] / 720, g[4]), (1, g[5])]) for g in GROUND]
    body, shine, lander = disc(RADIUS, 1.5), disc(RADIUS + 4, 16), _lander()
    corner = body.shape[0] // 2

    def at(seconds: float) -> Picture:
        picture = sky.copy()
        stars.draw(picture, seconds)
        y = 500 - seconds * 31
        lay(picture, shine, (150, 200, 255), 880 - corner - 17.0, y - corner - 16.0, 0.3)
        lay(picture, body, planet, 880 - corner, y - corner)
        for number, (ground, paint) in enumerate(zip(GROUND, paints, strict=True)):
            ridge(picture, _line(number, seconds), paint)
            _craters(picture, number, seconds * ground[3])
            if number == 1:
                lay(picture, lander, (214, 190, 138), 330 - seconds * 9, 497)
        caption(picture, "THE EARTH RISES", seconds)
        return picture

    return at


def _sky() -> Picture:
    sky = backdrop([(0, "#03040d"), (0.7, "#090d24"), (1, "#10163a")])
    glow(sky, 880, 420, 360, (40, 70, 140), 0.5)
    return settle(sky, seed=10)


def _line(number: int, seconds: float) -> Row:
    height, wave, length, pace, *_ = GROUND[number]
    x = (np.arange(WIDTH) + seconds * pace) / length + number * 2.2
    return 720 - height - wave * (np.sin(x) + 0.4 * np.sin(2.3 * x + 1) + 0.12 * np.sin(7.1 * x))


def _craters(picture: Picture, number: int, shift: float) -> None:
    for where, x, wide, low in CRATERS:
        if where == number:
            y = 720 - GROUND[number][0] + low
            for grow, paint in ((1.0, (36, 38, 54)), (0.86, (58, 61, 80))):
                shape = _oval(wide * grow, wide * grow * 0.2)
                lay(
                    picture,
                    shape,
                    paint,
                    x - shift - shape.shape[1] / 2,
                    y + (1 - grow) * 26 - shape.shape[0] / 2,
                    0.55,
                )


def _oval(rx: float, ry: float) -> Alpha:
    y, x = np.ogrid[-int(ry) - 2 : int(ry) + 3, -int(rx) - 2 : int(rx) + 3]
    away = np.hypot(x / rx, y / ry)
    return np.clip((1 - away) * ry + 0.5, 0, 1).astype(np.float32)


def _lander() -> Alpha:
    canvas = polygon([(34, 20), (66, 20), (76, 34), (76, 52), (24, 52), (24, 34)], 100, 92)
    for side in (-1, 1):
        stroke(canvas, np.array([(50.0 + side * 22, 50.0), (50.0 + side * 40, 86.0)]), 1.8)
        stroke(canvas, np.array([(50.0 + side * 34, 87.0), (50.0 + side * 46, 87.0)]), 1.8)
        stroke(canvas, np.array([(50.0 + side * 10, 52.0), (50.0 + side * 34, 74.0)]), 1.2)
    stroke(canvas, np.array([(50.0, 20.0), (50.0, 6.0), (60.0, 3.0)]), 1.2)
    return canvas


def _planet() -> Picture:
    """The globe with seas, land and clouds, lit from the upper left."""
    half = disc(RADIUS, 1.5).shape[0] // 2
    y, x = np.mgrid[-half : half + 1, -half : half + 1] / RADIUS
    z = np.sqrt(np.clip(1 - x * x - y * y, 0, 1))
    land = np.clip((_blobs(x, y, z, 26, 2.0) - 0.08) * 14, 0, 1)[..., None]
    ice = np.clip((np.abs(y) - 0.86) * 18, 0, 1)[..., None]
    cloud = np.clip((_blobs(x * 0.8, y * 2.4, z, 30, 4.2) - 0.3) * 5, 0, 0.9)[..., None]
    picture = np.array([26, 92, 178]) + land * (np.array([74, 146, 92]) - np.array([26, 92, 178]))
    picture += ice * (np.array([236, 244, 250]) - picture)
    picture += cloud * (np.array([244, 248, 252]) - picture)
    light = np.clip(0.16 + 1.05 * (-0.62 * x - 0.5 * y + 0.6 * z), 0.05, 1.08)[..., None]
    globe: Picture = np.clip(picture * light + 0.5, 0, 255).astype(np.uint8)
    return globe


def _blobs(x: Row, y: Row, z: Row, seed: int, fine: float) -> npt.NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    field = np.zeros(x.shape)
    for part in range(18):
        ax, ay, az = rng.normal(0, fine * (1 + part / 6), 3)
        field += np.sin(ax * x + ay * y + az * z + rng.uniform(0, 7)) / (1 + part / 5)
    spread: float = float(np.abs(field).max())
    return field / spread
