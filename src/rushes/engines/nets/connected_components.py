"""Connected components of a binary mask, and the rotated rectangle of least area round each."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rushes.engines.images import Floats, Points


@dataclass(frozen=True, slots=True)
class Component:
    """Connected pixels: the corners of their runs, and the mean probability over them."""

    points: Points
    mean: float


def connected_components(probabilities: Floats, mask: NDArray[np.bool_]) -> Iterator[Component]:
    """The 8-connected components of a mask from top to bottom, by run-length union-find."""
    edges = np.diff(np.pad(mask, ((0, 0), (1, 1))).astype(np.int8), axis=1)
    rows, starts = np.nonzero(edges == 1)
    ends = np.nonzero(edges == -1)[1]
    sums = np.concatenate([[0.0], np.cumsum(probabilities, dtype=np.float64)])
    flat = rows * mask.shape[1]
    mass = sums[flat + ends] - sums[flat + starts]
    for run in _union_runs(rows, starts, ends, mask.shape[1] + 2):
        x, y = np.concatenate([starts[run], ends[run]]), np.concatenate([rows[run], rows[run]])
        points = np.stack([np.concatenate([x, x]), np.concatenate([y, y + 1])], axis=1).astype(np.float64)
        yield Component(points, float(mass[run].sum() / (ends[run] - starts[run]).sum()))


def _union_runs(
    rows: NDArray[np.intp], starts: NDArray[np.intp], ends: NDArray[np.intp], wide: int
) -> list[NDArray[np.intp]]:
    """Indices of the runs of each component."""
    first = np.searchsorted(rows * wide + ends, (rows + 1) * wide + starts, "left")
    last = np.searchsorted(rows * wide + starts, (rows + 1) * wide + ends, "right")
    root = list(range(len(rows)))

    def find(n: int) -> int:
        while root[n] != n:
            root[n] = root[root[n]]
            n = root[n]
        return n

    for n in np.flatnonzero(last > first):
        for below in range(first[n], last[n]):
            a, b = sorted((find(int(n)), find(below)))
            root[b] = a
    roots = np.array([find(n) for n in range(len(root))], np.intp)
    order = np.argsort(roots, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(roots[order])) + 1) if len(order) else []


def min_area_rectangle(points: Points) -> Points:
    """Corners (top left, top right, bottom right, bottom left), the upper edge within 45 degrees of level."""
    hull = _convex_hull(points)
    edges = np.roll(hull, -1, axis=0) - hull
    angles = np.unique(np.arctan2(edges[:, 1], edges[:, 0]) % (np.pi / 2))
    turns = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    along, down = hull @ turns.T, hull @ np.stack([-turns[:, 1], turns[:, 0]])
    area = np.ptp(along, axis=0) * np.ptp(down, axis=0)
    best = int(np.argmin(np.round(area, 6)))
    across = turns[best] if angles[best] <= np.pi / 4 else np.array([turns[best][1], -turns[best][0]])
    upright = np.array([-across[1], across[0]])
    (a, b), (c, d) = _extent(hull @ across), _extent(hull @ upright)
    return np.array(
        [a * across + c * upright, b * across + c * upright, b * across + d * upright, a * across + d * upright]
    )


def _extent(values: NDArray[np.float64]) -> tuple[float, float]:
    return float(values.min()), float(values.max())


def _convex_hull(points: Points) -> Points:
    """Andrew's monotone chain."""
    ordered = np.unique(points, axis=0).tolist()
    half: list[list[list[float]]] = []
    for way in (ordered, ordered[::-1]):
        chain: list[list[float]] = []
        for p in way:
            while len(chain) > 1 and _cross(chain[-2], chain[-1], p) <= 0:
                chain.pop()
            chain.append(p)
        half.append(chain[:-1])
    return np.array(half[0] + half[1])


def _cross(a: list[float], b: list[float], c: list[float]) -> float:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
