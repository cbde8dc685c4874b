"""Timelines for editors: CMX3600 EDL in whole frames, and OpenTimelineIO in exact rational times. Pure."""

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from urllib.parse import quote

from rushes.domain.errors import Refused
from rushes.domain.keys import JSON
from rushes.domain.span import Span
from rushes.domain.text import clean_text

_MAX_OFFSET = Fraction(1, 8)  # of a frame: whole milliseconds at 120 fps are 1/17 off, a dropped frame is 1


@dataclass(frozen=True, slots=True)
class TimelineMedia:
    """The film that a timeline cuts: where its picture begins and ends, and its frame rate if it has one."""

    name: str
    path: str
    span: Span
    rate: Fraction | None


def edl(film: TimelineMedia, shots: Sequence[Span]) -> bytes:
    """A CMX3600 list of the shots, cut after cut: frame counts as non-drop time code, ends exclusive.

    Raises:
        Refused: the frames have no constant rate, so that time code cannot name them.
    """
    cuts = _frames(film, shots)
    if cuts is None or film.rate is None:
        hint = "Export otio, which is exact."
        raise Refused(f"{film.name} has a variable frame rate, so an EDL would be wrong", hint)
    return cmx3600(film.name, film.rate, [(cut, {"FROM CLIP NAME": film.name}) for cut in cuts])


def cmx3600(title: str, rate: Fraction, cuts: Iterable[tuple[tuple[int, int], Mapping[str, str]]]) -> bytes:
    """The list itself: first and end frame of each cut, and what is noted of it."""
    fps = -(-rate.numerator // rate.denominator)  # 24000/1001 counts 24 frames to a second of time code
    lines, at = [f"TITLE: {_ascii(title, 70)}", "FCM: NON-DROP FRAME", ""], 0
    for n, ((start, end), notes) in enumerate(cuts, 1):
        times = " ".join(_timecode(t, fps) for t in (start, end, at, at + end - start))
        lines += [f"{n:03d}  AX       V     C        {times}", *(f"* {k}: {_ascii(v, 200)}" for k, v in notes.items())]
        at += end - start
    return ("\r\n".join(lines) + "\r\n").encode("ascii")


def otio(film: TimelineMedia, shots: Sequence[Span]) -> bytes:
    """An OpenTimelineIO timeline of the shots: in frames at a constant rate, else in ticks of the film's base."""
    frames = _frames(film, shots)
    if frames is not None and film.rate is not None:
        whole, rate, cuts = _frame(film.span.end, film, film.rate)[0], film.rate, frames
    else:
        whole, rate = film.span.end - film.span.start, 1 / film.span.base
        cuts = [(s.start - film.span.start, s.end - film.span.start) for s in shots]
    media: JSON = {"OTIO_SCHEMA": "ExternalReference.1", "name": clean_text(film.name), "target_url": _url(film.path)}
    media |= {"available_range": _range(0, whole, rate), "metadata": {}}
    clips = [_clip(f"{film.name} {n}", _range(a, b, rate), media) for n, (a, b) in enumerate(cuts, 1)]
    return (json.dumps(_timeline(film.name, clips), indent=2) + "\n").encode("ascii")


def _frames(film: TimelineMedia, shots: Sequence[Span]) -> list[tuple[int, int]] | None:
    """First and end frame of each shot; None if some cut lies between frames of the nominal rate."""
    if film.rate is None or not 1 <= film.rate < 100:
        return None
    cuts = [(_frame(s.start, film, film.rate), _frame(s.end, film, film.rate)) for s in shots]
    ends = {film.span.end}  # the last frame may be shown for longer than the others
    off = max((o for s, cut in zip(shots, cuts, strict=True) for _, o in cut[: 1 if s.end in ends else 2]), default=0)
    return None if off > _MAX_OFFSET else [(start, end) for (start, _), (end, _) in cuts]


def _frame(tick: int, film: TimelineMedia, rate: Fraction) -> tuple[int, Fraction]:
    """The number of the frame that begins at a tick, and how far off the grid the tick is."""
    exact = (tick - film.span.start) * film.span.base * rate
    number = (exact + Fraction(1, 2)).__floor__()
    return number, abs(exact - number)


def _timecode(frames: int, fps: int) -> str:
    """A count of frames as non-drop time code."""
    seconds, frame = divmod(frames, fps)
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}:{frame:02d}"


def _ascii(text: str, longest: int) -> str:
    """A text that every editor takes."""
    return re.sub(r"[^\x20-\x7e]", "_", text)[:longest]


def _timeline(name: str, clips: list[JSON]) -> JSON:
    track = {"OTIO_SCHEMA": "Track.1", "kind": "Video", **_item("V1"), "children": clips}
    stack = {"OTIO_SCHEMA": "Stack.1", **_item("tracks"), "children": [track]}
    head: JSON = {"OTIO_SCHEMA": "Timeline.1", "name": clean_text(name), "global_start_time": None, "metadata": {}}
    return head | {"tracks": stack}


def _clip(name: str, source_range: JSON, media: JSON) -> JSON:
    return {"OTIO_SCHEMA": "Clip.1", **_item(clean_text(name)), "source_range": source_range, "media_reference": media}


def _item(name: str) -> dict[str, JSON]:
    return {"name": name, "metadata": {}, "source_range": None, "effects": [], "markers": [], "enabled": True}


def _range(start: int, end: int, rate: Fraction) -> JSON:
    at, length = (
        {"OTIO_SCHEMA": "RationalTime.1", "rate": float(rate), "value": float(value)} for value in (start, end - start)
    )
    return {"OTIO_SCHEMA": "TimeRange.1", "start_time": at, "duration": length}


def _url(path: str) -> str:
    return ("file://" if path.startswith("/") else "") + quote(os.fsencode(path))
