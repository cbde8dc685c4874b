"""Disparity from a small map of depth, by a guided filter that moves edges of depth to edges of the picture."""

import numpy as np
from numpy.typing import NDArray

from rushes.media.reading.scaling import resize_gray16
from rushes.media.stereo.depth_maps import DepthMap
from rushes.media.stereo.grade import Grade
from rushes.media.stereo.warp import SUBPIXELS, Disparity, Plane, dilate

_RADIUS = 4  # of the guided filter, in pixels of the map
_EPSILON = 60  # regularisation of the guided filter, in squared luma
_MAX_SLOPE = 400  # of depth per step of luma
_SLOPE_ZERO = 32768

Ints = NDArray[np.int64]


def disparity_of(near: DepthMap, luma: Plane, grade: Grade) -> Disparity:
    """Disparity of one eye; the other eye's is its negative."""
    fine = guided_upsample(near, luma)
    width = luma.shape[1]
    unit = width * SUBPIXELS / 200  # one per cent of the width, half of it for each eye
    moved = fine * np.float32(grade.strength * unit / 65535) - np.float32(grade.convergence * unit)
    return dilate(np.rint(moved).astype(np.int16))


def guided_upsample(near: DepthMap, luma: Plane) -> NDArray[np.float32]:
    """The map in the width and half the height of the picture, by a fast guided filter with luma as its guide."""
    height, width = luma.shape[0] // 2, luma.shape[1]
    bright = np.asarray(luma.astype(np.uint16) << 8, np.uint16)
    guide = resize_gray16(bright, (near.shape[1], near.shape[0])) >> 8
    slope, middle, mean = _local_linear_model(guide.astype(np.int64), near.astype(np.int64))
    up = [resize_gray16(plane, (width, height)).astype(np.float32) for plane in (slope, middle, mean)]
    difference = luma[::2].astype(np.float32) - up[2] * np.float32(1 / 256)
    return np.clip(up[1] + (up[0] - _SLOPE_ZERO) * np.float32(_MAX_SLOPE / _SLOPE_ZERO) * difference, 0, 65535)


def _local_linear_model(luma: Ints, near: Ints) -> tuple[DepthMap, DepthMap, DepthMap]:
    """Per pixel: slope of depth over luma around it, the depth there, and the mean luma."""
    count = _box_sum(np.ones_like(luma))
    mean_luma, mean_near = _box_sum(luma) / count, _box_sum(near) / count
    variance = _box_sum(luma * luma) / count - mean_luma**2
    covariance = _box_sum(luma * near) / count - mean_luma * mean_near
    slope = np.clip(covariance / (variance + _EPSILON), -_MAX_SLOPE, _MAX_SLOPE)
    smooth = _box_sum(np.rint(slope * 1024).astype(np.int64)) / (1024 * count)
    line = _box_sum(np.rint((mean_near - slope * mean_luma) * 16).astype(np.int64)) / (16 * count)
    depth = np.clip(line + smooth * mean_luma, 0, 65535)
    packed = np.rint(smooth * (_SLOPE_ZERO / _MAX_SLOPE)) + _SLOPE_ZERO
    return _to_uint16(packed), _to_uint16(depth), _to_uint16(mean_luma * 256)


def _to_uint16(values: NDArray[np.float64]) -> DepthMap:
    return np.clip(np.rint(values), 0, 65535).astype(np.uint16)


def _box_sum(values: Ints) -> Ints:
    """Exact sums over the window around each pixel."""
    for axis in (0, 1):
        total = np.cumsum(values, axis=axis)
        length = values.shape[axis]
        high = np.minimum(np.arange(length) + _RADIUS, length - 1)
        low = np.arange(length) - _RADIUS - 1
        before = np.where(np.expand_dims(low >= 0, 1 - axis), np.take(total, np.maximum(low, 0), axis=axis), 0)
        values = np.take(total, high, axis=axis) - before
    return values
