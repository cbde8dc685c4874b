"""The proxy of one chunk: fMP4 whose fragments are HLS segments, in absolute times."""

from collections import deque
from fractions import Fraction
from pathlib import Path

import av
from av.packet import Packet
from av.video.frame import PictureType
from av.video.stream import VideoStream

from rushes.domain.span import Span
from rushes.domain.video import VideoFacts
from rushes.media.developing.segment_index import Segment, SegmentIndex
from rushes.media.encoders import x264_options, x264_stream
from rushes.media.open import create_file
from rushes.media.reading.mp4_boxes import fragments, shift_decode_times
from rushes.media.reading.scaling import Scaler, display_size
from rushes.media.timeline import SEGMENT_SECONDS, PeriodicSampler, shift_seconds, timescale

_REORDER_DEPTH = 2  # frames by which B-frames delay output
_FRAGMENTED = "+frag_keyframe+empty_moov+default_base_moof+skip_trailer"


class ProxyWriter:
    """A sink that encodes frames."""

    def __init__(self, path: Path, facts: VideoFacts, span: Span, height: int = 720, crf: int = 23) -> None:
        track = facts.video
        assert track is not None
        self._path, self._track, self._span = path, track, span
        self.size = display_size(track, height)
        self._scaler = Scaler(track, self.size, "yuv420p")
        self._scale = timescale(track.base)
        self._shift = shift_seconds(facts) * self._scale
        self._sampler = PeriodicSampler(Fraction(SEGMENT_SECONDS), track.base)
        self._crf = crf
        self._keys: list[int] = []  # pts of the first frame of each segment
        self._lead = 0  # dts of the first packet, in ticks of the file
        self._packets = 0
        self._times: deque[int] = deque()  # of frames whose packets are pending, in ticks of the file
        self._out = create_file(path, {"movflags": _FRAGMENTED, "video_track_timescale": str(self._scale)})
        self._stream: VideoStream | None = None

    def add(self, pts: int, frame: av.VideoFrame) -> None:
        """Take the next frame."""
        picture = self._scaler.scale(frame)
        ticks = int(pts * self._track.base * self._scale) + self._shift
        if self._stream is None:
            self._stream = x264_stream(self._out, self._track, picture, self._scale, x264_options(self._crf))
        begins = self._sampler.is_due(pts)
        if begins:
            self._keys.append(pts)
        picture.pts, picture.time_base = ticks, Fraction(1, self._scale)
        self._times.append(ticks)
        picture.pict_type = PictureType.I if begins else PictureType.NONE
        self._mux(self._stream.encode(picture))

    def finish(self) -> SegmentIndex:
        """Finish the file, set its decode times, and return the segment index."""
        if self._stream is not None:
            self._mux(self._stream.encode(None))
        self._out.close()
        with self._path.open("r+b") as f:
            init, found = fragments(f)
            shift_decode_times(f, found, self._lead)
        ends = [*self._keys[1:], self._span.end]
        rows = zip(found, self._keys, ends, strict=True)
        segments = tuple(Segment(f.at, f.size, start, end - start) for f, start, end in rows)
        return SegmentIndex(init, self._track.base, segments)

    def close(self) -> None:
        """Close the file, finished or not."""
        self._out.close()

    def _mux(self, packets: "list[Packet[VideoStream]]") -> None:
        for packet in packets:
            packet.dts = self._next_dts()
            self._lead = self._lead if self._packets else packet.dts
            self._packets += 1
            self._out.mux(packet)

    def _next_dts(self) -> int:
        """The dts of the next packet: never before the chunk, or players would drop its key frame.

        The first three share the time of the first frame. The duration of a packet is the time to the next dts, and
        browsers that seek drop a frame that is over: a third of its time is left, and our player seeks to a quarter.
        (Negative composition offsets would avoid this, but FFmpeg reads those of fragments as a shift of all.)
        """
        if self._packets <= _REORDER_DEPTH:
            first, second = self._times[0], self._times[min(1, len(self._times) - 1)]
            share = (second - first) * self._packets // (_REORDER_DEPTH + 1)
            return min(first + share, second - _REORDER_DEPTH - 1 + self._packets) if second > first else first
        if self._packets == _REORDER_DEPTH + 1:
            self._times.popleft()
        return self._times.popleft()
