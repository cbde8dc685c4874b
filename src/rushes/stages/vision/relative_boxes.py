"""Boxes and points as observations carry them: relative to the width and height of the picture, rounded."""

from collections.abc import Sequence

from rushes.engines.port import Picture

Box = tuple[float, float, float, float]

_DIGITS = 4


def relative_box(edges: Sequence[float], picture: Picture) -> Box:
    """x, y, width, height of left, top, right, bottom in pixels."""
    left, top, right, bottom = edges
    height, width = picture.shape[:2]
    x, y = round(left / width, _DIGITS), round(top / height, _DIGITS)
    return x, y, round((right - left) / width, _DIGITS), round((bottom - top) / height, _DIGITS)


def relative_points(corners: Sequence[Sequence[float]], picture: Picture) -> list[list[float]]:
    """Points given in pixels, as [x, y]."""
    height, width = picture.shape[:2]
    return [[round(x / width, _DIGITS), round(y / height, _DIGITS)] for x, y in corners]


def bounding_box(corners: Sequence[Sequence[float]]) -> tuple[float, float, float, float]:
    """Left, top, right, bottom of some points."""
    xs, ys = [c[0] for c in corners], [c[1] for c in corners]
    return min(xs), min(ys), max(xs), max(ys)
