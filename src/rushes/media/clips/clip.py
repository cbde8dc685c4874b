"""Exact clips: the frames with start <= time < end and the sound to the sample, times from zero."""

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
    """What was cut: media time of its first moment and of its end, in seconds, its frames, and how many are copies.

    `hidden` has the times of pictures that could not be decoded and are hidden as well as possible.
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
    heard: Footage | None = None,
    smart: bool = True,
) -> ClipFacts:
    """Cut a part of the film, given in seconds of media time; what lies outside the film is left out.

    The sound comes from `heard`, if that is another file. Without `smart` every picture is encoded anew.

    Raises:
        BadMedia: there is nothing between the two moments.
    """
    track, sound = facts.video, facts.sound
    whole = [(t.start * t.base, t.end * t.base) for t in (track, sound) if t is not None]
    start, end = max(start, min(a for a, _ in whole)), min(end, max(b for _, b in whole))
    if start >= end:
        raise BadMedia("the clip is outside the video", "Choose a start and an end within it.")
    with create_file(out, {"movflags": "+faststart"}) as container:
        if track is None:
            assert sound is not None
            ClipAudio(container, heard or path, sound, start, end).finish()
            return ClipFacts(start, end, 0)
        span = _span(track, start, end)

        def sounding(zero: int) -> ClipAudio | None:
            return ClipAudio(container, heard or path, sound, zero * span.base, span.end * span.base) if sound else None

        return _cut(ClipWork(container, path, facts, track, span, sounding, on_progress, []), smart)


def _span(track: VideoTrack, start: Fraction, end: Fraction) -> Span:
    """The part of the pictures, of which at least one moment is shown."""
    first, last = max(rescale_up(start, track.base), track.start), min(rescale_up(end, track.base), track.end)
    if first >= track.end or last <= track.start:
        raise BadMedia("there is no frame in that range", "Choose a longer range.")
    return Span(min(first, last - 1), last, track.base)


def _cut(order: ClipWork, smart: bool) -> ClipFacts:
    found = find_cut_points(order.path, order.track, order.span) if smart else None
    zero, frames = SmartCutWriter(order, found).write() if found else FullEncoder(order).write()
    base = order.span.base
    hidden = tuple(pts * base for pts in order.hidden)
    return ClipFacts(zero * base, order.span.end * base, frames, found.copied if found else 0, hidden)
