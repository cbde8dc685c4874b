"""How much each frame differs from the few before it: measured per chunk, joined exactly as if there were one chunk."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import av
import numpy as np
from numpy.typing import NDArray

from rushes.domain.video import VideoTrack
from rushes.media.reading.scaling import AREA, Scaler, plane_rows

LAGS = 5  # a frame is compared with this many before it
WIDTH, HEIGHT = 64, 36
PIXELS = 3 * WIDTH * HEIGHT
_MAGIC = b"RUSHCUT1"
_HEAD = struct.Struct("<8sII")

Thumbnails = NDArray[np.uint8]  # rows of PIXELS: Y, U, V of a small picture


@dataclass(frozen=True, slots=True)
class CutMetrics:
    """Per frame: its time, its summed difference from the one, two, ... before it (0 if there is none), its light."""

    pts: NDArray[np.int64]
    apart: NDArray[np.uint32]  # frames x LAGS
    light: NDArray[np.uint32]  # summed brightness
    first: Thumbnails  # the first LAGS pictures, fewer in a short chunk
    last: Thumbnails  # the last LAGS

    def to_bytes(self) -> bytes:
        """The document as it is stored, little-endian."""
        arrays = (self.pts, self.apart, self.light, self.first, self.last)
        return _HEAD.pack(_MAGIC, len(self.pts), len(self.first)) + b"".join(a.tobytes() for a in arrays)

    @staticmethod
    def from_bytes(data: bytes) -> "CutMetrics":
        """The inverse of to_bytes. Raises ValueError on anything else."""
        magic, count, few = _HEAD.unpack_from(data)
        if magic != _MAGIC:
            raise ValueError("these are not cut metrics")
        at = _HEAD.size
        parts = []
        thumbnails = ("u1", (few, PIXELS))
        for kind, shape in (("<i8", (count,)), ("<u4", (count, LAGS)), ("<u4", (count,)), thumbnails, thumbnails):
            length = int(np.prod(shape))
            parts.append(np.frombuffer(data, kind, length, at).reshape(shape))
            at += length * np.dtype(kind).itemsize
        return CutMetrics(*parts)


class CutMetricsRecorder:
    """Measures the frames of a chunk as they come by."""

    def __init__(self, track: VideoTrack) -> None:
        self._scaler = Scaler(track, (WIDTH, HEIGHT), "yuv444p", AREA)
        self._recent = np.zeros((LAGS, PIXELS), np.int16)  # ring: the frame number n lies at n % LAGS
        self._now = np.zeros(PIXELS, np.int16)
        self._diff = np.zeros((LAGS, PIXELS), np.int16)
        self._pts: list[int] = []
        self._apart: list[NDArray[np.int64]] = []
        self._light: list[int] = []
        self._first = np.zeros((LAGS, PIXELS), np.uint8)

    def add(self, pts: int, frame: av.VideoFrame) -> None:
        """Take the next frame."""
        number = len(self._pts)
        small = self._scaler.scale(frame)
        for i in range(3):
            self._now.reshape(3, HEIGHT, WIDTH)[i] = plane_rows(small, i)
        np.subtract(self._recent, self._now, out=self._diff)
        np.abs(self._diff, out=self._diff)
        sums = self._diff.sum(axis=1, dtype=np.int64)
        order = [(number - lag) % LAGS for lag in range(1, LAGS + 1)]
        row = sums[order]
        row[number:] = 0
        self._pts.append(pts)
        self._apart.append(row)
        self._light.append(int(self._now[: WIDTH * HEIGHT].sum(dtype=np.int64)))
        self._recent[number % LAGS] = self._now
        if number < LAGS:
            self._first[number] = self._now

    def finish(self) -> CutMetrics:
        """What was measured."""
        count = len(self._pts)
        few = min(count, LAGS)
        last = [self._recent[n % LAGS] for n in range(count - few, count)]
        return CutMetrics(
            np.array(self._pts, np.int64),
            np.array(self._apart, np.uint32).reshape(count, LAGS),
            np.array(self._light, np.uint32),
            self._first[:few].copy(),
            np.array(last, np.uint8).reshape(few, PIXELS),
        )


def join_metrics(parts: Sequence[CutMetrics]) -> CutMetrics:
    """One film's metrics from its chunks', in order: the same as measured in one go."""
    tables, tail = [], np.zeros((0, PIXELS), np.uint8)
    for part in parts:
        tables.append(_fill_differences(part, tail))
        tail = np.concatenate([tail, part.last])[-LAGS:]
    nothing = np.zeros((0, PIXELS), np.uint8)
    heads = np.concatenate([nothing, *(p.first for p in parts[:LAGS])])  # no chunk is empty, so five are enough
    return CutMetrics(
        np.concatenate([np.zeros(0, np.int64), *(p.pts for p in parts)]),
        np.concatenate([np.zeros((0, LAGS), np.uint32), *tables]),
        np.concatenate([np.zeros(0, np.uint32), *(p.light for p in parts)]),
        heads[:LAGS],
        tail,
    )


def _fill_differences(part: CutMetrics, tail: Thumbnails) -> NDArray[np.uint32]:
    """A chunk's differences with those that reach back over its start filled in."""
    apart = part.apart.copy()
    for number, small in enumerate(part.first):
        for lag in range(number + 1, min(LAGS, number + len(tail)) + 1):
            before = tail[number - lag]
            apart[number, lag - 1] = np.abs(small.astype(np.int16) - before).sum(dtype=np.int64)
    return apart
