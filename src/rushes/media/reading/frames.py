"""Decoded frames of exactly one span: each with start <= pts < end, once, in order, or an error."""

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Protocol

import av
from av.container import InputContainer
from av.error import FFmpegError
from av.packet import Packet
from av.video.stream import VideoStream

from rushes.domain.errors import BadMedia
from rushes.domain.span import Span, clock, to_us
from rushes.domain.video import Footage, VideoFacts, VideoTrack
from rushes.media.open import check_pixels, open_footage, track_limits, video_stream

# In other codecs some packets show no frame (VP8 and VP9 alt-ref, packed B-frames).
_ONE_FRAME_PER_PACKET = frozenset(
    {"h264", "hevc", "av1", "mpeg1video", "mpeg2video", "mjpeg", "prores", "dnxhd", "ffv1"}
)
_MAX_LOST_SHARE = 10  # 1/10: a span that loses more is refused
_SEEK_BACK_SECONDS = (0, 1, 2, 4, 8, 16, 32, None)  # how far before the span to seek; None: to the beginning


Progress = Callable[[float], None]
Damage = Callable[[int], None]  # called with the pts of a frame that cannot be decoded


def decode(
    path: Footage, facts: VideoFacts, span: Span, threads: int = 1, on_damage: Damage | None = None
) -> Iterator[av.VideoFrame]:
    """The frames of a span; `threads` changes the speed, not the frames.

    With `on_damage`, frames that cannot be decoded are reported and concealed by the decoder, or left out.

    Raises:
        BadMedia: a frame is lost or has no pts, and probe did not mark the footage as damaged.
    """
    track = facts.video
    if track is None:
        return
    goal = max(span.start, track.start)
    progress = _Progress(strict=not track.damaged)
    for back in _SEEK_BACK_SECONDS if track.seekable else (None, None, None):
        decoding = _Decoding(path, track, span, threads, progress, on_damage)
        with closing(decoding.frames(goal, back)) as frames:
            first = next(frames, None)
            late = first is None or first.pts is None or first.pts > goal  # a seek may find no frame at all
            if late and back is not None:
                continue
            yield from decoding.inside(first, frames)
        if decoding.broken_at is None:
            decoding.check()
            return
        if progress.again and not decoding.may_conceal(decoding.broken_at):
            break
        progress.strict = not progress.again and not decoding.open_start
        progress.again = True
    decoding.refuse(decoding.broken_at or span.start, "cannot be decoded")


def has_frames(path: Footage, track: VideoTrack, span: Span) -> bool:
    """Whether a span has any frame, by its packets alone."""
    with open_footage(path) as container:
        stream = container.streams[track.index]
        if track.seekable:
            container.seek(span.start - int(2 / track.base), stream=stream, backward=True)
        return any(p.pts is not None and span.start <= p.pts < span.end for p in container.demux(stream))


def frame_at(path: Footage, facts: VideoFacts, pts: int) -> av.VideoFrame:
    """The frame on screen at a time: the last one before it. Raises BadMedia if there is none."""
    track = facts.video
    assert track is not None
    for seconds in (1, 8, 64, None):
        start = track.start if seconds is None else max(track.start, pts - int(seconds / track.base))
        span = Span(start, pts + 1, track.base)
        if has_frames(path, track, span):
            return deque(decode(path, facts, span), 1)[0]
    raise BadMedia(f"there is no frame at {clock(to_us(pts, track.base))}", "Choose a longer range.")


@dataclass(slots=True)
class _Progress:
    """What previous tries gave."""

    strict: bool  # errors of the decoder count; else it conceals them
    shown: int = 0
    last: int | None = None
    again: bool = False  # a try failed; the next begins at an earlier key frame


