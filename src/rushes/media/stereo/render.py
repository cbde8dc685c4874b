"""Renders 3D frame by frame; the pixels do not depend on the grid of chunks."""

from bisect import bisect_right
from collections.abc import Sequence

import av

from rushes.domain.video import VideoTrack
from rushes.media.reading.scaling import Scaler, plane_rows
from rushes.media.stereo.disparity import disparity_of
from rushes.media.stereo.frame_packing import FramePacker
from rushes.media.stereo.grade import Grade
from rushes.media.stereo.temporal_depth import TemporalDepth
from rushes.media.stereo.warp import SubpixelPicture


class Renderer:
    """Renders each frame with its depth as a picture for both eyes."""

    def __init__(self, track: VideoTrack, packer: FramePacker, depth: TemporalDepth, grades: Sequence[Grade]) -> None:
        self._scaler = Scaler(track, packer.eye, "yuv420p")
        self._packer, self._depth, self._grades = packer, depth, grades
        self._starts = [grade.start for grade in grades]

    def render(self, pts: int, frame: av.VideoFrame) -> av.VideoFrame:
        """The picture for both eyes."""
        grade = self._grades[max(0, bisect_right(self._starts, pts) - 1)]
        flat = self._scaler.scale(frame)
        planes = plane_rows(flat, 0), plane_rows(flat, 1), plane_rows(flat, 2)
        disparity = disparity_of(self._depth.at(pts, grade), planes[0], grade)
        picture = SubpixelPicture.of(planes)
        return self._packer.pack(picture.warp(disparity, left=True), picture.warp(disparity, left=False), flat)
