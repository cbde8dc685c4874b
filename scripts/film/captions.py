"""What several scenes share: a caption that comes up at the lower left, and stars."""

from collections.abc import Callable
from functools import cache

import numpy as np

from film.letters import lettering
from film.shapes import WIDTH, Alpha, Colour, Picture, lay

Draw = Callable[[float], Picture]  # seconds since the scene began -> its picture
PAPER: Colour = (255, 240, 214)
LEFT, LINE = 64, 628


@cache
def words(text: str, size: float, pen: float, spacing: float = 0.2) -> Alpha:
    """Lettering, drawn once."""
    return lettering(text, size, pen, spacing)


def caption(picture: Picture, text: str, seconds: float) -> None:
    """The name of the scene with a line above it that grows."""
    shown = ease((seconds - 0.3) / 0.7)
    line = np.ones((3, 1 + int(96 * shown)), np.float32)
    lay(picture, line, PAPER, LEFT + 8, LINE - 22, shown)
    letters = words(text, 26, 3.6, 0.34)
    lay(picture, letters, (0, 0, 0), LEFT + 1, LINE + 2, 0.35 * shown)
    lay(picture, letters, PAPER, LEFT, LINE, shown)


def ease(x: float) -> float:
    """From 0 to 1, starting and ending gently."""
    x = min(1.0, max(0.0, x))
    return x * x * (3 - 2 * x)


class Stars:
    """Points of light that twinkle, each in its own time."""

    def __init__(self, count: int, height: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self._phase, self._bright = rng.uniform(0, 7, count), rng.uniform(0.25, 1, count) ** 1.6
        middle = np.stack([rng.integers(2, height - 2, count), rng.integers(2, WIDTH - 2, count)])
        around = np.mgrid[-2:3, -2:3]
        self._at = middle[:, :, None, None] + around[:, None]
        reach = np.clip(self._bright, 0.4, 1)[:, None, None] * 1.1
        self._shape = np.exp(-(around**2).sum(axis=0) / (2 * reach**2)) * 1.2

    def draw(self, picture: Picture, seconds: float, shift: float = 0.0, strength: float = 1.0) -> None:
        """Lay the stars over a picture, moved down by `shift`."""
        twinkle = self._bright * (0.78 + 0.22 * np.sin(seconds * 2.1 + self._phase)) * strength
        light = np.clip(twinkle[:, None, None] * self._shape, 0, 1)
        y, x = self._at[0] + round(shift), self._at[1]
        seen = (y >= 0) & (y < picture.shape[0]) & (light > 0.01)
        under = picture[y[seen], x[seen], :3]
        picture[y[seen], x[seen], :3] = under + light[seen][:, None] * (np.array((235, 240, 255)) - under)
