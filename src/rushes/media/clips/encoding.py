"""The pictures and the sound of a clip as they are written, on one timeline."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from typing import Any

import av
from av.container import OutputContainer
from av.packet import Packet
from av.video.frame import PictureType
from av.video.stream import VideoStream

from rushes.domain.errors import BadMedia
from rushes.domain.span import Span
from rushes.domain.video import AudioTrack, Footage, VideoFacts, VideoTrack
from rushes.media.encoders import AacEncoder, x264_options, x264_stream
from rushes.media.reading.audio import SampleTimeline
from rushes.media.reading.frames import decode, frame_at, has_frames
from rushes.media.reading.scaling import Scaler, display_size
from rushes.media.timeline import timescale

CRF = 20
_MAX_GOP = 60  # at most so many frames apart: people seek in clips
_MAX_HEIGHT = 2160


class ClipAudio:
    """One track of sound being written."""

    def __init__(self, out: OutputContainer, path: Footage, track: AudioTrack, begin: Fraction, end: Fraction) -> None:
        self._out, self._encoder = out, AacEncoder(out, track)
        self._frames: Iterator[av.AudioFrame] = SampleTimeline(path, track, begin, end).frames()

    def up_to(self, seconds: Fraction) -> None:
        """Encode until that moment of the clip, or to the end of the sound."""
        while self._encoder.samples < seconds * self._encoder.rate:
            frame = next(self._frames, None)
            if frame is None:
                return
            self._mux(frame)

    def finish(self) -> None:
        """Encode the rest."""
        for frame in chain(self._frames, [None]):
            self._mux(frame)

    def _mux(self, frame: av.AudioFrame | None) -> None:
        for packet in self._encoder.encode(frame):
            self._out.mux(packet)


@dataclass(frozen=True, slots=True)
class ClipWork:
    """What to cut and where to write it; `sound` is made when the clip's first moment is known."""

    out: OutputContainer
    path: Footage
    facts: VideoFacts
    track: VideoTrack
    span: Span
    sound: Callable[[int], ClipAudio | None]
    on_progress: Callable[[float], None]
    hidden: list[int]  # times of pictures that could not be decoded

    @property
    def scale(self) -> int:
        """Ticks per second of the clip."""
        return timescale(self.track.base)

    def ticks(self, pts: int) -> int:
        """Ticks of the film as ticks of the clip."""
        return int(pts * self.track.base * self.scale)


class VideoMuxer:
    """Pictures on their way into the file: the last one lasts until the clip ends, else that would be guessed."""

    def __init__(self, order: ClipWork, zero: int) -> None:
        self.zero = zero
        self._order = order
        self._sound = order.sound(zero)
        self._waiting: Packet[Any] | None = None
        self._lead = 0

    def mux(self, packet: "Packet[Any]") -> None:
        """Take the next packet in the order of decoding."""
        if self._waiting is None:
            self._lead = packet.dts or 0
        else:
            self._order.out.mux(self._waiting)
        self._waiting = packet

    def reached(self, pts: int) -> None:
        """Let the sound catch up with a picture."""
        span = self._order.span
        self._order.on_progress((pts - span.start) / (span.end - span.start))
        if self._sound:
            self._sound.up_to((pts - self.zero) * span.base)

    def finish(self) -> None:
        """Write what is left."""
        last = self._waiting
        assert last is not None
        length = self._order.ticks(self._order.span.end - self.zero)
        last.duration = max(1, length + self._lead - (last.dts or 0))
        self._order.out.mux(last)
        if self._sound:
            self._sound.finish()


class FullEncoder:
    """A clip whose pictures are all re-encoded, upright and with square pixels."""

    def __init__(self, order: ClipWork) -> None:
        self._order = order
        self._scaler = Scaler(order.track, display_size(order.track, _MAX_HEIGHT), "yuv420p")
        self._stream: VideoStream | None = None
        self._track: VideoMuxer | None = None
        self._count = 0

    def write(self) -> tuple[int, int]:
        """Write it all; its first moment in ticks of the film, and how many frames it has."""
        order = self._order
        try:
            for frame in decode(order.path, order.facts, order.span, on_damage=order.hidden.append):
                self._add(frame, frame.pts or 0)
        except BadMedia:
            if self._count or has_frames(order.path, order.track, order.span):
                raise
            self._add(frame_at(order.path, order.facts, order.span.start), order.span.start)
        assert self._stream
        assert self._track
        for packet in self._stream.encode(None):
            self._track.mux(packet)
        self._track.finish()
        return self._track.zero, self._count

    def _add(self, frame: av.VideoFrame, pts: int) -> None:
        picture = self._scaler.scale(frame)
        if self._stream is None or self._track is None:
            options = x264_options(CRF) | {"g": str(_MAX_GOP), "x264-params": "cpu-independent=1"}
            self._stream = x264_stream(self._order.out, self._order.track, picture, self._order.scale, options)
            self._track = VideoMuxer(self._order, pts)
        now = self._order.ticks(pts - self._track.zero)
        picture.pts, picture.time_base = now, Fraction(1, self._order.scale)
        picture.pict_type = PictureType.NONE
        for packet in self._stream.encode(picture):
            self._track.mux(packet)
        self._track.reached(pts)
        self._count += 1
