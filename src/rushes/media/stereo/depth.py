"""Depth of kept frames: small maps in one file, an index that says how near things are in each, in 33 levels."""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from rushes.domain.keys import JSON
from rushes.media.reading.picture import Size, resized_grey

Map = NDArray[np.uint16]

SIDE = 192  # the longer one of a map: nets see 224 columns, and softly
LEVELS = 33
_DIGITS = 5  # of what a model says
_STEPS = np.uint16(0xFFF0)  # what lies below is noise and takes half of the file


@dataclass(frozen=True, slots=True)
class Depth:
    """How near things are in one kept frame: 0 in the map means `low`, 65535 means `high`."""

    pts: int
    offset: int
    length: int
    low: float
    high: float
    levels: tuple[float, ...]  # nearness at equal shares of the picture, farthest first


@dataclass(frozen=True, slots=True)
class DepthIndex:
    """What a file of maps holds, in order of time."""

    base: Fraction
    size: Size
    maps: tuple[Depth, ...]

    def to_json(self) -> JSON:
        """The index as it is stored."""
        rows = [asdict(one) for one in self.maps]
        return {"base": [self.base.numerator, self.base.denominator], "size": list(self.size), "maps": rows}

    @staticmethod
    def from_json(doc: Mapping[str, JSON]) -> "DepthIndex":
        """The inverse of to_json."""
        maps = tuple(Depth(**{**row, "levels": tuple(row["levels"])}) for row in doc["maps"])
        width, height = doc["size"]
        return DepthIndex(Fraction(*doc["base"]), (width, height), maps)


class DepthWriter:
    """Writes maps as they are measured."""

    def __init__(self, path: Path, base: Fraction, picture: Size) -> None:
        self._base, self._size = base, map_size(picture)
        self._file: BinaryIO = path.open("wb")
        self._maps: list[Depth] = []

    def add(self, pts: int, nearness: NDArray[np.float32]) -> None:
        """Keep how near things are at a time."""
        found = np.asarray(nearness, np.float64).round(_DIGITS)
        low, high = float(found.min()), float(found.max())
        whole = np.rint((found - low) * (65535 / max(high - low, 10**-_DIGITS))).astype(np.uint16)
        small = resized_grey(whole, self._size) & _STEPS
        data = zlib.compress(np.diff(small, axis=1, prepend=np.uint16(0)).astype("<u2").tobytes(), 6)
        steps = np.linspace(0, found.size - 1, LEVELS).astype(np.intp)
        levels = tuple(float(v) for v in np.sort(found, axis=None)[steps])
        self._maps.append(Depth(pts, self._file.tell(), len(data), low, high, levels))
        self._file.write(data)

    def close(self) -> DepthIndex:
        """Finish the file and say what it holds."""
        self._file.close()
        return DepthIndex(self._base, self._size, tuple(self._maps))

    def let_go(self) -> None:
        """Close the file as it is."""
        self._file.close()


def map_size(picture: Size) -> Size:
    """The size of a map for pictures of some size."""
    width, height = (max(16, round(Fraction(SIDE * side, max(picture)))) for side in picture)
    return width, height


def read_map(file: BinaryIO, depth: Depth, size: Size) -> Map:
    """One map of a file."""
    file.seek(depth.offset)
    steps = np.frombuffer(zlib.decompress(file.read(depth.length)), "<u2").reshape(size[::-1])
    return np.cumsum(steps, axis=1, dtype=np.uint16)


def level(depths: Sequence[Depth], weights: Sequence[float], share: float) -> float:
    """The nearness below which lies a share of all that these maps show, each for its weight of time."""
    values = np.array([d.levels for d in depths])
    heavy = np.repeat(np.asarray(weights, np.float64), LEVELS)
    order = np.argsort(values, axis=None, kind="stable")
    below = np.cumsum(heavy[order])
    at = int(np.searchsorted(below, share * below[-1]))
    return float(values.reshape(-1)[order[min(at, len(order) - 1)]])
