"""Audio extraction: one decode for 16 kHz mono PCM (speech models) and AAC in HLS segments (players).

Sample n of either lies at media time start + n / rate: gaps are filled with silence, overlaps are trimmed.
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
_BLOCK = 4096  # samples per write


@dataclass(frozen=True, slots=True)
class AudioFacts:
    """What was extracted: sample 0 of the WAV lies at media time `start`, in seconds."""

    start: Fraction
    samples: int  # at 16 kHz
    track: int  # index of the stream
    damaged: int  # packets that could not be decoded, replaced by silence
    sound: SegmentIndex | None


def extract_audio(
    path: Footage,
    facts: VideoFacts,
    pcm_out: Path,
    sound_out: Path | None,
    on_progress: Callable[[float], None],
    part: tuple[Fraction, Fraction] | None = None,
) -> AudioFacts:
    """Write the audio, or the `part` between two times, as WAV and as AAC in fMP4, in constant memory.

    Raises:
        BadMedia: there is no audio, or none of it can be decoded.
    """
    track = facts.sound
    if track is None:
        raise BadMedia(f"{path.name} has no audio")
    timeline = SampleTimeline(path, track, *(part or (None, None)))
    sound = AudioRenditionWriter(sound_out, facts, track) if sound_out else None
    with wave.open(str(pcm_out), "wb") as wav:
        wav.setnchannels(1)
        wav.setsampwidth(2)
        wav.setframerate(PCM_RATE)
        resampler = Resampler("s16", "mono", PCM_RATE, _BLOCK)
        for number, frame in enumerate(timeline.frames()):
            _write(wav, resampler.push(frame))
            if sound:
                sound.add(frame)
            if number % 100 == 0:
                on_progress(timeline.done())
        _write(wav, resampler.push(None))
        samples = wav.getnframes()
    if not samples:
        raise BadMedia(f"none of the audio of {path.name} can be decoded")
    rendition = sound.finish(timeline.start) if sound else None
    return AudioFacts(timeline.start, samples, track.index, timeline.damaged, rendition)


def _write(wav: wave.Wave_write, frames: list[av.AudioFrame]) -> None:
    for frame in frames:
        wav.writeframesraw(memoryview(frame.planes[0])[: 2 * frame.samples])
