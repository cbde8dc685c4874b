"""The proxy of one chunk: a fragmented MP4 whose fragments are HLS segments, in absolute times."""

from fractions import Fraction
from pathlib import Path

import av
from av.packet import Packet
from av.video.frame import PictureType
from av.video.stream import VideoStream

from rushes.domain.span import Span
from rushes.domain.video import VideoFacts
from rushes.media.boxes import fragments, shift_times
from rushes.media.encoders import x264_options, x264_stream
from rushes.media.layout import Layout, Segment
from rushes.media.open import create_file
from rushes.media.picture import Scaler, shown_size
from rushes.media.timeline import SEGMENT_SECONDS, Beat, shift_seconds, timescale

_REORDERED = 3  # ticks, of which there are at least 10,000 a second; x264 with two B-frames needs two packets
_FRAGMENTED = "+frag_keyframe+empty_moov+default_base_moof+skip_trailer"


class Proxy:
    """Encodes the frames of a chunk as they come by."""

    def __init__(self, path: Path, facts: VideoFacts, span: Span, height: int = 720, crf: int = 23) -> None:
        track = facts.video
        assert track is not None
        self._path, self._track, self._span = path, track, span
        self.size = shown_size(track, height)
        self._scaler = Scaler(track, self.size, "yuv420p")
        self._scale = timescale(track.base)
        self._shift = shift_seconds(facts) * self._scale
        self._beat = Beat(Fraction(SEGMENT_SECONDS), track.base)
        self._crf = crf
        self._keys: list[int] = []  # pts of frames that begin a segment
        self._lead = 0  # dts of the first packet, in ticks of ours
        self._packets = 0
        self._first = 0
        self._out = create_file(path, {"movflags": _FRAGMENTED, "video_track_timescale": str(self._scale)})
        self._stream: VideoStream | None = None

    def see(self, pts: int, frame: av.VideoFrame) -> None:
        """Take the next frame."""
        picture = self._scaler.scaled(frame)
        ticks = int(pts * self._track.base * self._scale) + self._shift
        if self._stream is None:
            self._stream = x264_stream(self._out, self._track, picture, self._scale, x264_options(self._crf))
            self._first = ticks
        begins = self._beat.strikes(pts)
        if begins:
            self._keys.append(pts)
        picture.pts, picture.time_base = ticks, Fraction(1, self._scale)
        picture.pict_type = PictureType.I if begins else PictureType.NONE
        self._mux(self._stream.encode(picture))

    def close(self) -> Layout:
        """Finish the file, put the real times in, and say where the segments lie."""
        if self._stream is not None:
            self._mux(self._stream.encode(None))
        self._out.close()
        with self._path.open("r+b") as f:
            init, found = fragments(f)
            shift_times(f, found, self._lead)
        ends = [*self._keys[1:], self._span.end]
        rows = zip(found, self._keys, ends, strict=True)
        segments = tuple(Segment(f.at, f.size, start, end - start) for f, start, end in rows)
        return Layout(init, self._track.base, segments)

    def let_go(self) -> None:
        """Close the file as it is."""
        self._out.close()

    def _mux(self, packets: "list[Packet[VideoStream]]") -> None:
        for packet in packets:
            # What B-frames need before the first picture must not reach back into the chunk before, however close or
            # far apart frames are: players drop a key frame whose order of decoding goes back (VFR showed it).
            dts = packet.dts or 0
            if dts < self._first:
                dts = packet.dts = self._first - _REORDERED + self._packets
            if not self._packets:
                self._lead = dts
            self._packets += 1
            self._out.mux(packet)
