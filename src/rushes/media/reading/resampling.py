"""Sound in another format, whatever the format it comes in."""

import av
from av.audio.fifo import AudioFifo
from av.audio.resampler import AudioResampler

_GATHERED = 8192  # samples resampled at a time: a call costs more than the samples of one frame


class Resampled:
    """A resampler that survives a change of format in the middle of a track; what comes in has no times."""

    def __init__(self, kind: str, layout: str, rate: int, size: int | None = None) -> None:
        self._target = (kind, layout, rate, size)
        self._source: tuple[str, str, int] | None = None
        self._resampler, self._waiting = AudioResampler(*self._target), AudioFifo()

    def given(self, frame: av.AudioFrame | None) -> list[av.AudioFrame]:
        """What comes out after one more frame; None flushes, else the tail would be lost."""
        source = (frame.format.name, frame.layout.name, frame.sample_rate) if frame else None
        out = []
        if source != self._source and self._source:
            out = self._gathered() + self._resampler.resample(None)
            self._resampler, self._waiting = AudioResampler(*self._target), AudioFifo()
        self._source = source
        if frame is not None:
            self._waiting.write(frame)
        return out + self._gathered() if self._waiting.samples >= _GATHERED else out

    def _gathered(self) -> list[av.AudioFrame]:
        frame = self._waiting.read()
        return self._resampler.resample(frame) if frame else []
