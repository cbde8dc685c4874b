"""The audio rendition of a film: AAC in fragments of about four seconds, on the timeline of the video."""

from fractions import Fraction
from pathlib import Path

import av

from rushes.domain.video import AudioTrack, VideoFacts
from rushes.media.developing.segment_index import Segment, SegmentIndex
from rushes.media.encoders import AAC_FRAME, aac_format, aac_stream
from rushes.media.open import create_file
from rushes.media.reading.mp4_boxes import fragments, shift_decode_times
from rushes.media.reading.resampling import Resampler
from rushes.media.timeline import SEGMENT_SECONDS, shift_seconds

_FRAGMENTED = "+empty_moov+default_base_moof+skip_trailer"


class AudioRenditionWriter:
    """Encodes frames of a SampleTimeline."""

    def __init__(self, path: Path, facts: VideoFacts, track: AudioTrack) -> None:
        self._path = path
        layout, self._rate = aac_format(track)
        self._shift = shift_seconds(facts)
        self._start = Fraction(0)
        self._given = 0
        self._lead = 0
        self._resampler = Resampler("fltp", layout, self._rate, AAC_FRAME)
        options = {"movflags": _FRAGMENTED, "frag_duration": str(SEGMENT_SECONDS * 1_000_000)}
        self._out = create_file(path, options)
        self._stream = aac_stream(self._out, layout, self._rate)

    def add(self, start: Fraction, frame: av.AudioFrame) -> None:
        """Take the next frame; `start` is the media time of the first sample of all."""
        self._start = start
        self._encode(self._resampler.push(frame))

    def finish(self) -> SegmentIndex:
        """Finish the file, set its decode times, and return the segment index."""
        self._encode(self._resampler.push(None))
        self._mux(None)
        self._out.close()
        origin = round((self._start + self._shift) * self._rate)
        with self._path.open("r+b") as f:
            init, found = fragments(f)
            times = shift_decode_times(f, found, origin + self._lead)
        starts = [time - self._shift * self._rate for time in times]
        ends = [*starts[1:], round(self._start * self._rate) + self._given]
        rows = zip(found, starts, ends, strict=True)
        return SegmentIndex(init, Fraction(1, self._rate), tuple(Segment(f.at, f.size, a, b - a) for f, a, b in rows))

    def _encode(self, frames: list[av.AudioFrame]) -> None:
        for frame in frames:
            frame.pts, frame.time_base = self._given, Fraction(1, self._rate)
            self._given += frame.samples
            self._mux(frame)

    def _mux(self, frame: av.AudioFrame | None) -> None:
        for packet in self._stream.encode(frame):
            self._lead = min(self._lead, packet.pts or 0)  # encoder delay: it begins before the first sample
            self._out.mux(packet)
