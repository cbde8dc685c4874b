"""Shots that change slowly: fades through black and dissolves, where they can be told from motion."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from rushes.media.developing.cut_metrics import HEIGHT, LAGS, PIXELS, WIDTH, CutMetrics

_BLACK_LEVEL = 24.0  # mean brightness (of 255) below which nothing is seen
_MIN_FADE = 30.0  # a fade changes brightness at least so much
_RAMP_FRAMES = 12  # frames looked at on either side of black
_MIN_STEADINESS = 0.8  # over five frames a dissolve changes five times as much as over one; motion comes back to itself
_MIN_DISSOLVE = 8  # frames of a dissolve
_MIN_DIFFERENCE = 20.0  # summed difference of a dissolve: as much as a cut that no motion makes

Values = NDArray[np.float64]


def gradual_transitions(metrics: CutMetrics) -> dict[int, str]:
    """Where a slow change is half done, by number of frame: the darkest of a fade, the middle of a dissolve."""
    dark = _fades(metrics)
    found = {i: "dissolve" for i in _dissolves(metrics) if all(abs(i - f) > 4 * _RAMP_FRAMES for f in dark)}
    return found | dict.fromkeys(dark, "fade")


def _fades(metrics: CutMetrics) -> list[int]:
    """Brightness falls to black or rises from it slowly, not at once."""
    light = metrics.light / (WIDTH * HEIGHT)
    runs = [(a, b) for a, b in _runs(light < _BLACK_LEVEL) if _is_fade(light, a, b)]
    return [a + int(np.argmin(light[a:b])) for a, b in runs]


def _dissolves(metrics: CutMetrics) -> list[int]:
    """All of the picture changes steadily, then stands again."""
    apart = metrics.apart / PIXELS
    steps, far = apart[:, 0], apart[:, LAGS - 1]
    steady = (far >= _MIN_STEADINESS * LAGS * steps) & (steps >= _MIN_DIFFERENCE / 60)
    steady[:LAGS] = False
    return [(a + b) // 2 - LAGS // 2 for a, b in _runs(steady) if _is_dissolve(steps, a, b)]


def _is_fade(light: Values, first: int, last: int) -> bool:
    before, after = light[max(0, first - _RAMP_FRAMES) : first + 1], light[last - 1 : last + _RAMP_FRAMES][::-1]
    return any(_is_ramp(side) for side in (before, after))


def _is_ramp(side: Values) -> bool:
    """Whether brightness goes down to black in several steps of which none does most of it."""
    falls = -np.diff(side)
    total = float(side.max() - side[-1]) if len(side) else 0.0
    return bool(total >= _MIN_FADE and len(falls) and falls.max() <= 0.6 * total and falls.min() >= -0.1 * total)


def _is_dissolve(steps: Values, first: int, last: int) -> bool:
    inside = steps[first:last]
    if len(inside) < _MIN_DISSOLVE or inside.sum() < _MIN_DIFFERENCE or inside.max() > 2 * float(np.median(inside)):
        return False
    calm = np.concatenate([steps[max(1, first - 12) : max(1, first - LAGS)], steps[last + 1 : last + 8]])
    return bool(calm.size and np.median(calm) <= float(np.median(inside)) / 2)


def _runs(flags: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """First and end of each stretch of true values."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(np.int8), [0]])))
    yield from zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)
