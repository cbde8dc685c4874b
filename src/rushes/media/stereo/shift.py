"""From a small map of depth to how far each part of the picture moves aside, its edges where the picture's are."""

import numpy as np
from numpy.typing import NDArray

from rushes.media.reading.picture import resized_grey
from rushes.media.stereo.depth import Map
from rushes.media.stereo.grade import Grade
from rushes.media.stereo.warp import FINE, Plane, Shift, widened

_RADIUS = 4  # of the window in which light explains depth, in pixels of the map
_SMOOTH = 60  # variance of light that counts as no edge
_MOST = 400  # of depth that one step of light may explain
_ZERO = 32768

Ints = NDArray[np.int64]


def shift_of(near: Map, light: Plane, grade: Grade) -> Shift:
    """Quarters of a pixel by which each part moves aside for one eye; the other eye moves it as far the other way."""
    fine = sharpened(near, light)
    width = light.shape[1]
    unit = width * FINE / 200  # one per cent of the width, half of it for each eye
    moved = fine * np.float32(grade.strength * unit / 65535) - np.float32(grade.convergence * unit)
    return widened(np.rint(moved).astype(np.int16))


def sharpened(near: Map, light: Plane) -> NDArray[np.float32]:
    """The map in the width and half the height of the picture: where light has an edge, depth may have one.

    Within a small window depth is taken for a straight line of light (a guided filter, at the size of the map).
    """
    height, width = light.shape[0] // 2, light.shape[1]
    bright = np.asarray(light.astype(np.uint16) << 8, np.uint16)
    guide = resized_grey(bright, (near.shape[1], near.shape[0])) >> 8
    slope, middle, mean = _lines(guide.astype(np.int64), near.astype(np.int64))
    up = [resized_grey(plane, (width, height)).astype(np.float32) for plane in (slope, middle, mean)]
    apart = light[::2].astype(np.float32) - up[2] * np.float32(1 / 256)
    return np.clip(up[1] + (up[0] - _ZERO) * np.float32(_MOST / _ZERO) * apart, 0, 65535)


def _lines(light: Ints, near: Ints) -> tuple[Map, Map, Map]:
    """Per pixel: how depth rises with light round it, the depth there, and the light to which that belongs."""
    count = _summed(np.ones_like(light))
    mean_light, mean_near = _summed(light) / count, _summed(near) / count
    spread = _summed(light * light) / count - mean_light**2
    together = _summed(light * near) / count - mean_light * mean_near
    slope = np.clip(together / (spread + _SMOOTH), -_MOST, _MOST)
    smooth = _summed(np.rint(slope * 1024).astype(np.int64)) / (1024 * count)
    line = _summed(np.rint((mean_near - slope * mean_light) * 16).astype(np.int64)) / (16 * count)
    depth = np.clip(line + smooth * mean_light, 0, 65535)
    packed = np.rint(smooth * (_ZERO / _MOST)) + _ZERO
    return _whole(packed), _whole(depth), _whole(mean_light * 256)


def _whole(values: NDArray[np.float64]) -> Map:
    return np.clip(np.rint(values), 0, 65535).astype(np.uint16)


def _summed(values: Ints) -> Ints:
    """Sums over the window round each pixel, exactly."""
    for axis in (0, 1):
        total = np.cumsum(values, axis=axis)
        length = values.shape[axis]
        high = np.minimum(np.arange(length) + _RADIUS, length - 1)
        low = np.arange(length) - _RADIUS - 1
        before = np.where(np.expand_dims(low >= 0, 1 - axis), np.take(total, np.maximum(low, 0), axis=axis), 0)
        values = np.take(total, high, axis=axis) - before
    return values
