"""Depth of a film: its maps on disk, the grade of each shot, and the map at any time."""

import zlib
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from rushes.domain.errors import NeverWorks
from rushes.domain.keys import JSON
from rushes.media.reading.scaling import Size, resize_gray16

DepthMap = NDArray[np.uint16]

MAX_SIDE = 192  # of a map: nets see 224 columns, blurred
LEVELS = 33
_DIGITS = 5  # of the output of a model
_HIGH_BITS = np.uint16(0xFFF0)  # the low bits are noise and half of the file
AUTO = "auto"
MAX_STRENGTH = 3.0  # per cent of the width between nearest and farthest; more hurts
MAX_POSITIVE_PARALLAX = 1.5  # per cent of the width, behind the screen
MAX_NEGATIVE_PARALLAX = 2.0  # in front of it
_FAR_QUANTILE, _NEAR_QUANTILE = 0.02, 0.98  # clipped beyond these
_DEEP_STRENGTH = 2.0  # strength of a deep shot
_DEEP_RATIO = 2.5  # ratio near / far of inverse depth of a deep shot
_FLAT_STRENGTH = 0.6  # strength of a flat shot
REACH = Fraction(1, 4)  # seconds to either side; finite, so that a chunk needs only the edges of its neighbours
GROUND_PRIOR = 0.15  # weight of the prior that the bottom of a picture is near
_CACHED_MAPS = 64


@dataclass(frozen=True, slots=True)
class DepthEntry:
    """One map in the file: 0 means inverse depth `low`, 65535 means `high`."""

    pts: int
    offset: int
    length: int
    low: float
    high: float
    levels: tuple[float, ...]  # quantiles of inverse depth, at equal steps


@dataclass(frozen=True, slots=True)
class DepthIndex:
    """The maps of a file, in order of time."""

    base: Fraction
    size: Size
    maps: tuple[DepthEntry, ...]

    def to_json(self) -> JSON:
        """The index as it is stored."""
        rows = [asdict(one) for one in self.maps]
        return {"base": [self.base.numerator, self.base.denominator], "size": list(self.size), "maps": rows}

    @staticmethod
    def from_json(doc: Mapping[str, JSON]) -> "DepthIndex":
        """The inverse of to_json."""
        maps = tuple(DepthEntry(**{**row, "levels": tuple(row["levels"])}) for row in doc["maps"])
        width, height = doc["size"]
        return DepthIndex(Fraction(*doc["base"]), (width, height), maps)


class DepthWriter:
    """Writes a file of maps."""

    def __init__(self, path: Path, base: Fraction, picture: Size) -> None:
        self._base, self._size = base, map_size(picture)
        self._file: BinaryIO = path.open("wb")
        self._maps: list[DepthEntry] = []

    def add(self, pts: int, inverse_depth: NDArray[np.float32]) -> None:
        """Add the map of a frame."""
        found = np.asarray(inverse_depth, np.float64).round(_DIGITS)
        low, high = float(found.min()), float(found.max())
        whole = np.rint((found - low) * (65535 / max(high - low, 10**-_DIGITS))).astype(np.uint16)
        small = resize_gray16(whole, self._size) & _HIGH_BITS
        data = zlib.compress(np.diff(small, axis=1, prepend=np.uint16(0)).astype("<u2").tobytes(), 6)
        steps = np.linspace(0, found.size - 1, LEVELS).astype(np.intp)
        levels = tuple(float(v) for v in np.sort(found, axis=None)[steps])
        self._maps.append(DepthEntry(pts, self._file.tell(), len(data), low, high, levels))
        self._file.write(data)

    def finish(self) -> DepthIndex:
        """Finish the file and return its index."""
        self._file.close()
        return DepthIndex(self._base, self._size, tuple(self._maps))

    def close(self) -> None:
        """Close the file, finished or not."""
        self._file.close()


def map_size(picture: Size) -> Size:
    """The size of the map of a picture."""
    width, height = (max(16, round(Fraction(MAX_SIDE * side, max(picture)))) for side in picture)
    return width, height


