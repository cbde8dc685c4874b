"""Depth at any time: the maps around it in the same shot, under a triangular filter of half a second."""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from rushes.media.stereo.depth_maps import DepthEntry, DepthMap
from rushes.media.stereo.grade import Grade

REACH = Fraction(1, 4)  # seconds to either side; finite, so that a chunk needs only the edges of its neighbours
GROUND_PRIOR = 0.15  # weight of the prior that the bottom of a picture is near
_CACHED_MAPS = 64

ReadMap = Callable[[DepthEntry], DepthMap]


class TemporalDepth:
    """Maps of inverse depth at any time, 0 (far) to 65535 (near) in the range of the shot."""

    def __init__(self, depths: Sequence[DepthEntry], read: ReadMap, base: Fraction) -> None:
        self._depths, self._read = depths, read
        self._times = [depth.pts for depth in depths]
        self._reach = float(REACH / base)
        self._maps: OrderedDict[int, DepthMap] = OrderedDict()

    def at(self, pts: int, grade: Grade) -> DepthMap:
        """The map at a time in a shot."""
        weights = self._weights(pts, grade)
        total = sum(weights.values())
        mixed = np.zeros((), np.float64)
        for n, weight in weights.items():
            depth = self._depths[n]
            share, scale = weight / total, (depth.high - depth.low) / 65535
            mixed = mixed + (share * (depth.low - grade.far) + (share * scale) * self._map(n))
        level = np.clip(mixed / (grade.near - grade.far), 0, 1)
        low = np.linspace(0, 1, level.shape[0])[:, None]
        mixed = (1 - GROUND_PRIOR) * level + GROUND_PRIOR * low
        return np.asarray(np.rint(mixed * 65535), np.uint16)

    def _weights(self, pts: int, grade: Grade) -> dict[int, float]:
        """The weight of each map: its share of the triangular filter. A map holds until the next."""
        first = max(bisect_right(self._times, max(grade.start - 1, pts - self._reach)) - 1, 0)
        if self._times[first] < grade.start and first + 1 < len(self._times) and self._times[first + 1] < grade.end:
            first += 1  # the map before is of another shot
        last = max(first + 1, bisect_right(self._times, min(grade.end - 1, pts + self._reach)))
        starts = [grade.start, *self._times[first + 1 : last], grade.end]
        spans = zip(range(first, last), starts, starts[1:], strict=False)
        found = {n: self._tent_integral(b - pts) - self._tent_integral(a - pts) for n, a, b in spans}
        return {n: weight for n, weight in found.items() if weight > 0} or {first: 1.0}

    def _tent_integral(self, away: float) -> float:
        """The integral of the triangle, from its left end up to a distance from its middle."""
        x = min(max(away / self._reach, -1.0), 1.0)
        return 0.5 + x - x * abs(x) / 2

    def _map(self, n: int) -> DepthMap:
        if n not in self._maps:
            self._maps[n] = self._read(self._depths[n])
            if len(self._maps) > _CACHED_MAPS:
                self._maps.popitem(last=False)
        return self._maps[n]
