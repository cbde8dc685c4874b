"""Exact clips of an original or its proxy: frames with start <= time < end, sound to the sample, times from zero."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import BinaryIO

from rushes.domain.errors import BadMedia
from rushes.domain.span import Span, rescale_up
from rushes.domain.video import Footage, VideoFacts, VideoTrack
from rushes.media.clips.encoding import ClipAudio, ClipWork, FullEncoder
from rushes.media.clips.smart_cut import SmartCutWriter, find_cut_points
from rushes.media.developing.hls import SegmentIndex
from rushes.media.encoders import aac_rate
from rushes.media.open import create_file, open_bytes
from rushes.media.reading.probe import probe
from rushes.media.timeline import movie_timescale, shift_seconds, timescale

Progress = Callable[[float], None]
Part = tuple[Fraction, Fraction]  # start and end, in seconds of media time
ProxyFile = tuple[Footage, SegmentIndex]  # the file is opened when it is read, if it is


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

    The sound comes from `heard`, if that is another file. Without `smart` every picture is re-encoded.

    Raises:
        BadMedia: there is nothing between the two moments.
    """
    track, sound = facts.video, facts.sound
    whole = [(t.start * t.base, t.end * t.base) for t in (track, sound) if t is not None]
    start, end = max(start, min(a for a, _ in whole)), min(end, max(b for _, b in whole))
    if start >= end:
        raise BadMedia("the clip is outside the video", "Choose a start and an end within it.")
    scales = [*([timescale(track.base)] if track else []), *([aac_rate(sound)] if sound else [])]
    options = {"movflags": "+faststart", "movie_timescale": str(movie_timescale(*scales))}
    with create_file(out, options) as container:
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


@dataclass(frozen=True, slots=True)
class ProxyFiles:
    """The files of a proxy in order of time: pictures and sound."""

    pictures: Sequence[ProxyFile]
    sounds: Sequence[ProxyFile]


def clip_from_proxy(
    proxy: ProxyFiles, facts: VideoFacts, part: Part, scratch: Path, out: Path, on_progress: Progress
) -> ClipFacts:
    """Cut a part of the film, in seconds of media time, out of its proxy; times as exact as from the original.

    Raises:
        BadMedia: the proxy has nothing there.
    """
    shift = shift_seconds(facts)
    pictures = _concatenate(proxy.pictures, part, scratch / "pictures.mp4")
    sound = _concatenate(proxy.sounds, part, scratch / "sound.mp4")
    if pictures is None and sound is None:
        raise BadMedia("the clip is outside the video", "Choose a start and an end within it.")
    source = pictures or sound or out
    seen = replace(probe(source), audio=probe(sound).audio if sound else ())
    start, end = part[0] + shift, part[1] + shift
    made = cut_clip(source, seen, start, end, out, on_progress, heard=sound)
    hidden = tuple(moment - shift for moment in made.hidden)
    return replace(made, start=made.start - shift, end=made.end - shift, hidden=hidden)


def _concatenate(pieces: Sequence[ProxyFile], part: Part, out: Path) -> Path | None:
    """The segments of a part in one file, or None if there are none.

    Raises:
        BadMedia: they do not share a header, or one is not there.
    """
    headers: set[bytes] = set()
    with out.open("wb") as file:
        for piece, layout in pieces:
            start, end = (moment / layout.base for moment in part)
            touched = [s for s in layout.segments if s.start < end and s.start + s.duration > start]
            if touched:
                with open_bytes(piece) as opened:
                    header = opened.read(layout.init)
                    file.write(header if not headers else b"")
                    headers.add(header)
                    _append_range(file, opened, touched[0].offset, touched[-1].offset + touched[-1].length)
    if len(headers) > 1:
        raise BadMedia("the format of the proxy changes within the clip", "Cut the clip from the original.")
    return out if headers else None


def _append_range(file: BinaryIO, piece: BinaryIO, start: int, end: int) -> None:
    """Segments that follow each other in a piece are one stretch of bytes."""
    piece.seek(start)
    while (left := end - piece.tell()) > 0:
        data = piece.read(min(left, 1 << 20))
        if not data:
            raise BadMedia("the proxy ends too early", "See: rushes verify --repair")
        file.write(data)
