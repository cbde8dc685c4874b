"""Decoded audio as one timeline: sample n lies n / rate seconds after the first, whatever packets say."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import av
import numpy as np
from av.audio.fifo import AudioFifo
from av.audio.resampler import AudioResampler
from av.error import FFmpegError
from numpy.typing import NDArray

from rushes.domain.video import AudioTrack, Footage
from rushes.media.open import audio_stream, check_rate, open_footage

_BLOCK = 8192  # samples at a time: a call costs more than the samples of one frame
_MAX_JITTER = Fraction(20, 1000)  # seconds: timestamps jitter by less, and more is audible
_LAYOUTS = {1: "mono", 2: "stereo", 3: "2.1", 4: "quad", 5: "5.0", 6: "5.1", 7: "6.1", 8: "7.1"}
_PREROLL = 1  # seconds decoded before the start, for the state of the decoder


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


class SampleTimeline:
    """The audio of a track, all or a range, without gap or overlap, exact to the sample."""

    def __init__(
        self, path: Footage, track: AudioTrack, begin: Fraction | None = None, end: Fraction | None = None
    ) -> None:
        self._path, self._track, self._begin, self._end = path, track, begin, end
        self.start = track.start * track.base if begin is None else begin
        self._clock: Fraction | None = begin  # media time of the next sample, outside a run of contiguous frames
        self._run: _IntegerClock | None = None
        self._slack = _MAX_JITTER if begin is None else Fraction(0)
        self.damaged = 0

    @property
    def clock(self) -> Fraction | None:
        """Media time of the next sample; None before the first."""
        return self._run.clock() if self._run else self._clock

    def done(self) -> float:
        """Progress, 0 to 1."""
        length = (self._track.end - self._track.start) * self._track.base
        return float(((self.clock or self.start) - self.start) / length)

    def frames(self) -> Iterator[av.AudioFrame]:
        """Contiguous frames without pts: gaps are filled with silence, overlaps trimmed."""
        for frame in self._decoded():
            if self._run and self._run.takes(frame):
                frame.pts = None
                yield frame
                continue
            self._clock, self._run = self.clock, None
            time = frame.pts * self._track.base if frame.pts is not None else self._clock
            if self._clock is None:
                self.start = self._clock = time if time is not None else self.start
            for placed in self._placed(frame, time if time is not None else self._clock):
                rest = self._before_end(placed)
                if rest is None:
                    return
                yield rest
            self._run = _IntegerClock.after(self._clock, frame.sample_rate, self._track.base, self._slack, self._end)

    def _placed(self, frame: av.AudioFrame, time: Fraction) -> Iterator[av.AudioFrame]:
        assert self._clock is not None
        gap = round((time - self._clock) * frame.sample_rate)
        slack = int(self._slack * frame.sample_rate)
        if gap > slack:
            yield from _silence(frame, gap)
        rest = _trim(frame, -gap) if gap < -slack else frame
        if rest is not None:
            self._slack = _MAX_JITTER
            yield rest

    def _before_end(self, frame: av.AudioFrame) -> av.AudioFrame | None:
        """The part of the next frame before the end; advances the clock."""
        assert self._clock is not None
        room = frame.samples
        if self._end is not None:
            room = min(room, round((self._end - self._clock) * frame.sample_rate))
        if room <= 0:
            return None
        rest = frame if room == frame.samples else _trim(frame, room, tail=True)
        if rest is not None:
            rest.pts = None
        self._clock += Fraction(room, frame.sample_rate)
        return rest

    def _decoded(self) -> Iterator[av.AudioFrame]:
        with open_footage(self._path) as container:
            stream = audio_stream(container, self._track.index)
            if self._begin is not None and self._begin - _PREROLL > self._track.start * self._track.base:
                container.seek(int((self._begin - _PREROLL) / self._track.base), stream=stream, backward=True)
            for packet in container.demux(stream):
                try:
                    frames = packet.decode()
                except FFmpegError:
                    self.damaged += 1
                    continue
                for frame in frames:
                    check_rate(frame.sample_rate)  # it may change within a track
                    yield _name_channels(frame)


@dataclass(slots=True)
class _IntegerClock:
    """A clock in whole numbers for contiguous frames of one rate: fractions cost more than the decoder."""

    origin: Fraction
    rate: int
    ticks: tuple[int, int, int]  # a pts t lies (t * first - second) / third samples after the origin
    slack: int  # thirds of the above
    room: int | None  # samples before the end
    samples: int = 0

    @staticmethod
    def after(origin: Fraction, rate: int, base: Fraction, slack: Fraction, end: Fraction | None) -> "_IntegerClock":
        begin = origin * rate
        third = base.denominator * begin.denominator
        ticks = (base.numerator * rate * begin.denominator, begin.numerator * base.denominator, third)
        room = None if end is None else int((end - origin) * rate) - 1
        return _IntegerClock(origin, rate, ticks, int(slack * rate) * third, room)

    def takes(self, frame: av.AudioFrame) -> bool:
        """Whether a frame is contiguous and ends before the end; counts it."""
        if frame.sample_rate != self.rate or frame.pts is None:
            return False
        first, second, third = self.ticks
        near = abs(frame.pts * first - second - self.samples * third) <= self.slack
        if not near or (self.room is not None and self.samples + frame.samples > self.room):
            return False
        self.samples += frame.samples
        return True

    def clock(self) -> Fraction:
        """Media time of the next sample."""
        return self.origin + Fraction(self.samples, self.rate)


def _name_channels(frame: av.AudioFrame) -> av.AudioFrame:
    """A frame with a named channel layout, which resampling needs."""
    channels = frame.layout.nb_channels
    if frame.layout.name != f"{channels} channels":
        return frame
    data: NDArray[Any] = frame.to_ndarray()
    if channels not in _LAYOUTS:  # many microphones: use the first two
        kept = data[:2] if frame.format.is_planar else data.reshape(frame.samples, channels)[:, :2].reshape(1, -1)
        data, channels = np.ascontiguousarray(kept), 2
    named = av.AudioFrame.from_ndarray(data, format=frame.format.name, layout=_LAYOUTS[channels])
    named.sample_rate, named.pts = frame.sample_rate, frame.pts
    return named


def _silence(like: av.AudioFrame, samples: int) -> Iterator[av.AudioFrame]:
    data = like.to_ndarray()
    wide = data.shape[1] // like.samples  # packed formats hold all channels in one row
    zero = 128 if like.format.name.startswith("u8") else 0
    while samples > 0:
        few = min(samples, like.sample_rate)  # a second at a time, for constant memory
        yield _to_frame(np.full((data.shape[0], few * wide), zero, data.dtype), like)
        samples -= few


def _trim(frame: av.AudioFrame, samples: int, tail: bool = False) -> av.AudioFrame | None:
    """A frame without its first samples; with `tail`, without the others."""
    if samples >= frame.samples:
        return frame if tail else None
    data = frame.to_ndarray()
    at = samples * (data.shape[1] // frame.samples)
    return _to_frame(np.ascontiguousarray(data[:, :at] if tail else data[:, at:]), frame)


def _to_frame(data: NDArray[Any], like: av.AudioFrame) -> av.AudioFrame:
    made = av.AudioFrame.from_ndarray(data, format=like.format.name, layout=like.layout.name)
    made.sample_rate = like.sample_rate
    return made
