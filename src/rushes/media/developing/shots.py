"""Where one shot ends and the next begins, at once or slowly: decided once per film, from what its chunks measured."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rushes.domain.keys import JSON
from rushes.domain.span import Span
from rushes.media.developing.cut_metrics import HEIGHT, LAGS, PIXELS, WIDTH, CutMetrics

_BLACK_LEVEL = 24.0  # mean brightness (of 255) below which nothing is seen
_MIN_FADE = 30.0  # a fade changes brightness at least so much
_RAMP_FRAMES = 12  # frames looked at on either side of black
_MIN_STEADINESS = 0.8  # over five frames a dissolve changes five times as much as over one; motion comes back to itself
_MIN_DISSOLVE = 8  # frames of a dissolve
_MIN_DIFFERENCE = 20.0  # summed difference of a dissolve: as much as a cut that no motion makes

Values = NDArray[np.float64]
MIN_SHOT_FRAMES = 5  # frames of a shot
_DUPLICATE = 0.15  # mean difference (of 255) below which a frame repeats the one before: footage of few frames a second
_MIN_CUT = 5.0  # a difference below which nothing is a cut
_STRONG_CUT = 20.0  # a difference that no motion makes
_WIDE_WINDOW, _NARROW_WINDOW = 12, 4  # frames looked at on either side of a weak and of a strong peak
_FLASH_RATIO = 0.4  # of the peak: closer than this to what was before is the same picture after a flash


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


@dataclass(frozen=True, slots=True)
class Shot:
    """A part of the film from one cut to the next."""

    span: Span
    kind: str  # how it begins: start, cut, fade, dissolve

    def to_json(self) -> JSON:
        """Ticks of the track's time base, and microseconds."""
        s = self.span
        return {"start": s.start, "end": s.end, "start_us": s.start_us, "end_us": s.end_us, "kind": self.kind}


def shots(metrics: CutMetrics, end: int, base: Fraction, strength: float = 1.0, seconds: float = 0.0) -> list[Shot]:
    """All shots, without gap or overlap; cuts that are weaker (1: all count) or come too soon are none."""
    if not len(metrics.pts):
        return []
    steps = metrics.apart[:, 0] / PIXELS
    strong = {i: kind for i, kind in boundaries(metrics).items() if kind != "cut" or steps[i] >= _MIN_CUT * strength}
    begins = {0: "start"} | _not_too_soon(strong, metrics, end, int(Fraction(seconds) / base))
    bounds = [*(int(metrics.pts[i]) for i in begins), end]
    pairs = zip(pairwise(bounds), begins.values(), strict=True)
    return [Shot(Span(a, b, base), kind) for (a, b), kind in pairs]


def _not_too_soon(begins: dict[int, str], metrics: CutMetrics, end: int, ticks: int) -> dict[int, str]:
    """Those that leave the shot before them, and the last shot, so many ticks."""
    kept: dict[int, str] = {}
    last = int(metrics.pts[0])
    for i, kind in begins.items():
        at = int(metrics.pts[i])
        if at - last >= ticks and end - at >= ticks:
            kept[i], last = kind, at
    return kept


def boundaries(metrics: CutMetrics) -> dict[int, str]:
    """How each new shot begins, by number of its first frame; a slow change counts where no cut is near."""
    found = dict.fromkeys(cuts(metrics), "cut")
    for i, kind in sorted(gradual_transitions(metrics).items()):
        near = (0, *found, len(metrics.pts))
        if min(abs(i - other) for other in near) >= MIN_SHOT_FRAMES:
            found[i] = kind
    return dict(sorted(found.items()))


def cuts(metrics: CutMetrics) -> list[int]:
    """Numbers of the frames that begin a new shot."""
    apart = metrics.apart / PIXELS
    steps = apart[:, 0]
    inner = range(MIN_SHOT_FRAMES, len(steps) - MIN_SHOT_FRAMES + 1)
    return _space_out([i for i in inner if _is_peak(steps, i) and not _is_flash(apart, i)], steps)


def _is_peak(steps: NDArray[np.float64], i: int) -> bool:
    """Whether a difference stands out from those around it, frames that only repeat the one before left out."""
    step = steps[i]
    if step < _MIN_CUT:
        return False
    reach = _NARROW_WINDOW if step >= _STRONG_CUT else _WIDE_WINDOW
    before, after = steps[max(1, i - reach) : i][::-1], steps[i + 1 : i + 1 + reach]
    level = max(_motion_level(before), _motion_level(after))
    if step >= _STRONG_CUT:
        level = _second_largest(np.concatenate([before, after]))
    return bool((step >= 10 and step >= 2 * level) or (step >= 8 and level == 0) or (level and step >= 4 * level))


def _motion_level(nearest_first: NDArray[np.float64]) -> float:
    """The largest of the three nearest differences that are not repeats."""
    moving = nearest_first[nearest_first > _DUPLICATE][:3]
    return float(moving.max()) if moving.size else 0.0


def _second_largest(steps: NDArray[np.float64]) -> float:
    """The largest but one: two cuts in a few frames are one, not motion."""
    return float(np.sort(steps)[-2]) if steps.size > 1 else 0.0


def _is_flash(apart: NDArray[np.float64], i: int) -> bool:
    """Whether the picture before comes back within a few frames, or has just come back."""
    limit = _FLASH_RATIO * apart[i, 0]
    came = any(apart[i, lag - 1] < limit for lag in range(2, LAGS + 1) if i >= lag)
    comes = any(apart[i + k, k] < limit for k in range(1, LAGS) if i + k < len(apart))
    return came or comes


def _space_out(peaks: list[int], steps: NDArray[np.float64]) -> list[int]:
    kept: list[int] = []
    for i in peaks:
        if not kept or i - kept[-1] >= MIN_SHOT_FRAMES:
            kept.append(i)
        elif steps[i] > steps[kept[-1]]:
            kept[-1] = i
    return kept