def read_map(file: BinaryIO, depth: DepthEntry, size: Size) -> DepthMap:
    """One map of a file."""
    file.seek(depth.offset)
    steps = np.frombuffer(zlib.decompress(file.read(depth.length)), "<u2").reshape(size[::-1])
    return np.cumsum(steps, axis=1, dtype=np.uint16)


def weighted_quantile(depths: Sequence[DepthEntry], weights: Sequence[float], share: float) -> float:
    """The quantile of inverse depth over all these maps, each with its weight."""
    values = np.array([d.levels for d in depths])
    heavy = np.repeat(np.asarray(weights, np.float64), LEVELS)
    order = np.argsort(values, axis=None, kind="stable")
    below = np.cumsum(heavy[order])
    at = int(np.searchsorted(below, share * below[-1]))
    return float(values.reshape(-1)[order[min(at, len(order) - 1)]])


@dataclass(frozen=True, slots=True)
class GradeOptions:
    """Strength and convergence in per cent of the width; None: automatic."""

    strength: float | None = None
    convergence: float | None = None

    @staticmethod
    def of(options: Mapping[str, JSON]) -> "GradeOptions":
        """From the options of a stage. Raises NeverWorks if a value is not a number or out of range."""
        return GradeOptions(
            _number(options, "strength", 0, MAX_STRENGTH),
            _number(options, "convergence", -MAX_NEGATIVE_PARALLAX, MAX_POSITIVE_PARALLAX),
        )


@dataclass(frozen=True, slots=True)
class Grade:
    """How a shot is shown: inverse depth `far` lies `convergence` per cent of the width behind the screen."""

    start: int  # ticks of the picture's time base
    end: int
    far: float
    near: float
    strength: float
    convergence: float


def grade_shots(shots: Iterable[tuple[int, int]], depths: Iterable[DepthEntry], options: GradeOptions) -> list[Grade]:
    """A grade for each shot (start, end), from the maps of the film in order of time; holds the maps of one shot."""
    rest, found = iter(depths), list[Grade]()
    ahead, before = next(rest, None), None
    for start, end in shots:
        inside: list[DepthEntry] = []
        while ahead is not None and ahead.pts < end:
            inside += [ahead] if ahead.pts >= start else []
            before, ahead = ahead, next(rest, None)
        nearest = before or ahead  # no frame was packed here, so the one before is much like it
        found.append(grade_shot(start, end, inside or ([nearest] if nearest else []), options))
    return found


def grade_shot(start: int, end: int, depths: Sequence[DepthEntry], options: GradeOptions) -> Grade:
    """The grade of one shot; each map weighs as long as it holds."""
    if not depths:
        return Grade(start, end, 0.0, 1.0, 0.0, 0.0)
    times = [max(start, depth.pts) for depth in depths]
    weights = [float(max(1, b - a)) for a, b in pairwise([*times, end])]
    far, middle, near = (weighted_quantile(depths, weights, share) for share in (_FAR_QUANTILE, 0.5, _NEAR_QUANTILE))
    near = max(near, far + 1e-5)
    strength = _strength(far, near) if options.strength is None else options.strength
    convergence = strength * (middle - far) / (near - far) if options.convergence is None else options.convergence
    bounded = min(max(convergence, strength - MAX_NEGATIVE_PARALLAX), MAX_POSITIVE_PARALLAX)
    return Grade(start, end, far, near, round(strength, 2), round(bounded, 2))


def _strength(far: float, near: float) -> float:
    """Stronger for a deeper shot, never zero."""
    span = near / far if far > 0 else _DEEP_RATIO
    return _FLAT_STRENGTH + (_DEEP_STRENGTH - _FLAT_STRENGTH) * min(1.0, max(0.0, (span - 1) / (_DEEP_RATIO - 1)))


def _number(options: Mapping[str, JSON], name: str, least: float, most: float) -> float | None:
    value = options.get(name, AUTO)
    if value == AUTO:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError) as e:
        raise NeverWorks(f"{name} {value!r} is not a number", f"Give per cent of the width, or {AUTO}.") from e
    if not least <= number <= most:
        hint = f"Choose {least:g} to {most:g} per cent of the width, or {AUTO}."
        raise NeverWorks(f"{name} {number:g} per cent is out of range and would hurt the eyes", hint)
    return number


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
