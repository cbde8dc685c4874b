"""Clips from the proxy: the segments of the range behind one init segment are a film like any other."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import BinaryIO

from rushes.domain.errors import BadMedia
from rushes.domain.video import VideoFacts
from rushes.media.clips.clip import ClipFacts, cut_clip
from rushes.media.developing.segment_index import SegmentIndex
from rushes.media.reading.probe import probe
from rushes.media.timeline import shift_seconds

ProxyFile = tuple[Callable[[], Path], SegmentIndex]  # the file is fetched only if it is read


@dataclass(frozen=True, slots=True)
class ProxyFiles:
    """The files of a proxy in order of time."""

    pictures: Sequence[ProxyFile]
    sounds: Sequence[ProxyFile]


def clip_from_proxy(
    proxy: ProxyFiles,
    facts: VideoFacts,
    part: tuple[Fraction, Fraction],
    scratch: Path,
    out: Path,
    on_progress: Callable[[float], None],
) -> ClipFacts:
    """Cut a range of the film, in seconds of media time, from its proxy, as exact in time as from the original.

    Raises:
        BadMedia: the proxy has nothing there.
    """
    shift = shift_seconds(facts)
    pictures, sound = (
        _concatenate(pieces, part, scratch / name)
        for pieces, name in ((proxy.pictures, "pictures.mp4"), (proxy.sounds, "sound.mp4"))
    )
    if pictures is None and sound is None:
        raise BadMedia("the clip is outside the video", "Choose a start and an end within it.")
    seen = probe(pictures or sound or out)
    heard = probe(sound).audio if sound else ()
    made = cut_clip(
        pictures or sound or out,
        replace(seen, audio=heard),
        part[0] + shift,
        part[1] + shift,
        out,
        on_progress,
        audio_path=sound,
    )
    hidden = tuple(moment - shift for moment in made.hidden)
    return replace(made, start=made.start - shift, end=made.end - shift, hidden=hidden)


def _concatenate(pieces: Sequence[ProxyFile], part: tuple[Fraction, Fraction], out: Path) -> Path | None:
    """The segments of a range in one file, or None if there are none.

    Raises:
        BadMedia: their init segments differ, or one is truncated.
    """
    headers: set[bytes] = set()
    with out.open("wb") as file:
        for ask, layout in pieces:
            base = layout.base
            touched = [
                s for s in layout.segments if s.start * base < part[1] and (s.start + s.duration) * base > part[0]
            ]
            if touched:
                path = ask()
                header = layout.init_segment(path)
                file.write(header if not headers else b"")
                headers.add(header)
                _append_range(file, path, touched[0].offset, touched[-1].offset + touched[-1].length)
    if len(headers) > 1:
        raise BadMedia("the format of the proxy changes within the clip", "Cut the clip from the original.")
    return out if headers else None


def _append_range(file: BinaryIO, path: Path, start: int, end: int) -> None:
    """Append a byte range; adjacent segments are adjacent bytes."""
    with path.open("rb") as piece:
        piece.seek(start)
        while (left := end - piece.tell()) > 0:
            data = piece.read(min(left, 1 << 20))
            if not data:
                raise BadMedia("the proxy file is truncated", "Run: rushes verify --repair")
            file.write(data)
