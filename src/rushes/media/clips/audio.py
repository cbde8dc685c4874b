"""The audio of a clip: cut to the sample, encoded as far as the video is."""

from collections.abc import Iterator
from fractions import Fraction

import av
from av.audio.stream import AudioStream
from av.container import OutputContainer

from rushes.domain.video import AudioTrack, Footage
from rushes.media.encoders import AAC_FRAME, aac_format, aac_stream
from rushes.media.reading.resampling import Resampler
from rushes.media.reading.sample_timeline import SampleTimeline


class ClipAudio:
    """Encodes one audio track."""

    def __init__(self, out: OutputContainer, path: Footage, track: AudioTrack, begin: Fraction, end: Fraction) -> None:
        self._out = out
        layout, self._rate = aac_format(track)
        self._stream: AudioStream = aac_stream(out, layout, self._rate)
        self._resampler = Resampler("fltp", layout, self._rate, AAC_FRAME)
        self._frames: Iterator[av.AudioFrame] = SampleTimeline(path, track, begin, end).frames()
        self._given = 0

    def up_to(self, seconds: Fraction) -> None:
        """Encode up to that time of the clip, or to the end of the audio."""
        while self._given < seconds * self._rate:
            frame = next(self._frames, None)
            if frame is None:
                return
            self._encode(self._resampler.push(frame))

    def finish(self) -> None:
        """Encode the rest."""
        for frame in self._frames:
            self._encode(self._resampler.push(frame))
        self._encode(self._resampler.push(None))
        if self._given:
            self._out.mux(self._stream.encode(None))

    def _encode(self, frames: list[av.AudioFrame]) -> None:
        for frame in frames:
            frame.pts, frame.time_base = self._given, Fraction(1, self._rate)
            self._given += frame.samples
            self._out.mux(self._stream.encode(frame))
