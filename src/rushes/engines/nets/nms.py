"""Non-maximum suppression."""

import numpy as np
from numpy.typing import NDArray

Boxes = NDArray[np.float64]  # n x (left, top, right, bottom)


def nms(boxes: Boxes, scores: NDArray[np.floating], iou_threshold: float) -> list[int]:
    """Indices of the boxes that stay, best first: none overlaps a better one by more than the threshold."""
    left = list(np.lexsort((np.arange(len(scores)), -scores)))
    kept: list[int] = []
    while left:
        first = left.pop(0)
        kept.append(int(first))
        ious = _iou(boxes[first], boxes[left])
        left = [n for n, s in zip(left, ious, strict=True) if s <= iou_threshold]
    return kept


def _iou(box: NDArray[np.float64], others: Boxes) -> NDArray[np.float64]:
    low, high = np.maximum(box[:2], others[:, :2]), np.minimum(box[2:], others[:, 2:])
    both = np.prod(np.clip(high - low, 0, None), axis=1)
    areas = np.prod(others[:, 2:] - others[:, :2], axis=1) + np.prod(box[2:] - box[:2])
    return np.asarray(both / np.maximum(areas - both, 1e-9))
