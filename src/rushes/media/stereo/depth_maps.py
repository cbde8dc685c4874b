"""Maps of inverse depth of packed frames: one file of small maps, and an index with quantiles of each."""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from rushes.domain.keys import JSON
from rushes.media.reading.scaling import Size, resize_gray16

DepthMap = NDArray[np.uint16]

MAX_SIDE = 192  # of a map: nets see 224 columns, blurred
LEVELS = 33
_DIGITS = 5  # of the output of a model
_HIGH_BITS = np.uint16(0xFFF0)  # the low bits are noise and half of the file


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
