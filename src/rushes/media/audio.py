"""The sound of a film, decoded once: 16 kHz mono for machines, AAC in HLS segments for people.

Sample n of either lies at the media time start + n / rate: gaps are filled with silence, overlaps are trimmed.
"""

import wave
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
from av.error import FFmpegError
from numpy.typing import NDArray

from rushes.domain.errors import BadMedia
from rushes.domain.video import AudioTrack, VideoFacts
from rushes.media.open import audio_stream, open_footage
from rushes.media.piece import Layout
from rushes.media.resampled import Resampled
from rushes.media.sound import Sound

PCM_RATE = 16_000
_SLACK = Fraction(20, 1000)  # seconds; timestamps jitter by less, ears notice more


@dataclass(frozen=True, slots=True)
class AudioFacts:
    """What was made of the sound: sample 0 of the WAV lies at media time `start`, in seconds."""

    start: Fraction
    samples: int  # at 16 kHz
    track: int  # index of the stream
    damaged: int  # packets that could not be decoded, heard as silence
    sound: Layout | None


def chosen(facts: VideoFacts) -> AudioTrack | None:
    """The track to listen to: the default one, else the first."""
    return next((t for t in facts.audio if t.default), facts.audio[0] if facts.audio else None)


def extract(
    path: Path, facts: VideoFacts, pcm_out: Path, sound_out: Path | None, on_progress: Callable[[float], None]
) -> AudioFacts:
    """Write the chosen track as a 16 kHz mono WAV and, if wanted, as AAC in fragmented MP4; memory stays constant.

    Raises:
        BadMedia: there is no sound, or none of it can be decoded.
    """
    track = chosen(facts)
    if track is None:
        raise BadMedia(f"{path.name} has no sound")
    line = _Line(path, track)
    sound = Sound(sound_out, facts, track) if sound_out else None
    with wave.open(str(pcm_out), "wb") as wav:
        wav.setnchannels(1)
        wav.setsampwidth(2)
        wav.setframerate(PCM_RATE)
        resampled = Resampled("s16", "mono", PCM_RATE)
        for frame in line.frames():
            _write(wav, resampled.given(frame))
            if sound:
                sound.hear(line.start, frame)
            on_progress(line.done())
        _write(wav, resampled.given(None))
        samples = wav.getnframes()
    if not samples:
        raise BadMedia(f"none of the sound of {path.name} can be decoded")
    return AudioFacts(line.start, samples, track.index, line.damaged, sound.close() if sound else None)


def _write(wav: wave.Wave_write, frames: list[av.AudioFrame]) -> None:
    for frame in frames:
        wav.writeframesraw(frame.to_ndarray().astype("<i2", copy=False).tobytes())


class _Line:
    """The decoded sound as one line without gaps."""

    def __init__(self, path: Path, track: AudioTrack) -> None:
        self._path, self._track = path, track
        self.start = track.start * track.base
        self.clock: Fraction | None = None  # media time of the next sample
        self.damaged = 0

    def done(self) -> float:
        """How far it is, 0 to 1."""
        length = (self._track.end - self._track.start) * self._track.base
        return float(((self.clock or self.start) - self.start) / length)

    def frames(self) -> Iterator[av.AudioFrame]:
        """Frames that follow each other without gap or overlap; their own times mean nothing any more."""
        for frame in self._decoded():
            time = frame.pts * self._track.base if frame.pts is not None else self.clock
            if self.clock is None:
                self.start = self.clock = time if time is not None else self.start
            yield from self._placed(frame, time if time is not None else self.clock)

    def _placed(self, frame: av.AudioFrame, time: Fraction) -> Iterator[av.AudioFrame]:
        assert self.clock is not None
        gap = int((time - self.clock) * frame.sample_rate)
        slack = int(_SLACK * frame.sample_rate)
        if gap > slack:
            yield from self._silence(frame, gap)
        rest = _without(frame, -gap) if gap < -slack else frame
        if rest is not None:
            rest.pts = None
            self.clock += Fraction(rest.samples, rest.sample_rate)
            yield rest

    def _silence(self, like: av.AudioFrame, samples: int) -> Iterator[av.AudioFrame]:
        assert self.clock is not None
        self.clock += Fraction(samples, like.sample_rate)
        while samples > 0:
            few = min(samples, like.sample_rate)
            yield _silent(like, few)
            samples -= few

    def _decoded(self) -> Iterator[av.AudioFrame]:
        with open_footage(self._path) as container:
            for packet in container.demux(audio_stream(container, self._track.index)):
                try:
                    yield from packet.decode()
                except FFmpegError:
                    self.damaged += 1


def _silent(like: av.AudioFrame, samples: int) -> av.AudioFrame:
    shape = like.to_ndarray().shape
    wide = samples * (shape[1] // like.samples)  # packed formats hold all channels in one row
    zero = 128 if like.format.name.startswith("u8") else 0
    blank = np.full((shape[0], wide), zero, like.to_ndarray().dtype)
    return _framed(blank, like)


def _without(frame: av.AudioFrame, samples: int) -> av.AudioFrame | None:
    if samples >= frame.samples:
        return None
    data = frame.to_ndarray()
    wide = data.shape[1] // frame.samples
    return _framed(np.ascontiguousarray(data[:, samples * wide :]), frame)


def _framed(data: NDArray[Any], like: av.AudioFrame) -> av.AudioFrame:
    made = av.AudioFrame.from_ndarray(data, format=like.format.name, layout=like.layout.name)
    made.sample_rate = like.sample_rate
    return made
