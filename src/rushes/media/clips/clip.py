"""Exact clips: the frames with start <= pts < end and the audio to the sample, times from zero."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from rushes.domain.errors import BadMedia
from rushes.domain.span import Span, rescale_up
from rushes.domain.video import Footage, VideoFacts, VideoTrack
from rushes.media.clips.audio import ClipAudio
from rushes.media.clips.smart_cut import find_cut_points
from rushes.media.clips.smart_cut_writer import SmartCutWriter
from rushes.media.clips.video import ClipWork, FullEncoder
from rushes.media.open import create_file

Progress = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class ClipFacts:
    """What was cut: start and end in seconds of media time, frames, and how many of them were copied.

    `hidden` has the times of frames that could not be decoded and are concealed.
    """

    start: Fraction
    end: Fraction
    frames: int
    copied: int = 0
    hidden: tuple[Fraction, ...] = ()


def cut_clip(
    path: Footage,
    facts: VideoFacts,
    start: Fraction,
    end: Fraction,
    out: Path,
    on_progress: Progress,
    *,
    audio_path: Footage | None = None,
    smart: bool = True,
) -> ClipFacts:
    """Cut a range of the film, in seconds of media time, clipped to the film.

    The audio comes from `audio_path` if given. Without `smart` every frame is encoded.

    Raises:
        BadMedia: the range is empty.
    """
    track, sound = facts.video, facts.sound
    whole = [(t.start * t.base, t.end * t.base) for t in (track, sound) if t is not None]
    start, end = max(start, min(a for a, _ in whole)), min(end, max(b for _, b in whole))
    if start >= end:
        raise BadMedia("the clip is outside the video", "Choose a start and an end within it.")
    with create_file(out, {"movflags": "+faststart"}) as container:
        if track is None:
            assert sound is not None
            ClipAudio(container, audio_path or path, sound, start, end).finish()
            return ClipFacts(start, end, 0)
        span = _span(track, start, end)

        def audio_from(zero: int) -> ClipAudio | None:
            return (
                ClipAudio(container, audio_path or path, sound, zero * span.base, span.end * span.base)
                if sound
                else None
            )

        return _cut(ClipWork(container, path, facts, track, span, audio_from, on_progress, []), smart)


def _span(track: VideoTrack, start: Fraction, end: Fraction) -> Span:
    """The range of the video, at least one tick."""
    first, last = max(rescale_up(start, track.base), track.start), min(rescale_up(end, track.base), track.end)
    if first >= track.end or last <= track.start:
        raise BadMedia("there is no frame in that range", "Choose a longer range.")
    return Span(min(first, last - 1), last, track.base)


def _cut(work: ClipWork, smart: bool) -> ClipFacts:
    found = find_cut_points(work.path, work.track, work.span) if smart else None
    zero, frames = SmartCutWriter(work, found).write() if found else FullEncoder(work).write()
    base = work.span.base
    hidden = tuple(pts * base for pts in work.hidden)
    return ClipFacts(zero * base, work.span.end * base, frames, found.copied if found else 0, hidden)
