"""Audio resampling."""

import av
from av.audio.fifo import AudioFifo
from av.audio.resampler import AudioResampler

_BLOCK = 8192  # samples at a time: a call costs more than the samples of one frame


class Resampler:
    """A resampler that accepts a change of format in the middle of a track; ignores timestamps."""

    def __init__(self, kind: str, layout: str, rate: int, size: int | None = None) -> None:
        self._target = (kind, layout, rate, size)
        self._source: tuple[str, str, int] | None = None
        self._resampler, self._fifo = AudioResampler(*self._target), AudioFifo()

    def push(self, frame: av.AudioFrame | None) -> list[av.AudioFrame]:
        """The output after one more frame; None flushes."""
        source = (frame.format.name, frame.layout.name, frame.sample_rate) if frame else None
        out = []
        if source != self._source and self._source:
            out = self._drain() + self._resampler.resample(None)
            self._resampler, self._fifo = AudioResampler(*self._target), AudioFifo()
        self._source = source
        if frame is not None:
            self._fifo.write(frame)
        return out + self._drain() if self._fifo.samples >= _BLOCK else out

    def _drain(self) -> list[av.AudioFrame]:
        frame = self._fifo.read()
        return self._resampler.resample(frame) if frame else []
