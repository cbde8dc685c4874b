"""Two views in one picture: side by side, one above the other, or both in colours for red and cyan glasses."""

from dataclasses import dataclass
from enum import StrEnum

import av
import numpy as np
from av.video.reformatter import VideoReformatter
from numpy.typing import NDArray

from rushes.domain.errors import NeverWorks
from rushes.media.reading.picture import AS_IS, SMOOTH, Size, lines
from rushes.media.stereo.warp import Planes

Matrix = tuple[tuple[int, int, int], ...]  # rows of what red, green and blue give, in 1/1000


class Format(StrEnum):
    """How both views are put together."""

    HALF_SBS = "half-sbs"
    FULL_SBS = "full-sbs"
    HALF_TB = "half-tb"
    FULL_TB = "full-tb"
    COLOUR = "anaglyph-colour"
    HALF_COLOUR = "anaglyph-half-colour"
    DUBOIS = "anaglyph-dubois"
    GREY = "anaglyph-grey"


SHORT = {"sbs": Format.HALF_SBS, "tb": Format.HALF_TB, "anaglyph": Format.DUBOIS}


@dataclass(frozen=True, slots=True)
class Look:
    """What a format means: how many views lie beside and above each other, and in which share of their size."""

    across: int = 1
    down: int = 1
    squeezed: bool = False
    packing: int | None = None  # as H.264 says it in every key frame
    layout: str = ""  # as the container says it
    name: str = ""  # as players read it in the name of a file


LOOKS = {
    Format.HALF_SBS: Look(2, 1, squeezed=True, packing=3, layout="left_right", name="3D.HSBS"),
    Format.FULL_SBS: Look(2, 1, packing=3, layout="left_right", name="3D.FSBS"),
    Format.HALF_TB: Look(1, 2, squeezed=True, packing=4, layout="top_bottom", name="3D.HTAB"),
    Format.FULL_TB: Look(1, 2, packing=4, layout="top_bottom", name="3D.FTAB"),
    Format.COLOUR: Look(name="anaglyph-colour"),
    Format.HALF_COLOUR: Look(name="anaglyph-half-colour"),
    Format.DUBOIS: Look(name="anaglyph"),
    Format.GREY: Look(name="anaglyph-grey"),
}
_NONE = (0, 0, 0)
_LIGHT = (299, 587, 114)
_RIGHT_COLOUR: Matrix = (_NONE, (0, 1000, 0), (0, 0, 1000))
# What of the left view and of the right one makes red, green and blue; Dubois' by least squares for common glasses.
_MIXES: dict[Format, tuple[Matrix, Matrix]] = {
    Format.COLOUR: (((1000, 0, 0), _NONE, _NONE), _RIGHT_COLOUR),
    Format.HALF_COLOUR: ((_LIGHT, _NONE, _NONE), _RIGHT_COLOUR),
    Format.GREY: ((_LIGHT, _NONE, _NONE), (_NONE, _LIGHT, _LIGHT)),
    Format.DUBOIS: (
        ((456, 500, 176), (-40, -38, -16), (-15, -21, -5)),
        ((-43, -88, -2), (378, 734, -18), (-72, -113, 1226)),
    ),
}


def format_of(name: str) -> Format:
    """A format by its name or a short one.

    Raises:
        NeverWorks: there is none.
    """
    try:
        return SHORT.get(name) or Format(name)
    except ValueError as e:
        raise NeverWorks(f"unknown 3D format {name!r}", f"Choose from: {', '.join((*SHORT, *Format))}") from e


class View:
    """Puts what both eyes see into pictures of one format."""

    def __init__(self, format: Format, size: Size) -> None:
        self.format, self.look = format, LOOKS[format]
        self.eye = _whole(size[0], self.look.across), _whole(size[1], self.look.down)
        self._small = VideoReformatter(), VideoReformatter()
        self._back = VideoReformatter()

    def packed(self, left: Planes, right: Planes, like: av.VideoFrame) -> av.VideoFrame:
        """Both views in one picture, in the colours of the picture that they were made of."""
        eyes = [_framed(planes, like) for planes in (left, right)]
        if self.format in _MIXES:
            return self._mixed(eyes[0], eyes[1], like)
        if self.look.squeezed:
            size = self.eye[0] // self.look.across, self.eye[1] // self.look.down
            scalers = zip(self._small, eyes, strict=True)
            eyes = [s.reformat(eye, *size, "yuv420p", interpolation=SMOOTH, threads=1) for s, eye in scalers]
        parts = [[lines(eye, plane) for eye in eyes] for plane in range(3)]
        y, u, v = (np.concatenate(both, axis=self.look.across - 1) for both in parts)
        return _framed((y, u, v), like)

    def _mixed(self, left: av.VideoFrame, right: av.VideoFrame, like: av.VideoFrame) -> av.VideoFrame:
        both = [
            s.reformat(eye, format="rgb24", interpolation=AS_IS, threads=1)
            for s, eye in zip(self._small, (left, right), strict=True)
        ]
        mixed = np.zeros((self.eye[1], self.eye[0], 3), np.int32)
        for eye, matrix in zip(both, _MIXES[self.format], strict=True):
            _add(mixed, eye.to_ndarray().astype(np.uint8, copy=False), matrix)
        rgb = np.clip((mixed + 500) // 1000, 0, 255).astype(np.uint8)
        frame = av.VideoFrame.from_ndarray(rgb, format="rgb24")
        made = self._back.reformat(
            frame, format="yuv420p", interpolation=SMOOTH, threads=1, dst_colorspace=like.colorspace, dst_color_range=1
        )
        return _coloured(made, like)


def _whole(length: int, views: int) -> int:
    """A side that can be halved and still has whole pixels of colour."""
    return length if views == 1 else max(4, 4 * round(length / 4))


def _add(mixed: NDArray[np.int32], picture: NDArray[np.uint8], matrix: Matrix) -> None:
    for to, row in enumerate(matrix):
        for source, share in enumerate(row):
            if share:
                mixed[:, :, to] += picture[:, :, source].astype(np.int32) * share


def _framed(planes: Planes, like: av.VideoFrame) -> av.VideoFrame:
    height, width = planes[0].shape
    data = np.concatenate([plane.reshape(-1) for plane in planes]).reshape(height * 3 // 2, width)
    return _coloured(av.VideoFrame.from_ndarray(data, format="yuv420p"), like)


def _coloured(frame: av.VideoFrame, like: av.VideoFrame) -> av.VideoFrame:
    frame.colorspace, frame.color_range = like.colorspace, like.color_range
    frame.color_trc, frame.color_primaries = like.color_trc, like.color_primaries
    return frame
