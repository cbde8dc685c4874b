"""The title and the end: letters on a strip of film."""

import numpy as np

from film.captions import PAPER, Draw, ease, words
from film.shapes import HEIGHT, WIDTH, Alpha, Picture, backdrop, glow, lay, settle

STRIP, HOLE = 74, 64
GOLD = (255, 196, 92)


def _hole(width: int = 30, height: int = 34, round_by: float = 7) -> Alpha:
    y, x = np.mgrid[:height, :width]
    dx = np.maximum(0, np.abs(x - (width - 1) / 2) - (width / 2 - round_by - 1))
    dy = np.maximum(0, np.abs(y - (height - 1) / 2) - (height / 2 - round_by - 1))
    hole: Alpha = np.clip(round_by - np.hypot(dx, dy) + 0.5, 0, 1).astype(np.float32)
    return hole


HOLE_SHAPE = _hole()


def title() -> Draw:
    """RUSHES, letter by letter."""
    base = _base([(0, "#0c1030"), (1, "#3c1d4e")], (255, 150, 90), 11)
    name, below = words("RUSHES", 150, 20, 0.3), words("a short film to search in", 34, 4, 0.3)

    def at(seconds: float) -> Picture:
        picture = _strip(base, seconds)
        shown = name * _sweep(name.shape[1], seconds / 1.4)
        x, y = (WIDTH - name.shape[1]) // 2, 238
        lay(picture, shown, (0, 0, 0), x + 5, y + 7, 0.4)
        lay(picture, shown, PAPER, x, y)
        _rule(picture, 452, 360 * ease((seconds - 0.9) / 0.9))
        lay(picture, below, PAPER, (WIDTH - below.shape[1]) // 2, 486, ease((seconds - 1.3) / 0.7))
        return picture

    return at


def end() -> Draw:
    """What to try next."""
    base = _base([(0, "#10233c"), (1, "#0b3b46")], (90, 200, 190), 13)
    head, line = words("THE END", 92, 12, 0.34), words("> rushes search 'ask not'", 40, 5, 0.26)

    def at(seconds: float) -> Picture:
        picture = _strip(base, seconds)
        shown = ease((seconds - 0.1) / 0.7)
        lay(picture, head, (0, 0, 0), (WIDTH - head.shape[1]) // 2 + 4, 246, 0.4 * shown)
        lay(picture, head, PAPER, (WIDTH - head.shape[1]) // 2, 240, shown)
        _rule(picture, 398, 300 * ease((seconds - 0.4) / 0.8))
        typed = _sweep(line.shape[1], (seconds - 0.8) / 1.2, soft=6)
        lay(picture, line * typed, GOLD, (WIDTH - line.shape[1]) // 2, 440)
        return picture

    return at


def _base(stops: list[tuple[float, str]], light: tuple[int, int, int], seed: int) -> Picture:
    base = backdrop(stops)
    glow(base, 300, 620, 380, light, 0.4)
    glow(base, 1060, 120, 300, light, 0.22)
    picture = settle(base, seed)
    picture[:STRIP, :, :3] = picture[-STRIP:, :, :3] = (10, 9, 18)
    return picture


def _strip(base: Picture, seconds: float) -> Picture:
    """The backdrop between two rows of sprocket holes that wander."""
    picture = base.copy()
    start = -round(seconds * 50) % HOLE - HOLE  # two pixels a picture: no edge has to be blended anew
    for x in range(start, WIDTH, HOLE):
        lay(picture, HOLE_SHAPE, (232, 220, 200), x, 20, 0.85)
        lay(picture, HOLE_SHAPE, (232, 220, 200), x, HEIGHT - 20 - HOLE_SHAPE.shape[0], 0.85)
    return picture


def _rule(picture: Picture, y: int, length: float) -> None:
    if length >= 2:
        lay(picture, np.ones((4, int(length)), np.float32), GOLD, (WIDTH - int(length)) // 2, y)


def _sweep(width: int, way: float, soft: float = 90) -> Alpha:
    """Uncovers a line of letters from left to right."""
    edge = ease(way) * (width + 2 * soft) - soft
    open: Alpha = np.clip((edge - np.arange(width)) / soft, 0, 1).astype(np.float32)[None]
    return open
