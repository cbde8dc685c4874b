"""The sound of a film, decoded once: 16 kHz mono for machines, AAC in HLS segments for people.

Sample n of either lies at the media time start + n / rate: gaps are filled with silence, overlaps are trimmed.
"""

import wave
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import av

from rushes.domain.errors import BadMedia
from rushes.domain.video import AudioTrack, Footage, VideoFacts
from rushes.media.developing.hls import Segment, SegmentIndex
from rushes.media.encoders import AacEncoder
from rushes.media.open import create_file
from rushes.media.reading.audio import Resampler, SampleTimeline
from rushes.media.reading.mp4_boxes import fragments, shift_decode_times
from rushes.media.timeline import SEGMENT_SECONDS, shift_seconds

_FRAGMENTED = "+empty_moov+default_base_moof+skip_trailer"
PCM_RATE = 16_000
_BLOCK = 4096  # samples that are written at a time


class AudioRenditionWriter:
    """Encodes sound as it comes by."""

    def __init__(self, path: Path, facts: VideoFacts, track: AudioTrack) -> None:
        self._path = path
        self._shift = shift_seconds(facts)
        self._start = Fraction(0)
        self._lead = 0
        options = {"movflags": _FRAGMENTED, "frag_duration": str(SEGMENT_SECONDS * 1_000_000)}
        self._out = create_file(path, options)
        self._encoder = AacEncoder(self._out, track)

    def add(self, start: Fraction, frame: av.AudioFrame) -> None:
        """Take the next frame; `start` is the media time of the very first sample."""
        self._start = start
        self._mux(frame)

    def finish(self) -> SegmentIndex:
        """Finish the file, put the real times in, and say where the segments lie."""
        self._mux(None)
        self._out.close()
        rate = self._encoder.rate
        origin = round((self._start + self._shift) * rate)
        with self._path.open("r+b") as f:
            init, found = fragments(f)
            times = shift_decode_times(f, found, origin + self._lead)
        starts = [time - self._shift * rate for time in times]
        ends = [*starts[1:], round(self._start * rate) + self._encoder.samples]
        rows = zip(found, starts, ends, strict=True)
        return SegmentIndex(init, Fraction(1, rate), tuple(Segment(f.at, f.size, a, b - a) for f, a, b in rows))

    def _mux(self, frame: av.AudioFrame | None) -> None:
        for packet in self._encoder.encode(frame):
            self._lead = min(self._lead, packet.pts or 0)  # the encoder's delay: it begins before the first sample
            self._out.mux(packet)


@dataclass(frozen=True, slots=True)
class AudioFacts:
    """What was made of the sound: sample 0 of the WAV lies at media time `start`, in seconds."""

    start: Fraction
    samples: int  # at 16 kHz
    track: int  # index of the stream
    damaged: int  # packets that could not be decoded, heard as silence
    sound: SegmentIndex | None


def extract_audio(
    path: Footage,
    facts: VideoFacts,
    pcm_out: Path,
    sound_out: Path | None,
    on_progress: Callable[[float], None],
    part: tuple[Fraction, Fraction] | None = None,
) -> AudioFacts:
    """Write the sound as a 16 kHz mono WAV and, if wanted, as AAC in fragmented MP4; memory stays constant.

    Of a `part` only what lies between those two moments.

    Raises:
        BadMedia: there is no sound, or none of it can be decoded.
    """
    track = facts.sound
    if track is None:
        raise BadMedia(f"{path.name} has no sound")
    line = SampleTimeline(path, track, *part) if part else SampleTimeline(path, track)
    sound = AudioRenditionWriter(sound_out, facts, track) if sound_out else None
    with wave.open(str(pcm_out), "wb") as wav:
        wav.setnchannels(1)
        wav.setsampwidth(2)
        wav.setframerate(PCM_RATE)
        resampler = Resampler("s16", "mono", PCM_RATE, _BLOCK)
        for number, frame in enumerate(line.frames()):
            _write(wav, resampler.push(frame))
            if sound:
                sound.add(line.start, frame)
            if number % 100 == 0:
                on_progress(line.done())
        _write(wav, resampler.push(None))
        samples = wav.getnframes()
    if not samples:
        raise BadMedia(f"none of the sound of {path.name} can be decoded")
    return AudioFacts(line.start, samples, track.index, line.damaged, sound.finish() if sound else None)


def _write(wav: wave.Wave_write, frames: list[av.AudioFrame]) -> None:
    for frame in frames:
        wav.writeframesraw(memoryview(frame.planes[0])[: 2 * frame.samples])
