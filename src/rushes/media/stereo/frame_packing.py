"""Frame packing: two views in one picture, side by side, top and bottom, or as an anaglyph, and their subtitles."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import av
import numpy as np
from av.video.reformatter import VideoReformatter
from numpy.typing import NDArray

from rushes.domain.errors import NeverWorks
from rushes.media.reading.scaling import BICUBIC, NEAREST, Size, plane_rows
from rushes.media.stereo.warp import Planes
from rushes.media.subtitles import Cue

Matrix = tuple[tuple[int, int, int], ...]  # rows of weights of red, green and blue, in 1/1000
_NONE = (0, 0, 0)
_LUMA = (299, 587, 114)
_RIGHT_COLOUR: Matrix = (_NONE, (0, 1000, 0), (0, 0, 1000))
_WIDTH, _HEIGHT = 1920, 1080  # of the canvas, which players scale
_SIZE, _MARGIN = 64, 60
_HEAD = """[Script Info]
ScriptType: v4.00+
PlayResX: {width}
PlayResY: {height}
WrapStyle: 2

[V4+ Styles]
Format: Name, Fontname, Fontsize, PrimaryColour, OutlineColour, BackColour, Bold, BorderStyle, Outline, Shadow, \
ScaleX, ScaleY, Alignment, MarginL, MarginR, MarginV
Style: Eye,Sans,{size},&H00FFFFFF,&H00000000,&H00000000,0,1,3,0,{wide},{high},2,0,0,0