@dataclass(slots=True)
class _Decoding:
    """One try to decode a span."""

    path: Footage
    track: VideoTrack
    span: Span
    threads: int
    progress: _Progress
    on_damage: Damage | None = None
    sent: int = 0  # packets that must give frames of the span
    broken_at: int | None = None
    open_start: bool = False  # the file begins with frames whose references are missing

    def frames(self, goal: int, back: int | None) -> Generator[av.VideoFrame]:
        """All frames after a seek, up to the first that cannot be decoded."""
        with open_footage(self.path) as container:
            stream = self._stream(container)
            if back is not None:
                container.seek(goal - int(back / self.track.base), stream=stream, backward=True)
            for packet in container.demux(stream):
                self.sent += self._shows(packet)
                self.open_start |= not packet.is_discard and packet.pts is not None and packet.pts < self.track.start
                yield from self._decoded(packet)
                if self.broken_at is not None:
                    return

    def inside(self, first: av.VideoFrame | None, rest: Iterator[av.VideoFrame]) -> Iterator[av.VideoFrame]:
        """The frames of the span, in order, without those that a previous try gave."""
        frame, given, before, limits = first, self.progress.last, None, track_limits(self.track)
        while frame is not None and (frame.pts is None or frame.pts < self.span.end):
            pts = frame.pts  # sinks may change the frame
            if pts is None or (before is not None and pts <= before):
                self.refuse(before or self.span.start, "is followed by one without a timestamp")
            elif pts >= self.span.start and (given is None or pts > given):
                check_pixels(frame.width, frame.height, limits)
                self.progress.shown, self.progress.last = self.progress.shown + 1, pts
                yield frame
            if pts is not None:
                before = pts if before is None else max(before, pts)
            frame = next(rest, None)

    def check(self) -> None:
        """Raise if a frame is missing."""
        shown, hidden = self.progress.shown, self.on_damage is not None and not self.progress.strict
        if hidden and self.sent - shown <= max(1, self.sent // _MAX_LOST_SHARE):
            return
        countable = self.track.codec in _ONE_FRAME_PER_PACKET and not self.track.interlaced
        if countable and shown < self.sent:
            self.refuse(self.span.start, f"or one after it is lost: {shown} of {self.sent} frames could be decoded")
        if not shown and self.span.start < self.span.end:
            self.refuse(self.span.start, "cannot be found")

    def _stream(self, container: InputContainer) -> VideoStream:
        stream = video_stream(container, track_limits(self.track))
        if stream is None or stream.index != self.track.index:
            raise BadMedia("the video stream is not where it was: the file has changed")
        stream.codec_context.thread_count = self.threads
        if self.progress.strict:
            stream.codec_context.options = {**stream.codec_context.options, "err_detect": "explode"}
        return stream

    def _shows(self, packet: "Packet[VideoStream]") -> bool:
        inside = packet.pts is not None and self.span.start <= packet.pts < self.span.end
        return inside and packet.size > 0 and not packet.is_discard

    def _decoded(self, packet: "Packet[VideoStream]") -> list[av.VideoFrame]:
        try:
            return packet.decode()
        except FFmpegError:
            if self._shows(packet):  # a loss before the span does not count
                if self.progress.strict:
                    self.broken_at = packet.pts
                elif self.on_damage and packet.pts is not None:
                    self.on_damage(packet.pts)
            return []

    def may_conceal(self, pts: int) -> bool:
        """Whether to continue after a frame that cannot be decoded; reports it."""
        if self.on_damage is None or not self.progress.strict:
            return False
        self.on_damage(pts)
        return True

    def refuse(self, pts: int, what: str) -> None:
        """Raise BadMedia, unless the footage is known to be damaged."""
        if not self.track.damaged:
            raise BadMedia(f"the frame at {clock(to_us(pts, self.track.base))} {what}")


class Sink(Protocol):
    """Something that is made of frames as they come by."""

    def add(self, pts: int, frame: av.VideoFrame) -> None:
        """Take the next frame; it may not be kept, and `pts` is its time whatever the frame says later."""


def develop(
    path: Footage,
    facts: VideoFacts,
    span: Span,
    sinks: Sequence[Sink],
    on_progress: Progress,
    on_damage: Damage | None = None,
) -> int:
    """Show every frame of a span to every sink; how many there were.

    Raises:
        BadMedia: a frame is lost, see `decode`.
    """
    count = 0
    for frame in decode(path, facts, span, on_damage=on_damage):
        pts = frame.pts or 0
        for sink in sinks:
            sink.add(pts, frame)
        count += 1
        if count % 25 == 0:
            on_progress((pts - span.start) / max(1, span.end - span.start))
    return count
