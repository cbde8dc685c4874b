"""Shot boundary detection, once per film, from the cut metrics of its chunks."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rushes.domain.keys import JSON
from rushes.domain.span import Span
from rushes.media.developing.cut_metrics import LAGS, PIXELS, CutMetrics
from rushes.media.developing.gradual_transitions import gradual_transitions

MIN_SHOT_FRAMES = 5  # frames of a shot
_DUPLICATE = 0.15  # mean difference (of 255) below which a frame repeats the one before
_STRONG_CUT = 20.0  # mean difference that no motion causes
_WIDE_WINDOW, _NARROW_WINDOW = 12, 4  # frames on either side of a weak and of a strong peak
_FLASH_RATIO = 0.4  # of the peak: a frame closer to the one before the peak is the same shot after a flash


@dataclass(frozen=True, slots=True)
class Shot:
    """A shot of the film."""

    span: Span
    kind: str  # how it begins: start, cut, fade, dissolve

    def to_json(self) -> JSON:
        """Ticks of the track's time base, and microseconds."""
        s = self.span
        return {"start": s.start, "end": s.end, "start_us": s.start_us, "end_us": s.end_us, "kind": self.kind}


def shots(metrics: CutMetrics, end: int, base: Fraction) -> list[Shot]:
    """All shots, without gap or overlap."""
    if not len(metrics.pts):
        return []
    begins = {0: "start"} | boundaries(metrics)
    bounds = [*(int(metrics.pts[i]) for i in begins), end]
    pairs = zip(pairwise(bounds), begins.values(), strict=True)
    return [Shot(Span(a, b, base), kind) for (a, b), kind in pairs]


def boundaries(metrics: CutMetrics) -> dict[int, str]:
    """How each new shot begins, by number of its first frame; gradual transitions count where no cut is near."""
    found = dict.fromkeys(cuts(metrics), "cut")
    for i, kind in sorted(gradual_transitions(metrics).items()):
        near = (0, *found, len(metrics.pts))
        if min(abs(i - other) for other in near) >= MIN_SHOT_FRAMES:
            found[i] = kind
    return dict(sorted(found.items()))


def cuts(metrics: CutMetrics) -> list[int]:
    """Numbers of the first frames after hard cuts."""
    differences = metrics.differences / PIXELS
    steps = differences[:, 0]
    inside = range(MIN_SHOT_FRAMES, len(steps) - MIN_SHOT_FRAMES + 1)
    peaks = [i for i in inside if _is_peak(steps, i) and not _is_flash(differences, i)]
    return _space_out(peaks, steps)


def _is_peak(steps: NDArray[np.float64], i: int) -> bool:
    """Whether a difference stands out from those around it, without repeated frames."""
    step = steps[i]
    if step < 5:
        return False
    reach = _NARROW_WINDOW if step >= _STRONG_CUT else _WIDE_WINDOW
    before, after = steps[max(1, i - reach) : i][::-1], steps[i + 1 : i + 1 + reach]
    level = max(_motion_level(before), _motion_level(after))
    if step >= _STRONG_CUT:
        level = _second_largest(np.concatenate([before, after]))
    return bool((step >= 10 and step >= 2 * level) or (step >= 8 and level == 0) or (level and step >= 4 * level))


def _motion_level(nearest_first: NDArray[np.float64]) -> float:
    """The largest of the three nearest differences, without repeated frames."""
    moving = nearest_first[nearest_first > _DUPLICATE][:3]
    return float(moving.max()) if moving.size else 0.0


def _second_largest(steps: NDArray[np.float64]) -> float:
    """The second largest: two cuts in a few frames are no motion."""
    return float(np.sort(steps)[-2]) if steps.size > 1 else 0.0


def _is_flash(differences: NDArray[np.float64], i: int) -> bool:
    """Whether the previous picture returns within a few frames, or has just returned."""
    limit = _FLASH_RATIO * differences[i, 0]
    came = any(differences[i, lag - 1] < limit for lag in range(2, LAGS + 1) if i >= lag)
    comes = any(differences[i + k, k] < limit for k in range(1, LAGS) if i + k < len(differences))
    return came or comes


def _space_out(peaks: list[int], steps: NDArray[np.float64]) -> list[int]:
    kept: list[int] = []
    for i in peaks:
        if not kept or i - kept[-1] >= MIN_SHOT_FRAMES:
            kept.append(i)
        elif steps[i] > steps[kept[-1]]:
            kept[-1] = i
    return kept
