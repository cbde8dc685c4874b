"""The poster, and sheets of small pictures for seeking, as Jellyfin lays them out, with WebVTT that names each."""

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
FOLDER = f"{WIDTH} - {COLUMNS}x{ROWS}"  # the name by which Jellyfin knows size and grid
_QUALITY = 80

Picture = NDArray[np.uint8]
FrameRef = tuple[int, PackedFrame]  # which pack, which of its frames


@dataclass(frozen=True, slots=True)
class Tile:
    """What is on screen at a multiple of the interval: the last kept frame, from which the picture hardly differs."""

    ms: int
    place: FrameRef


def tiles(indexes: Sequence[PackIndex], zero: Fraction, duration: Fraction) -> list[Tile]:
    """One for each interval of a film that begins at media time `zero`; none if nothing was kept."""
    frames = [(pack, kept) for pack, index in enumerate(indexes) for kept in index.frames]
    found: list[Tile] = []
    at = 0
    for ms in range(0, max(1, int(duration * 1000)), INTERVAL_MS) if frames else ():
        while at + 1 < len(frames) and frames[at + 1][1].us <= zero * 1_000_000 + ms * 1000:
            at += 1
        found.append(Tile(ms, frames[at]))
    return found


def sheets(some: Sequence[Tile], size: tuple[int, int], read: Callable[[FrameRef], bytes]) -> Iterator[bytes]:
    """The sheets as JPEGs, one at a time; a picture that stays is scaled once."""
    width, height = size
    seen: tuple[FrameRef | None, Picture] = (None, np.zeros((height, width, 3), np.uint8))
    for first in range(0, len(some), COLUMNS * ROWS):
        sheet = np.zeros((ROWS * height, COLUMNS * width, 3), np.uint8)
        for n, moment in enumerate(some[first : first + COLUMNS * ROWS]):
            if seen[0] != moment.place:
                seen = (moment.place, _thumbnail(read(moment.place), size))
            y, x = divmod(n, COLUMNS)
            sheet[y * height : (y + 1) * height, x * width : (x + 1) * width] = seen[1]
        yield simplejpeg.encode_jpeg(sheet, _QUALITY, "RGB", "420", fastdct=False)


def tile_size(width: int, height: int) -> tuple[int, int]:
    """Width and height of a tile for pictures of a size."""
    return WIDTH, max(2, 2 * round(Fraction(height * WIDTH, width) / 2))


def webvtt(some: Sequence[Tile], size: tuple[int, int], duration: Fraction) -> str:
    """Which part of which sheet to show when, for players that read thumbnails as WebVTT."""
    ends = [*(m.ms for m in some[1:]), int(duration * 1000)]
    return "WEBVTT\n\n" + "".join(_cue(n, m.ms, end, size) for n, (m, end) in enumerate(zip(some, ends, strict=False)))


def _cue(number: int, start: int, end: int, size: tuple[int, int]) -> str:
    sheet, n = divmod(number, COLUMNS * ROWS)
    y, x = divmod(n, COLUMNS)
    place = f"{x * size[0]},{y * size[1]},{size[0]},{size[1]}"
    folder = FOLDER.replace(" ", "%20")
    return f"{timestamp(start)} --> {timestamp(end)}\n{folder}/{sheet}.jpg#xywh={place}\n\n"


def _thumbnail(jpeg: bytes, size: tuple[int, int]) -> Picture:
    width, height = size
    rgb = simplejpeg.decode_jpeg(jpeg, "RGB", min_width=width, min_height=height, strict=False)
    frame = av.VideoFrame.from_ndarray(rgb, format="rgb24")
    return frame.reformat(width, height, interpolation=AREA).to_ndarray().astype(np.uint8, copy=False)


def choose_poster(indexes: Sequence[PackIndex]) -> tuple[int, PackedFrame] | None:
    """Which pack and which of its frames to show: neither black nor washed out nor blurred, and not the very first."""
    frames = [(pack, kept) for pack, index in enumerate(indexes) for kept in index.frames]
    if not frames:
        return None
    first, last = frames[0][1].us, frames[-1][1].us
    return max(frames, key=lambda f: (_score(f[1], first, last), -f[1].us))


def _score(kept: PackedFrame, first: int, last: int) -> float:
    lit = 1.0 if 40 <= kept.light <= 215 else min(kept.light, 255 - kept.light) / 40 * 0.5
    place = (kept.us - first) / max(1, last - first)
    early = 1.0 if 0.05 <= place <= 0.7 else 0.6  # titles and credits lie at the ends
    return round(lit * early * min(kept.sharp, 1200), 6)  # beyond that, sharp is noise
