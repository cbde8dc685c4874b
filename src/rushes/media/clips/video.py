"""The video of a clip: one muxer for encoded and copied packets, with the audio alongside."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import av
from av.container import OutputContainer
from av.packet import Packet
from av.video.frame import PictureType
from av.video.stream import VideoStream

from rushes.domain.errors import BadMedia
from rushes.domain.span import Span
from rushes.domain.video import Footage, VideoFacts, VideoTrack
from rushes.media.clips.audio import ClipAudio
from rushes.media.encoders import x264_options, x264_stream
from rushes.media.reading.frames import decode, frame_at, has_frames
from rushes.media.reading.scaling import Scaler, display_size
from rushes.media.timeline import timescale

CRF = 20
_MAX_GOP = 60  # frames: people seek in clips
_MAX_HEIGHT = 2160


@dataclass(frozen=True, slots=True)
class ClipWork:
    """What to cut and where to write it; `audio` is called with the start of the clip once that is known."""

    out: OutputContainer
    path: Footage
    facts: VideoFacts
    track: VideoTrack
    span: Span
    audio: Callable[[int], ClipAudio | None]
    on_progress: Callable[[float], None]
    hidden: list[int]  # pts of frames that could not be decoded

    @property
    def scale(self) -> int:
        """Ticks per second of the clip."""
        return timescale(self.track.base)

    def ticks(self, pts: int) -> int:
        """Ticks of the film as ticks of the clip."""
        return int(pts * self.track.base * self.scale)


class VideoMuxer:
    """Muxes the video; the last frame lasts until the end of the clip."""

    def __init__(self, work: ClipWork, zero: int) -> None:
        self.zero = zero
        self._work = work
        self._audio = work.audio(zero)
        self._last: Packet[Any] | None = None
        self._lead = 0

    def mux(self, packet: "Packet[Any]") -> None:
        """Take the next packet in the order of decoding."""
        if self._last is None:
            self._lead = packet.dts or 0
        else:
            self._work.out.mux(self._last)
        self._last = packet

    def reached(self, pts: int) -> None:
        """Encode the audio up to a frame."""
        span = self._work.span
        self._work.on_progress((pts - span.start) / (span.end - span.start))
        if self._audio:
            self._audio.up_to((pts - self.zero) * span.base)

    def finish(self) -> None:
        """Write the last packet and the rest of the audio."""
        last = self._last
        assert last is not None
        length = self._work.ticks(self._work.span.end - self.zero)
        last.duration = max(1, length + self._lead - (last.dts or 0))
        self._work.out.mux(last)
        if self._audio:
            self._audio.finish()


class FullEncoder:
    """A clip of which every frame is encoded, upright and with square pixels."""

    def __init__(self, work: ClipWork) -> None:
        self._work = work
        self._scaler = Scaler(work.track, display_size(work.track, _MAX_HEIGHT), "yuv420p")
        self._stream: VideoStream | None = None
        self._muxer: VideoMuxer | None = None
        self._count = 0

    def write(self) -> tuple[int, int]:
        """Write the clip; returns its start in ticks of the film and its number of frames."""
        work = self._work
        try:
            for frame in decode(work.path, work.facts, work.span, on_damage=work.hidden.append):
                self._add(frame, frame.pts or 0)
        except BadMedia:
            if self._count or has_frames(work.path, work.track, work.span):
                raise
            self._add(frame_at(work.path, work.facts, work.span.start), work.span.start)
        assert self._stream
        assert self._muxer
        for packet in self._stream.encode(None):
            self._muxer.mux(packet)
        self._muxer.finish()
        return self._muxer.zero, self._count

    def _add(self, frame: av.VideoFrame, pts: int) -> None:
        picture = self._scaler.scale(frame)
        if self._stream is None or self._muxer is None:
            options = x264_options(CRF) | {"g": str(_MAX_GOP), "x264-params": "cpu-independent=1"}
            self._stream = x264_stream(self._work.out, self._work.track, picture, self._work.scale, options)
            self._muxer = VideoMuxer(self._work, pts)
        now = self._work.ticks(pts - self._muxer.zero)
        picture.pts, picture.time_base = now, Fraction(1, self._work.scale)
        picture.pict_type = PictureType.NONE
        for packet in self._stream.encode(picture):
            self._muxer.mux(packet)
        self._muxer.reached(pts)
        self._count += 1
