"""Blobs and rectangles against the plain way to find them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from rushes.engines.images import nms
from rushes.engines.nets.text import connected_components, min_area_rectangle


def flooded(mask: NDArray[np.bool_]) -> set[frozenset[tuple[int, int]]]:
    """The blobs of a mask, pixel by pixel."""
    left, found = set(zip(*map(list, np.nonzero(mask)), strict=True)), set()
    while left:
        edge, blob = [left.pop()], set()
        while edge:
            y, x = edge.pop()
            blob.add((y, x))
            near = {(y + j, x + i) for j in (-1, 0, 1) for i in (-1, 0, 1)} & left
            left -= near
            edge += near
        found.add(frozenset((int(y), int(x)) for y, x in blob))
    return found


@given(st.integers(0, 2**32), st.integers(1, 12), st.integers(1, 12), st.floats(0, 1))
def test_blobs_are_what_a_flood_finds(seed: int, width: int, height: int, share: float) -> None:
    chance = np.random.default_rng(seed)
    mask, weights = chance.random((height, width)) < share, chance.random((height, width)).astype(np.float32)
    found = list(connected_components(weights, mask))
    wanted = flooded(mask)
    edges = sorted(tuple(np.concatenate([b.points.min(axis=0), b.points.max(axis=0)])) for b in found)
    assert edges == sorted(
        (min(x for _, x in b), min(y for y, _ in b), max(x for _, x in b) + 1, max(y for y, _ in b) + 1) for b in wanted
    )
    means = sorted(b.mean for b in found)
    assert np.allclose(means, sorted(np.mean([weights[p] for p in b]) for b in wanted), atol=1e-5)


@given(st.floats(-40, 40), st.floats(10, 50), st.floats(2, 9))
def test_the_smallest_rectangle_is_found_at_any_angle(degrees: float, width: float, height: float) -> None:
    turn = np.radians(degrees)
    across, down = np.array([np.cos(turn), np.sin(turn)]), np.array([-np.sin(turn), np.cos(turn)])
    corners = np.array([[0, 0], across * width, across * width + down * height, down * height]) + np.array([70, 80])
    inside = np.array([corners.mean(axis=0), corners[:2].mean(axis=0)])
    assert np.allclose(min_area_rectangle(np.concatenate([corners[::-1], inside])), corners, atol=1e-6)


def test_of_boxes_that_show_the_same_thing_the_surest_stays() -> None:
    boxes = np.array([[0, 0, 10, 10], [1, 0, 11, 10], [50, 50, 60, 60], [4, 0, 14, 10]], np.float64)
    assert nms(boxes, np.array([0.5, 0.9, 0.4, 0.3]), 0.6) == [1, 2, 3]
    assert nms(boxes[:0], np.array([]), 0.6) == []
