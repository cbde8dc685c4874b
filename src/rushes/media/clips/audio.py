"""The audio of a clip: cut to the sample, encoded as far as the video is."""

from fractions import Fraction
from itertools import chain

from av.container import OutputContainer

from rushes.domain.video import AudioTrack, Footage
from rushes.media.encoders import AacEncoder
from rushes.media.reading.sample_timeline import SampleTimeline


class ClipAudio:
    """Encodes one audio track."""

    def __init__(self, out: OutputContainer, path: Footage, track: AudioTrack, begin: Fraction, end: Fraction) -> None:
        self._out, self._encoder = out, AacEncoder(out, track)
        self._frames = SampleTimeline(path, track, begin, end).frames()

    def up_to(self, seconds: Fraction) -> None:
        """Encode up to that time of the clip, or to the end of the audio."""
        while self._encoder.samples < seconds * self._encoder.rate and (frame := next(self._frames, None)):
            self._out.mux(list(self._encoder.encode(frame)))

    def finish(self) -> None:
        """Encode the rest."""
        for frame in chain(self._frames, [None]):
            self._out.mux(list(self._encoder.encode(frame)))
