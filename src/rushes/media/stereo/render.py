"""Renders a chunk in 3D frame by frame and encodes it; the pixels do not depend on the grid of chunks."""

from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import av
from av.packet import Packet
from av.video.frame import PictureType
from av.video.stream import VideoStream

from rushes.domain.span import Span
from rushes.domain.video import VideoTrack
from rushes.media.encoders import x264_options, x264_stream
from rushes.media.open import create_file
from rushes.media.reading.scaling import Scaler, plane_rows
from rushes.media.stereo.depth import Grade, TemporalDepth
from rushes.media.stereo.frame_packing import FramePacker
from rushes.media.stereo.warp import SubpixelPicture, disparity_of
from rushes.media.timeline import timescale

_MAX_GOP = 60  # frames: people seek


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


class StereoWriter:
    """A sink that renders and encodes frames."""

    def __init__(
        self, path: Path, track: VideoTrack, span: Span, renderer: Renderer, packer: FramePacker, crf: int
    ) -> None:
        self._track, self._span, self._renderer = track, span, renderer
        self._scale = timescale(track.base)
        arrangement = packer.packing.packing
        params = "cpu-independent=1" + (f":frame-packing={arrangement}" if arrangement is not None else "")
        self._options = x264_options(crf) | {"g": str(_MAX_GOP), "x264-params": params}
        self._out = create_file(path, {"video_track_timescale": str(self._scale)})
        self._stream: VideoStream | None = None
        self.frames = 0

    def add(self, pts: int, frame: av.VideoFrame) -> None:
        """Take the next frame."""
        picture = self._renderer.render(pts, frame)
        if self._stream is None:
            self._stream = x264_stream(self._out, self._track, picture, self._scale, self._options)
        picture.pts = int((pts - self._span.start) * self._track.base * self._scale)
        picture.time_base, picture.pict_type = Fraction(1, self._scale), PictureType.NONE
        self.frames += 1
        self._mux(self._stream.encode(picture))

    def finish(self) -> None:
        """Finish the file."""
        if self._stream is not None:
            self._mux(self._stream.encode(None))
        self._out.close()

    def close(self) -> None:
        """Close the file, finished or not."""
        self._out.close()

    def _mux(self, packets: "list[Packet[VideoStream]]") -> None:
        for packet in packets:
            self._out.mux(packet)
