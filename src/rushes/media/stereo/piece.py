"""The part of a 3D film that one chunk makes: H.264 that joins with its neighbours', times from the chunk's start."""

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
from rushes.media.stereo.render import Renderer
from rushes.media.stereo.view import View
from rushes.media.timeline import timescale

_KEY_FRAMES = 60  # at most so many frames apart: people seek


class StereoPiece:
    """Renders and encodes the frames of a chunk as they come by."""

    def __init__(self, path: Path, track: VideoTrack, span: Span, renderer: Renderer, view: View, crf: int) -> None:
        self._track, self._span, self._renderer, self._view = track, span, renderer, view
        self._scale = timescale(track.base)
        self._options = x264_options(crf) | {"g": str(_KEY_FRAMES), "x264-params": _params(view)}
        self._out = create_file(path, {"video_track_timescale": str(self._scale)})
        self._stream: VideoStream | None = None
        self.frames = 0

    def see(self, pts: int, frame: av.VideoFrame) -> None:
        """Take the next frame."""
        picture = self._renderer.rendered(pts, frame)
        if self._stream is None:
            self._stream = x264_stream(self._out, self._track, picture, self._scale, self._options)
        picture.pts = int((pts - self._span.start) * self._track.base * self._scale)
        picture.time_base, picture.pict_type = Fraction(1, self._scale), PictureType.NONE
        self.frames += 1
        self._mux(self._stream.encode(picture))

    def close(self) -> None:
        """Finish the file."""
        if self._stream is not None:
            self._mux(self._stream.encode(None))
        self._out.close()

    def let_go(self) -> None:
        """Close the file as it is."""
        self._out.close()

    def _mux(self, packets: "list[Packet[VideoStream]]") -> None:
        for packet in packets:
            self._out.mux(packet)


def _params(view: View) -> str:
    packing = view.look.packing
    return "cpu-independent=1" + (f":frame-packing={packing}" if packing is not None else "")