[Events]
Format: Layer, Start, End, Style, Text
"""


class StereoFormat(StrEnum):
    """How both views are packed."""

    HALF_SBS = "half-sbs"
    FULL_SBS = "full-sbs"
    HALF_TB = "half-tb"
    FULL_TB = "full-tb"
    COLOUR = "anaglyph-colour"
    HALF_COLOUR = "anaglyph-half-colour"
    DUBOIS = "anaglyph-dubois"
    GREY = "anaglyph-grey"


SHORT_NAMES = {"sbs": StereoFormat.HALF_SBS, "tb": StereoFormat.HALF_TB, "anaglyph": StereoFormat.DUBOIS}


@dataclass(frozen=True, slots=True)
class Packing:
    """A format: how many views lie side by side and one above the other, and whether at half size."""

    across: int = 1
    down: int = 1
    squeezed: bool = False
    packing: int | None = None  # frame_packing_arrangement_type in the SEI of H.264
    layout: str = ""  # stereo mode of the container
    name: str = ""  # what players read in a file name


PACKINGS = {
    StereoFormat.HALF_SBS: Packing(2, 1, squeezed=True, packing=3, layout="left_right", name="3D.HSBS"),
    StereoFormat.FULL_SBS: Packing(2, 1, packing=3, layout="left_right", name="3D.FSBS"),
    StereoFormat.HALF_TB: Packing(1, 2, squeezed=True, packing=4, layout="top_bottom", name="3D.HTAB"),
    StereoFormat.FULL_TB: Packing(1, 2, packing=4, layout="top_bottom", name="3D.FTAB"),
    StereoFormat.COLOUR: Packing(name="anaglyph-colour"),
    StereoFormat.HALF_COLOUR: Packing(name="anaglyph-half-colour"),
    StereoFormat.DUBOIS: Packing(name="anaglyph"),
    StereoFormat.GREY: Packing(name="anaglyph-grey"),
}
# Red, green and blue from the left and from the right view; Dubois' are least squares for common glasses.
_ANAGLYPH_MATRICES: dict[StereoFormat, tuple[Matrix, Matrix]] = {
    StereoFormat.COLOUR: (((1000, 0, 0), _NONE, _NONE), _RIGHT_COLOUR),
    StereoFormat.HALF_COLOUR: ((_LUMA, _NONE, _NONE), _RIGHT_COLOUR),
    StereoFormat.GREY: ((_LUMA, _NONE, _NONE), (_NONE, _LUMA, _LUMA)),
    StereoFormat.DUBOIS: (
        ((456, 500, 176), (-40, -38, -16), (-15, -21, -5)),
        ((-43, -88, -2), (378, 734, -18), (-72, -113, 1226)),
    ),
}


def parse_format(name: str) -> StereoFormat:
    """A format by its name or short name. Raises NeverWorks if it is unknown."""
    try:
        return SHORT_NAMES.get(name) or StereoFormat(name)
    except ValueError as e:
        names = ", ".join((*SHORT_NAMES, *StereoFormat))
        raise NeverWorks(f"unknown 3D format {name!r}", f"Choose from: {names}") from e


class FramePacker:
    """Packs both views into pictures of one format."""

    def __init__(self, format: StereoFormat, size: Size) -> None:
        self.format, self.packing = format, PACKINGS[format]
        self.eye = _whole_chroma(size[0], self.packing.across), _whole_chroma(size[1], self.packing.down)
        self._scalers = VideoReformatter(), VideoReformatter()
        self._to_yuv = VideoReformatter()

    def pack(self, left: Planes, right: Planes, like: av.VideoFrame) -> av.VideoFrame:
        """Both views in one picture, with the colour tags of the original."""
        eyes = [_to_frame(planes, like) for planes in (left, right)]
        if self.format in _ANAGLYPH_MATRICES:
            return self._anaglyph(eyes[0], eyes[1], like)
        if self.packing.squeezed:
            size = self.eye[0] // self.packing.across, self.eye[1] // self.packing.down
            scalers = zip(self._scalers, eyes, strict=True)
            eyes = [s.reformat(eye, *size, "yuv420p", interpolation=BICUBIC, threads=1) for s, eye in scalers]
        parts = [[plane_rows(eye, plane) for eye in eyes] for plane in range(3)]
        y, u, v = (np.concatenate(both, axis=self.packing.across - 1) for both in parts)
        return _to_frame((y, u, v), like)

    def _anaglyph(self, left: av.VideoFrame, right: av.VideoFrame, like: av.VideoFrame) -> av.VideoFrame:
        eyes = zip(self._scalers, (left, right), strict=True)
        both = [s.reformat(eye, format="rgb24", interpolation=NEAREST, threads=1) for s, eye in eyes]
        mixed = np.zeros((self.eye[1], self.eye[0], 3), np.int32)
        for eye, matrix in zip(both, _ANAGLYPH_MATRICES[self.format], strict=True):
            _add_mixed(mixed, eye.to_ndarray().astype(np.uint8, copy=False), matrix)
        rgb = np.clip((mixed + 500) // 1000, 0, 255).astype(np.uint8)
        frame = av.VideoFrame.from_ndarray(rgb, format="rgb24")
        made = self._to_yuv.reformat(
            frame, format="yuv420p", interpolation=BICUBIC, threads=1, dst_colorspace=like.colorspace, dst_color_range=1
        )
        return _copy_colour_tags(made, like)


def _whole_chroma(length: int, views: int) -> int:
    """A side that still has whole chroma pixels when halved."""
    return length if views == 1 else max(4, 4 * round(length / 4))


def _add_mixed(mixed: NDArray[np.int32], picture: NDArray[np.uint8], matrix: Matrix) -> None:
    for to, row in enumerate(matrix):
        for source, share in enumerate(row):
            if share:
                mixed[:, :, to] += picture[:, :, source].astype(np.int32) * share


def _to_frame(planes: Planes, like: av.VideoFrame) -> av.VideoFrame:
    height, width = planes[0].shape
    data = np.concatenate([plane.reshape(-1) for plane in planes]).reshape(height * 3 // 2, width)
    return _copy_colour_tags(av.VideoFrame.from_ndarray(data, format="yuv420p"), like)


def _copy_colour_tags(frame: av.VideoFrame, like: av.VideoFrame) -> av.VideoFrame:
    frame.colorspace, frame.color_range = like.colorspace, like.color_range
    frame.color_trc, frame.color_primaries = like.color_trc, like.color_primaries
    return frame


def ass(cues: Sequence[Cue], packing: Packing) -> str:
    """Cues in Advanced SubStation Alpha form, at the bottom centre of each view."""
    wide, high = (100 // n if packing.squeezed else 100 for n in (packing.across, packing.down))
    full = ((_WIDTH, packing.across), (_HEIGHT, packing.down))
    width, height = (side * (1 if packing.squeezed else n) for side, n in full)
    head = _HEAD.format(width=width, height=height, size=_SIZE, wide=wide, high=high)
    return head + "".join(_dialogue(cue, x, y) for cue in cues for x, y in _positions(packing, width, height))


def _positions(packing: Packing, width: int, height: int) -> list[tuple[int, int]]:
    across, down = width // packing.across, height // packing.down
    low = down - _MARGIN * down // _HEIGHT
    return [(across * x + across // 2, down * y + low) for y in range(packing.down) for x in range(packing.across)]


def _dialogue(cue: Cue, x: int, y: int) -> str:
    text = "\\N".join(line.replace("\\", "/").replace("{", "(").replace("}", ")") for line in cue.lines)
    return f"Dialogue: 0,{_time(cue.start)},{_time(cue.end)},Eye,{{\\pos({x},{y})}}{text}\n"


def _time(ms: int) -> str:
    seconds, hundredths = divmod(max(0, ms) // 10, 100)
    minutes, seconds = divmod(seconds, 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}.{hundredths:02d}"
