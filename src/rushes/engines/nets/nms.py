"""Boxes that show the same thing: the surest stays."""

import numpy as np
from numpy.typing import NDArray

Boxes = NDArray[np.float64]  # n x (left, top, right, bottom)


def surest(boxes: Boxes, scores: NDArray[np.floating], most: float) -> list[int]:
    """The boxes that stay, surest first: none overlaps a surer one by more than `most` of what both cover."""
    left = list(np.lexsort((np.arange(len(scores)), -scores)))
    kept: list[int] = []
    while left:
        first = left.pop(0)
        kept.append(int(first))
        shared = _shared(boxes[first], boxes[left])
        left = [n for n, s in zip(left, shared, strict=True) if s <= most]
    return kept


def _shared(box: NDArray[np.float64], others: Boxes) -> NDArray[np.float64]:
    low, high = np.maximum(box[:2], others[:, :2]), np.minimum(box[2:], others[:, 2:])
    both = np.prod(np.clip(high - low, 0, None), axis=1)
    areas = np.prod(others[:, 2:] - others[:, :2], axis=1) + np.prod(box[2:] - box[:2])
    return np.asarray(both / np.maximum(areas - both, 1e-9))
