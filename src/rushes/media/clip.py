"""Exact clips: the frames with start <= time < end and the sound to the sample, from the original, times from zero."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import av
from av.audio.stream import AudioStream
from av.container import OutputContainer
from av.packet import Packet
from av.video.frame import PictureType
from av.video.stream import VideoStream

from rushes.domain.errors import BadMedia
from rushes.domain.span import Span, clock, rescale_up
from rushes.domain.video import AudioTrack, Footage, VideoFacts, VideoTrack
from rushes.media.encoders import AAC_FRAME, aac_shape, aac_stream, x264_options, x264_stream
from rushes.media.frames import decode
from rushes.media.line import Line
from rushes.media.open import create_file
from rushes.media.picture import Scaler, shown_size
from rushes.media.resampled import Resampled
from rushes.media.timeline import timescale

_CRF = 20
_KEY_FRAMES = 60  # at most so many frames apart: people seek in clips
_TALLEST = 2160


@dataclass(frozen=True, slots=True)
class ClipFacts:
    """What was cut: media time of its first moment and of its end, in seconds, and how many frames it has."""

    start: Fraction
    end: Fraction
    frames: int


def clip(
    path: Footage, facts: VideoFacts, start: Fraction, end: Fraction, out: Path, on_progress: Callable[[float], None]
) -> ClipFacts:
    """Cut a part of the film, given in seconds of media time; what lies outside the film is left out.

    Raises:
        BadMedia: there is nothing between the two moments.
    """
    track, sound = facts.video, facts.sound
    whole = [(t.start * t.base, t.end * t.base) for t in (track, sound) if t is not None]
    start, end = max(start, min(a for a, _ in whole)), min(end, max(b for _, b in whole))
    if start >= end:
        raise BadMedia("the clip lies outside the film", "Choose a start and an end within it.")
    with create_file(out, {"movflags": "+faststart"}) as container:
        if track is None:
            assert sound is not None
            _Sound(container, path, sound, start, end).finish()
            return ClipFacts(start, end, 0)
        return _Cut(container, path, facts, track, sound).made(start, end, on_progress)


class _Cut:
    """One clip with pictures being written."""

    def __init__(
        self, out: OutputContainer, path: Footage, facts: VideoFacts, track: VideoTrack, sound: AudioTrack | None
    ) -> None:
        self._out, self._path, self._facts, self._track, self._sound_track = out, path, facts, track, sound
        self._scaler = Scaler(track, shown_size(track, _TALLEST), "yuv420p")
        self._scale = timescale(track.base)
        self._stream: VideoStream | None = None
        self._sound: _Sound | None = None
        self._waiting: Packet[VideoStream] | None = None
        self._lead = 0

    def made(self, start: Fraction, end: Fraction, on_progress: Callable[[float], None]) -> ClipFacts:
        """Write it all."""
        base = self._track.base
        end_tick = min(rescale_up(end, base), self._track.end)
        span = Span(max(rescale_up(start, base), self._track.start), end_tick, base)
        first, count = 0, 0
        for frame in decode(self._path, self._facts, span) if span.start < span.end else ():
            pts = frame.pts or 0
            first = pts if not count else first
            self._add(frame, pts, first, end_tick)
            count += 1
            on_progress((pts - span.start) / (span.end - span.start))
        if not count:
            raise BadMedia(f"there is no picture between {_said(start)} and {_said(end)}", "Choose a longer range.")
        self._finish((end_tick - first) * base)
        return ClipFacts(first * base, end_tick * base, count)

    def _add(self, frame: av.VideoFrame, pts: int, first: int, end: int) -> None:
        picture = self._scaler.scaled(frame)
        if self._stream is None:
            self._begin(picture, first, end)
        assert self._stream is not None
        now = (pts - first) * self._track.base
        picture.pts, picture.time_base = int(now * self._scale), Fraction(1, self._scale)
        picture.pict_type = PictureType.NONE
        self._mux(self._stream.encode(picture))
        if self._sound:
            self._sound.up_to(now)

    def _begin(self, picture: av.VideoFrame, first: int, end: int) -> None:
        options = x264_options(_CRF) | {"g": str(_KEY_FRAMES), "x264-params": "cpu-independent=1"}
        self._stream = x264_stream(self._out, self._track, picture, self._scale, options)
        if self._sound_track:
            base = self._track.base
            self._sound = _Sound(self._out, self._path, self._sound_track, first * base, end * base)

    def _mux(self, packets: "list[Packet[VideoStream]]") -> None:
        for packet in packets:
            if self._waiting is None:
                self._lead = packet.dts or 0
            else:
                self._out.mux(self._waiting)
            self._waiting = packet

    def _finish(self, length: Fraction) -> None:
        assert self._stream is not None
        self._mux(self._stream.encode(None))
        last = self._waiting
        assert last is not None
        last.duration = max(1, int(length * self._scale) + self._lead - (last.dts or 0))  # else it would be guessed
        self._out.mux(last)
        if self._sound:
            self._sound.finish()


class _Sound:
    """The sound of a clip, encoded as far as the pictures are."""

    def __init__(self, out: OutputContainer, path: Footage, track: AudioTrack, begin: Fraction, end: Fraction) -> None:
        self._out = out
        layout, self._rate = aac_shape(track)
        self._stream: AudioStream = aac_stream(out, layout, self._rate)
        self._resampled = Resampled("fltp", layout, self._rate, AAC_FRAME)
        self._frames: Iterator[av.AudioFrame] = Line(path, track, begin, end).frames()
        self._given = 0

    def up_to(self, seconds: Fraction) -> None:
        """Encode until that moment of the clip, or to the end of the sound."""
        while self._given < seconds * self._rate:
            frame = next(self._frames, None)
            if frame is None:
                return
            self._encode(self._resampled.given(frame))

    def finish(self) -> None:
        """Encode the rest."""
        for frame in self._frames:
            self._encode(self._resampled.given(frame))
        self._encode(self._resampled.given(None))
        if self._given:
            self._out.mux(self._stream.encode(None))

    def _encode(self, frames: list[av.AudioFrame]) -> None:
        for frame in frames:
            frame.pts, frame.time_base = self._given, Fraction(1, self._rate)
            self._given += frame.samples
            self._out.mux(self._stream.encode(frame))


def _said(seconds: Fraction) -> str:
    return clock(int(seconds * 1_000_000))
