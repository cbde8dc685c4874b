"""Gradual transitions between shots: fades through black, and dissolves that can be told from motion."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from rushes.media.developing.cut_metrics import HEIGHT, LAGS, PIXELS, WIDTH, CutMetrics

_BLACK_LEVEL = 24.0  # mean luma (of 255)
_MIN_FADE = 30.0  # least change of mean luma
_RAMP_FRAMES = 12  # on either side of black
_MIN_STEADINESS = 0.8  # a dissolve differs five times as much over five frames as over one; motion does not
_MIN_DISSOLVE = 8  # frames
_MIN_DIFFERENCE = 20.0  # summed over a dissolve: as much as a strong cut

Values = NDArray[np.float64]


def gradual_transitions(metrics: CutMetrics) -> dict[int, str]:
    """Kinds of transitions by frame number: the darkest frame of a fade, the middle of a dissolve."""
    dark = _fades(metrics)
    found = {i: "dissolve" for i in _dissolves(metrics) if all(abs(i - f) > 4 * _RAMP_FRAMES for f in dark)}
    return found | dict.fromkeys(dark, "fade")


def _fades(metrics: CutMetrics) -> list[int]:
    """The darkest frame of each fade: luma falls to black or rises from it gradually."""
    luma = metrics.luma / (WIDTH * HEIGHT)
    runs = [(a, b) for a, b in _runs(luma < _BLACK_LEVEL) if _is_fade(luma, a, b)]
    return [a + int(np.argmin(luma[a:b])) for a, b in runs]


def _dissolves(metrics: CutMetrics) -> list[int]:
    """The middle of each dissolve: the whole picture changes steadily between two calm parts."""
    differences = metrics.differences / PIXELS
    steps, far = differences[:, 0], differences[:, LAGS - 1]
    steady = (far >= _MIN_STEADINESS * LAGS * steps) & (steps >= _MIN_DIFFERENCE / 60)
    steady[:LAGS] = False
    return [(a + b) // 2 - LAGS // 2 for a, b in _runs(steady) if _is_dissolve(steps, a, b)]


def _is_fade(luma: Values, first: int, last: int) -> bool:
    before, after = luma[max(0, first - _RAMP_FRAMES) : first + 1], luma[last - 1 : last + _RAMP_FRAMES][::-1]
    return any(_is_ramp(side) for side in (before, after))


def _is_ramp(side: Values) -> bool:
    """Whether luma falls to black in several steps of which none is most of it."""
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
    """First and end of each run of true values."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(np.int8), [0]])))
    yield from zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)
