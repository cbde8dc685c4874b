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
from rushes.domain.video import Footage, VideoFacts
from rushes.media.developing.audio_rendition import AudioRenditionWriter
from rushes.media.developing.segment_index import SegmentIndex
from rushes.media.reading.resampling import Resampler
from rushes.media.reading.sample_timeline import SampleTimeline

PCM_RATE = 16_000
_BLOCK = 4096  # samples that are written at a time


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
