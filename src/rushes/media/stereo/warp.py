"""Depth-image-based rendering: disparity from depth, and each eye's view by a forward warp along the rows.

Integers only, so that the same picture and disparity give the same pixels on every machine.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rushes.media.reading.scaling import resize_gray16
from rushes.media.stereo.depth import DepthMap, Grade

Plane = NDArray[np.uint8]
Planes = tuple[Plane, Plane, Plane]  # Y, and U and V of half the size
Disparity = NDArray[np.int16]  # in quarters of a pixel, for one eye; a row for two rows of the picture
SourceColumns = NDArray[np.int32]  # for each column of a view, its column in the row of a SubpixelPicture

SUBPIXELS = 4  # in a pixel
_HOLE = -1
_BAND_ROWS = 64  # they stay in the cache: 0.7 of the time
_RADIUS = 4  # of the guided filter, in pixels of the map
_EPSILON = 60  # regularisation of the guided filter, in squared luma
_MAX_SLOPE = 400  # of depth per step of luma
_SLOPE_ZERO = 32768
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SubpixelPicture:
    """A picture interpolated to quarters of a pixel along its rows."""

    y: Plane
    u: Plane
    v: Plane

    @staticmethod
    def of(planes: Planes) -> "SubpixelPicture":
        """Interpolate a picture: 4 ms for 720p where scaling by libswscale takes 10."""
        return SubpixelPicture(*map(_interpolate, planes))

    def warp(self, disparity: Disparity, *, left: bool) -> Planes:
        """The view of one eye: near parts (of larger disparity) move right for the left eye, left for the right one."""
        height, width = len(self.y), self.y.shape[1] // SUBPIXELS
        y = np.empty((height, width), np.uint8)
        u, v = (np.empty((height // 2, width // 2), np.uint8) for _ in range(2))
        for row in range(0, len(disparity), _BAND_ROWS):
            band = slice(row, row + _BAND_ROWS)
            columns = source_columns(disparity[band], left=left)
            at = _flat_indices(columns, 2 * width * SUBPIXELS)
            y[2 * row : 2 * (row + _BAND_ROWS) : 2] = np.take(self.y[2 * row :].reshape(-1), at)
            y[2 * row + 1 : 2 * (row + _BAND_ROWS) : 2] = np.take(self.y[2 * row + 1 :].reshape(-1), at)
            at = _flat_indices(columns[:, ::2] >> 1, width // 2 * SUBPIXELS)
            u[band] = np.take(self.u[row:].reshape(-1), at)
            v[band] = np.take(self.v[row:].reshape(-1), at)
        return y, u, v


def dilate(disparity: Disparity) -> Disparity:
    """Grow near parts by a pixel on each side, so that they own their edges: 0.9 dB on the motorcycle pair."""
    out = disparity.copy()
    np.maximum(out[:, 1:], disparity[:, :-1], out=out[:, 1:])
    np.maximum(out[:, :-1], disparity[:, 1:], out=out[:, :-1])
    return out


def source_columns(disparity: Disparity, *, left: bool) -> SourceColumns:
    """For each column of a row of a view, the column of the subpixel row that is seen there."""
    if not left:
        return _forward_warp(disparity)
    mirrored = _forward_warp(np.ascontiguousarray(disparity[:, ::-1]))[:, ::-1]
    return np.asarray(SUBPIXELS * (disparity.shape[1] - 1) - mirrored, np.int32)


def _interpolate(plane: Plane) -> Plane:
    """Each pixel followed by the values at a quarter, a half and three quarters of the way to the next."""
    height, width = plane.shape
    fine = np.empty((height, width, SUBPIXELS), np.uint8)
    right = np.concatenate([plane[:, 1:], plane[:, -1:]], axis=1)
    half = _mean(plane, right)
    for step, values in enumerate((plane, _mean(plane, half), half, _mean(half, right))):
        fine[:, :, step] = values
    return fine.reshape(height, width * SUBPIXELS)


def _mean(a: Plane, b: Plane) -> Plane:
    return np.asarray((a & b) + ((a ^ b) >> 1), np.uint8)


def _flat_indices(columns: SourceColumns, stride: int) -> NDArray[np.intp]:
    """Columns in rows as indices into all rows laid end to end."""
    return np.add(columns, np.arange(len(columns))[:, None] * stride, dtype=np.intp)


def _forward_warp(disparity: Disparity) -> SourceColumns:
    """Move every pixel back along the row by its disparity. Of two that meet, the nearer comes later and wins."""
    height, width = disparity.shape
    moved = disparity + SUBPIXELS // 2
    whole = moved >> 2
    room = int(np.abs(whole).max(initial=0)) + 1
    x, last = np.arange(width, dtype=np.int32), SUBPIXELS * (width - 1)
    fine = (SUBPIXELS * x - SUBPIXELS // 2) + (moved & (SUBPIXELS - 1))
    fine[:, 0], fine[:, -1] = np.maximum(fine[:, 0], 0), np.minimum(fine[:, -1], last)
    out = np.full((height, width + 2 * room), _HOLE, np.int32)
    out.reshape(-1)[_flat_indices(x + room - whole, out.shape[1]).reshape(-1)] = fine.reshape(-1)
    out[:, :room], out[:, room + width :] = 0, last  # repeat the edge beyond the picture
    _fill_holes(out.reshape(-1))
    return out[:, room : room + width]


def _fill_holes(row: SourceColumns) -> None:
    """Fill disocclusions with the background next to them.

    Near pixels have moved back along the row: a hole follows them, and the background follows the hole.
    """
    holes = np.flatnonzero(row == _HOLE)
    ends = np.append(np.diff(holes) > 1, True)[: len(holes)]
    row[holes] = row[holes[ends] + 1][np.cumsum(ends) - ends]


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
