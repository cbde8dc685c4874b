"""A film frame by frame in 3D: the same pixels however it is cut into chunks."""

from bisect import bisect_right
from collections.abc import Sequence

import av

from rushes.domain.video import VideoTrack
from rushes.media.reading.picture import Scaler, lines
from rushes.media.stereo.depth_time import DepthInTime
from rushes.media.stereo.grade import Grade
from rushes.media.stereo.shift import shift_of
from rushes.media.stereo.view import View
from rushes.media.stereo.warp import Fine


class Renderer:
    """Makes of each frame, and of what is known of its depth, a picture for both eyes."""

    def __init__(self, track: VideoTrack, view: View, depth: DepthInTime, grades: Sequence[Grade]) -> None:
        self._scaler = Scaler(track, view.eye, "yuv420p")
        self._view, self._depth, self._grades = view, depth, grades
        self._starts = [grade.start for grade in grades]

    def rendered(self, pts: int, frame: av.VideoFrame) -> av.VideoFrame:
        """The picture for both eyes."""
        grade = self._grades[max(0, bisect_right(self._starts, pts) - 1)]
        flat = self._scaler.scaled(frame)
        planes = lines(flat, 0), lines(flat, 1), lines(flat, 2)
        shift = shift_of(self._depth.at(pts, grade), planes[0], grade)
        fine = Fine.of(planes)
        return self._view.packed(fine.seen(shift, left=True), fine.seen(shift, left=False), flat)
