"""Frame packing: two views in one picture, side by side, top and bottom, or as an anaglyph."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import av
import numpy as np
from av.video.reformatter import VideoReformatter
from numpy.typing import NDArray

from rushes.domain.errors import NeverWorks
from rushes.domain.keys import JSON
from rushes.domain.video import VideoTrack
from rushes.media.reading.scaling import BICUBIC, NEAREST, Size, display_size, plane_rows
from rushes.media.stereo.warp import Planes

Matrix = tuple[tuple[int, int, int], ...]  # rows of weights of red, green and blue, in 1/1000


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
_NONE = (0, 0, 0)
_LUMA = (299, 587, 114)
_RIGHT_COLOUR: Matrix = (_NONE, (0, 1000, 0), (0, 0, 1000))
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

    @staticmethod
    def of(options: Mapping[str, JSON], track: VideoTrack) -> "FramePacker":
        """The packer of a stage, by its options `format` and `height`."""
        return FramePacker(parse_format(str(options["format"])), display_size(track, int(options["height"])))

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
        both = [
            s.reformat(eye, format="rgb24", interpolation=NEAREST, threads=1)
            for s, eye in zip(self._scalers, (left, right), strict=True)
        ]
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
