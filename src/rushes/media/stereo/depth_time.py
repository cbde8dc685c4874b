"""Depth at any moment: the maps around it in the same shot, smoothed over half a second, whoever measured them."""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from rushes.media.stereo.depth import Depth, Map
from rushes.media.stereo.grade import Grade

REACH = Fraction(1, 4)  # seconds to either side: finite, so that a chunk needs its neighbours' edges only
_LOW_IS_NEAR = 0.15  # share of the belief that the bottom of a picture is near: it beats FastDepth on some
_KEPT = 64  # maps in memory

Read = Callable[[Depth], Map]


class DepthInTime:
    """The nearness of everything at a moment, 0 (far) to 65535 (near) in the range of its shot."""

    def __init__(self, depths: Sequence[Depth], read: Read, base: Fraction) -> None:
        self._depths, self._read = depths, read
        self._times = [depth.pts for depth in depths]
        self._reach = float(REACH / base)
        self._maps: OrderedDict[int, Map] = OrderedDict()

    def at(self, pts: int, grade: Grade) -> Map:
        """The map at a moment of a shot."""
        weights = self._weights(pts, grade)
        total = sum(weights.values())
        mixed = np.zeros((), np.float64)
        for n, weight in weights.items():
            depth = self._depths[n]
            share, scale = weight / total, (depth.high - depth.low) / 65535
            mixed = mixed + (share * (depth.low - grade.far) + (share * scale) * self._map(n))
        level = np.clip(mixed / (grade.near - grade.far), 0, 1)
        low = np.linspace(0, 1, level.shape[0])[:, None]
        told = (1 - _LOW_IS_NEAR) * level + _LOW_IS_NEAR * low
        return np.asarray(np.rint(told * 65535), np.uint16)

    def _weights(self, pts: int, grade: Grade) -> dict[int, float]:
        """How much each map counts: a map stands until the next, moments near to this one count more."""
        first = max(bisect_right(self._times, max(grade.start - 1, pts - self._reach)) - 1, 0)
        if self._times[first] < grade.start and first + 1 < len(self._times) and self._times[first + 1] < grade.end:
            first += 1  # the one before belongs to another shot
        last = max(first + 1, bisect_right(self._times, min(grade.end - 1, pts + self._reach)))
        starts = [grade.start, *self._times[first + 1 : last], grade.end]
        spans = zip(range(first, last), starts, starts[1:], strict=False)
        found = {n: self._hill(b - pts) - self._hill(a - pts) for n, a, b in spans}
        return {n: weight for n, weight in found.items() if weight > 0} or {first: 1.0}

    def _hill(self, away: float) -> float:
        """The area under a tent of this reach, from its left foot up to a distance from its middle."""
        x = min(max(away / self._reach, -1.0), 1.0)
        return 0.5 + x - x * abs(x) / 2

    def _map(self, n: int) -> Map:
        if n not in self._maps:
            self._maps[n] = self._read(self._depths[n])
            if len(self._maps) > _KEPT:
                self._maps.popitem(last=False)
        return self._maps[n]
