"""The grid: one video cut into chunks at key frames, the same for every stage of a job."""

from fractions import Fraction

from rushes.domain.span import Span, rescale_up
from rushes.domain.video import AudioTrack, VideoFacts, VideoTrack


def grid(facts: VideoFacts, seconds: int, max_bytes: int = 0) -> tuple[Span, ...]:
    """The chunks of a video, in order, without gaps: each begins at a key frame (audio alone: anywhere).

    A chunk ends at the first key frame at or after `seconds` (or `max_bytes`) from its start.
    """
    if facts.video is None:
        return _sound_grid(facts.sound, seconds) if facts.sound else ()
    length = Fraction(seconds)
    if max_bytes and facts.size > max_bytes:
        length = min(length, max(Fraction(1), facts.duration * max_bytes / facts.size))
    return _picture_grid(facts.video, length)


def trial_grid(facts: VideoFacts, seconds: int = 4) -> tuple[Span, ...]:
    """One short chunk from the middle of the film."""
    spans = grid(facts, seconds)
    return (spans[len(spans) // 2],)


def _picture_grid(track: VideoTrack, length: Fraction) -> tuple[Span, ...]:
    if not track.seekable:
        return (track.span,)
    step = rescale_up(length, track.base)
    bounds = [track.start]
    for key in track.keys:
        if key - bounds[-1] >= step and key < track.end:
            bounds.append(key)
    return tuple(Span(a, b, track.base) for a, b in zip(bounds, [*bounds[1:], track.end], strict=True))


def _sound_grid(track: AudioTrack, seconds: int) -> tuple[Span, ...]:
    step = rescale_up(Fraction(seconds), track.base)
    bounds = [*range(track.start, track.end, step)]
    return tuple(Span(a, b, track.base) for a, b in zip(bounds, [*bounds[1:], track.end], strict=True))
