"""The frame pack: kept frames as JPEGs in one file that is read by range, and an index that names them by time."""

from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import BinaryIO

import av
import numpy as np
import simplejpeg
from numpy.typing import NDArray

from rushes.domain.keys import JSON
from rushes.domain.span import to_us
from rushes.domain.video import VideoTrack
from rushes.media.reading.scaling import AREA, RgbScaler, Scaler, display_size, plane_rows
from rushes.media.timeline import SAMPLE_PERIOD, PeriodicSampler

_MAX_HEIGHT = 1080
_MAX_WIDTH = 2048
_QUALITY = 88
SIMILAR = 0.95  # frames more alike than this are one


@dataclass(frozen=True, slots=True)
class PackedFrame:
    """One kept frame: its time, its place in the pack, and what helps to choose a poster."""

    pts: int
    us: int
    offset: int
    length: int
    hash: str  # dHash, 16 hex digits
    sharp: int  # mean step between neighbouring pixels, in 1/100
    light: int  # mean brightness, 0 to 255


@dataclass(frozen=True, slots=True)
class PackIndex:
    """What a pack holds, in order of time."""

    base: Fraction
    width: int
    height: int
    frames: tuple[PackedFrame, ...]

    def to_json(self) -> JSON:
        """The index as it is stored."""
        base = [self.base.numerator, self.base.denominator]
        rows = [asdict(kept) for kept in self.frames]
        return {"base": base, "width": self.width, "height": self.height, "frames": rows}

    @staticmethod
    def from_json(doc: JSON) -> "PackIndex":
        """The inverse of to_json."""
        frames = tuple(PackedFrame(**kept) for kept in doc["frames"])
        return PackIndex(Fraction(*doc["base"]), doc["width"], doc["height"], frames)


class FramePackWriter:
    """Samples the frames of a chunk as they come by, and keeps those that show something new.

    `period` is the time between samples in seconds; a frame more like the last kept one than `threshold` is dropped.
    """

    def __init__(
        self, path: Path, track: VideoTrack, period: Fraction = SAMPLE_PERIOD, threshold: float = SIMILAR
    ) -> None:
        self._track = track
        self._size = display_size(track, _MAX_HEIGHT, _MAX_WIDTH)
        self._pictures = RgbScaler(track, self._size)
        self._tiny = Scaler(track, (9, 8), "gray", AREA)
        self._sampler = PeriodicSampler(period, track.base)
        self._threshold = threshold
        self._restarts = frozenset(track.keys)
        self._file: BinaryIO = path.open("wb")
        self._kept: list[PackedFrame] = []
        self._last = 0

    def add(self, pts: int, frame: av.VideoFrame) -> None:
        """Take the next frame: look at the first at or after each multiple of the period, keep it if it is new."""
        sampled, restart = self._sampler.is_due(pts), pts in self._restarts
        if not sampled and not restart:
            return
        seen = _dhash(plane_rows(self._tiny.scale(frame), 0))
        if restart or not self._kept or _similarity(seen, self._last) <= self._threshold:
            self._keep(pts, seen, frame)
            self._last = seen

    def finish(self) -> PackIndex:
        """Finish the file and say what it holds."""
        self._file.close()
        return PackIndex(self._track.base, *self._size, tuple(self._kept))

    def close(self) -> None:
        """Close the file, finished or not."""
        self._file.close()

    def _keep(self, pts: int, seen: int, frame: av.VideoFrame) -> None:
        picture = self._pictures.scale(frame)
        jpeg = simplejpeg.encode_jpeg(picture, _QUALITY, "RGB", "420", fastdct=False)
        place = self._file.tell()
        self._file.write(jpeg)
        sharp, light = _sharpness_and_brightness(picture[:, :, 1])
        us = to_us(pts, self._track.base)
        self._kept.append(PackedFrame(pts, us, place, len(jpeg), f"{seen:016x}", sharp, light))


def read_frame(pack: BinaryIO, kept: PackedFrame) -> bytes:
    """The JPEG of one kept frame."""
    pack.seek(kept.offset)
    return pack.read(kept.length)


def _dhash(gray: NDArray[np.uint8]) -> int:
    bits = np.packbits(gray[:, 1:] > gray[:, :-1])
    return int.from_bytes(bits.tobytes(), "big")


def _similarity(a: int, b: int) -> float:
    """The share of the bits of two hashes that are the same."""
    return 1 - (a ^ b).bit_count() / 64


def _sharpness_and_brightness(green: NDArray[np.uint8]) -> tuple[int, int]:
    few = green[::8, ::2].astype(np.int16)
    steps = int(np.abs(np.diff(few, axis=1)).sum(dtype=np.int64))
    return 100 * steps // few.size, int(few.sum(dtype=np.int64)) // few.size
