"""Sound in another format, whatever the format it comes in."""

import av
from av.audio.resampler import AudioResampler


class Resampled:
    """A resampler that survives a change of format in the middle of a track."""

    def __init__(self, kind: str, layout: str, rate: int, size: int | None = None) -> None:
        self._target = (kind, layout, rate, size)
        self._resampler: AudioResampler | None = None
        self._source: tuple[str, str, int] | None = None

    def given(self, frame: av.AudioFrame | None) -> list[av.AudioFrame]:
        """What comes out after one more frame; None flushes, else the tail would be lost."""
        source = (frame.format.name, frame.layout.name, frame.sample_rate) if frame else None
        out = []
        if source != self._source and self._resampler:
            out = self._resampler.resample(None)
            self._resampler = None
        if frame is not None:
            self._source = source
            self._resampler = self._resampler or AudioResampler(*self._target)
            out += self._resampler.resample(frame)
        return out
