"""The audio rendition of a film: AAC in fragments of about four seconds, on the timeline of the video."""

from fractions import Fraction
from pathlib import Path

import av

from rushes.domain.video import AudioTrack, VideoFacts
from rushes.media.developing.segment_index import Segment, SegmentIndex
from rushes.media.encoders import AacEncoder
from rushes.media.open import create_file
from rushes.media.reading.mp4_boxes import fragments, shift_decode_times
from rushes.media.timeline import SEGMENT_SECONDS, shift_seconds

_FRAGMENTED = "+empty_moov+default_base_moof+skip_trailer"


class AudioRenditionWriter:
    """Encodes frames of a SampleTimeline."""

    def __init__(self, path: Path, facts: VideoFacts, track: AudioTrack) -> None:
        self._path, self._shift = path, shift_seconds(facts)
        options = {"movflags": _FRAGMENTED, "frag_duration": str(SEGMENT_SECONDS * 1_000_000)}
        self._out = create_file(path, options)
        self._encoder = AacEncoder(self._out, track)
        self._lead = 0

    def add(self, frame: av.AudioFrame | None) -> None:
        """Take the next frame; None flushes."""
        for packet in self._encoder.encode(frame):
            self._lead = min(self._lead, packet.pts or 0)  # encoder delay: it begins before the first sample
            self._out.mux(packet)

    def finish(self, start: Fraction) -> SegmentIndex:
        """Finish the file, whose first sample has media time `start`; set its decode times."""
        self.add(None)
        self._out.close()
        rate = self._encoder.rate
        with self._path.open("r+b") as f:
            init, found = fragments(f)
            times = shift_decode_times(f, found, round((start + self._shift) * rate) + self._lead)
        starts = [time - self._shift * rate for time in times]
        ends = [*starts[1:], round(start * rate) + self._encoder.samples]
        rows = zip(found, starts, ends, strict=True)
        return SegmentIndex(init, Fraction(1, rate), tuple(Segment(f.at, f.size, a, b - a) for f, a, b in rows))
