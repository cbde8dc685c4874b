"""Trickplay: sheets of thumbnails in the layout of Jellyfin, and WebVTT that maps times to them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import av
import numpy as np
import simplejpeg
from numpy.typing import NDArray

from rushes.media.developing.frame_pack import PackedFrame, PackIndex
from rushes.media.reading.scaling import AREA
from rushes.media.subtitles import timestamp

WIDTH, COLUMNS, ROWS = 320, 10, 10
INTERVAL_MS = 10_000
FOLDER = f"{WIDTH} - {COLUMNS}x{ROWS}"  # Jellyfin reads size and grid from this name
_QUALITY = 80

Picture = NDArray[np.uint8]
FrameRef = tuple[int, PackedFrame]  # pack number, frame


@dataclass(frozen=True, slots=True)
class Thumbnail:
    """The thumbnail at a multiple of the interval: the last packed frame before it."""

    ms: int
    frame: FrameRef


def thumbnails(indexes: Sequence[PackIndex], zero: Fraction, duration: Fraction) -> list[Thumbnail]:
    """One thumbnail per interval of a film that begins at media time `zero`; none without frames."""
    frames = [(pack, frame) for pack, index in enumerate(indexes) for frame in index.frames]
    found: list[Thumbnail] = []
    at = 0
    for ms in range(0, max(1, int(duration * 1000)), INTERVAL_MS) if frames else ():
        while at + 1 < len(frames) and frames[at + 1][1].us <= zero * 1_000_000 + ms * 1000:
            at += 1
        found.append(Thumbnail(ms, frames[at]))
    return found


def sheets(some: Sequence[Thumbnail], size: tuple[int, int], read: Callable[[FrameRef], bytes]) -> Iterator[bytes]:
    """The sheets as JPEGs, one at a time; a repeated frame is scaled once."""
    width, height = size
    seen: tuple[FrameRef | None, Picture] = (None, np.zeros((height, width, 3), np.uint8))
    for first in range(0, len(some), COLUMNS * ROWS):
        sheet = np.zeros((ROWS * height, COLUMNS * width, 3), np.uint8)
        for n, thumbnail in enumerate(some[first : first + COLUMNS * ROWS]):
            if seen[0] != thumbnail.frame:
                seen = (thumbnail.frame, _scale_jpeg(read(thumbnail.frame), size))
            y, x = divmod(n, COLUMNS)
            sheet[y * height : (y + 1) * height, x * width : (x + 1) * width] = seen[1]
        yield simplejpeg.encode_jpeg(sheet, _QUALITY, "RGB", "420", fastdct=False)


def tile_size(width: int, height: int) -> tuple[int, int]:
    """Width and height of a thumbnail."""
    return WIDTH, max(2, 2 * round(Fraction(height * WIDTH, width) / 2))


def webvtt(some: Sequence[Thumbnail], size: tuple[int, int], duration: Fraction) -> str:
    """Which part of which sheet to show when, as WebVTT thumbnails."""
    ends = [*(m.ms for m in some[1:]), int(duration * 1000)]
    return "WEBVTT\n\n" + "".join(_cue(n, m.ms, end, size) for n, (m, end) in enumerate(zip(some, ends, strict=False)))


def _cue(number: int, start: int, end: int, size: tuple[int, int]) -> str:
    sheet, n = divmod(number, COLUMNS * ROWS)
    y, x = divmod(n, COLUMNS)
    area = f"{x * size[0]},{y * size[1]},{size[0]},{size[1]}"
    folder = FOLDER.replace(" ", "%20")
    return f"{timestamp(start)} --> {timestamp(end)}\n{folder}/{sheet}.jpg#xywh={area}\n\n"


def _scale_jpeg(jpeg: bytes, size: tuple[int, int]) -> Picture:
    width, height = size
    rgb = simplejpeg.decode_jpeg(jpeg, "RGB", min_width=width, min_height=height, strict=False)
    frame = av.VideoFrame.from_ndarray(rgb, format="rgb24")
    return frame.reformat(width, height, interpolation=AREA).to_ndarray().astype(np.uint8, copy=False)
