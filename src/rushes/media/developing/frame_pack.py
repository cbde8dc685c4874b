"""The frame pack: distinct frames as JPEGs in one file, and an index of them by time."""

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
_MIN_SIMILARITY = 0.95  # share of equal dHash bits from which a frame is a duplicate


@dataclass(frozen=True, slots=True)
class PackedFrame:
    """One frame of a pack: its time, its byte range, and figures for the choice of a poster."""

    pts: int
    us: int
    offset: int
    length: int
    hash: str  # dHash, 16 hex digits
    sharp: int  # mean horizontal gradient, in 1/100
    light: int  # mean brightness, 0 to 255


@dataclass(frozen=True, slots=True)
class PackIndex:
    """The frames of a pack, in order of time."""

    base: Fraction
    width: int
    height: int
    frames: tuple[PackedFrame, ...]

    def to_json(self) -> JSON:
        """The index as it is stored."""
        base = [self.base.numerator, self.base.denominator]
        rows = [asdict(frame) for frame in self.frames]
        return {"base": base, "width": self.width, "height": self.height, "frames": rows}

    @staticmethod
    def from_json(doc: JSON) -> "PackIndex":
        """The inverse of to_json."""
        return PackIndex(
            Fraction(*doc["base"]), doc["width"], doc["height"], tuple(PackedFrame(**k) for k in doc["frames"])
        )


class FramePackWriter:
    """A sink that samples frames and packs those whose dHash is new."""

    def __init__(self, path: Path, track: VideoTrack) -> None:
        self._track = track
        self._size = display_size(track, _MAX_HEIGHT, _MAX_WIDTH)
        self._pictures = RgbScaler(track, self._size)
        self._hash_scaler = Scaler(track, (9, 8), "gray", AREA)
        self._sampler = PeriodicSampler(SAMPLE_PERIOD, track.base)
        self._restart = frozenset(track.keys)
        self._file: BinaryIO = path.open("wb")
        self._frames: list[PackedFrame] = []
        self._last = 0

    def add(self, pts: int, frame: av.VideoFrame) -> None:
        """Sample the first frame at or after each multiple of 100 ms, and key frames; pack it if it is new."""
        sampled, restart = self._sampler.is_due(pts), pts in self._restart
        if not sampled and not restart:
            return
        seen = _dhash(plane_rows(self._hash_scaler.scale(frame), 0))
        if restart or not self._frames or not _is_similar(seen, self._last):
            self._pack(pts, seen, frame)
            self._last = seen

    def finish(self) -> PackIndex:
        """Finish the file and return its index."""
        self._file.close()
        return PackIndex(self._track.base, *self._size, tuple(self._frames))

    def close(self) -> None:
        """Close the file, finished or not."""
        self._file.close()

    def _pack(self, pts: int, seen: int, frame: av.VideoFrame) -> None:
        picture = self._pictures.scale(frame)
        jpeg = simplejpeg.encode_jpeg(picture, _QUALITY, "RGB", "420", fastdct=False)
        offset = self._file.tell()
        self._file.write(jpeg)
        sharp, light = _sharpness_and_brightness(picture[:, :, 1])
        us = to_us(pts, self._track.base)
        self._frames.append(PackedFrame(pts, us, offset, len(jpeg), f"{seen:016x}", sharp, light))


def read_frame(pack: BinaryIO, frame: PackedFrame) -> bytes:
    """The JPEG of one packed frame."""
    pack.seek(frame.offset)
    return pack.read(frame.length)


def _dhash(gray: NDArray[np.uint8]) -> int:
    bits = np.packbits(gray[:, 1:] > gray[:, :-1])
    return int.from_bytes(bits.tobytes(), "big")


def _is_similar(a: int, b: int) -> bool:
    return 1 - (a ^ b).bit_count() / 64 > _MIN_SIMILARITY


def _sharpness_and_brightness(green: NDArray[np.uint8]) -> tuple[int, int]:
    few = green[::8, ::2].astype(np.int16)
    steps = int(np.abs(np.diff(few, axis=1)).sum(dtype=np.int64))
    return 100 * steps // few.size, int(few.sum(dtype=np.int64)) // few.size
