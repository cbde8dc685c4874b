"""Timelines for editors, with markers: CMX3600 EDL in whole frames, OpenTimelineIO in exact rational times. Pure."""

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
from rushes.domain.video import BUCKETS

_MAX_OFFSET = Fraction(1, 8)  # of a frame: whole milliseconds at 120 fps are 1/17 off, a dropped frame is 1


@dataclass(frozen=True, slots=True)
class TimelineMedia:
    """The film that a timeline cuts: where its picture begins and ends, and its frame rate if it has one."""

    name: str
    path: str
    span: Span
    rate: Fraction | None
    sound: bool = False


@dataclass(frozen=True, slots=True)
class Marker:
    """Something that is said or seen, for the timeline of an editor: when, in film time, and its colour there."""

    text: str
    span: Span
    kind: str

    @property
    def colour(self) -> str:
        """One for each kind, of those that editors know."""
        return {"speech": "GREEN", "person": "CYAN", "text": "YELLOW"}.get(self.kind, "RED")


def edl(film: TimelineMedia, shots: Sequence[Span], markers: Iterable[Marker] = ()) -> bytes:
    """A CMX3600 list of the shots, cut after cut: frame counts as non-drop time code, ends exclusive.

    The cuts join without a gap, so that a marker (`* LOC:`) has the same time in the list as in the film.
    Raises:
        Refused: the frames have no constant rate, so that time code cannot name them.
    """
    cuts = _frames(film, shots)
    if cuts is None or film.rate is None:
        hint = "Export otio, which is exact."
        raise Refused(f"{film.name} has a variable frame rate, so an EDL would be wrong", hint)
    first, at = film.span.start * film.span.base, list[tuple[int, Marker]]()
    for marker in markers:
        at.append((max(0, ((marker.span.start * marker.span.base - first) * film.rate).__floor__()), marker))
    rows = [
        Cut(cut, {"FROM CLIP NAME": film.name}, film.sound, [m for m in at if cut[0] <= m[0] < cut[1]]) for cut in cuts
    ]
    return cmx3600(film.name, film.rate, rows)


@dataclass(frozen=True, slots=True)
class Cut:
    """First and end frame of a cut, what is noted of it, whether its sound is cut too, and markers by their frames."""

    frames: tuple[int, int]
    notes: Mapping[str, str]
    sound: bool = False
    markers: Sequence[tuple[int, Marker]] = ()


def cmx3600(title: str, rate: Fraction, cuts: Iterable[Cut]) -> bytes:
    """The list itself."""
    fps = -(-rate.numerator // rate.denominator)  # 24000/1001 counts 24 frames to a second of time code
    lines, at = [f"TITLE: {_ascii(title, 70)}", "FCM: NON-DROP FRAME", ""], 0
    for n, cut in enumerate(cuts, 1):
        (start, end), tracks = cut.frames, "AA/V" if cut.sound else "V"
        times = " ".join(_timecode(t, fps) for t in (start, end, at, at + end - start))
        lines += [f"{n:03d}  AX       {tracks:<5} C        {times}"]
        lines += [f"* {k}: {_ascii(v, 200)}" for k, v in cut.notes.items()]
        for frame, marker in cut.markers:
            lines.append(f"* LOC: {_timecode(at + frame - start, fps)} {marker.colour:<7} {_ascii(marker.text, 60)}")
        at += end - start
    return ("\r\n".join(lines) + "\r\n").encode("ascii")


def otio(film: TimelineMedia, shots: Sequence[Span], markers: Iterable[Marker] = ()) -> bytes:
    """An OpenTimelineIO timeline of the shots: in frames at a constant rate, else in ticks of the film's base.

    The sound is a track of its own, cut at the same places; markers stand on the shot in which they begin.
    """
    frames = _frames(film, shots)
    if frames is not None and film.rate is not None:
        whole, rate, cuts = _frame(film.span.end, film, film.rate)[0], film.rate, frames
    else:
        whole, rate = film.span.end - film.span.start, 1 / film.span.base
        cuts = [(s.start - film.span.start, s.end - film.span.start) for s in shots]
    media: JSON = {"OTIO_SCHEMA": "ExternalReference.1", "name": clean_text(film.name), "target_url": _url(film.path)}
    media |= {"available_range": _range(0, whole, rate), "metadata": {}}
    marked = [_marker(marker, film, rate) for marker in markers]
    clips = [
        _clip(f"{film.name} {n}", _range(a, b, rate), media) | {"markers": [doc for at, doc in marked if a <= at < b]}
        for n, (a, b) in enumerate(cuts, 1)
    ]
    tracks = [_track("V1", "Video", clips)]
    if film.sound:
        tracks.append(_track("A1", "Audio", [clip | {"markers": []} for clip in clips]))
    return (json.dumps(_timeline(film.name, tracks), indent=2) + "\n").encode("ascii")


def otio_cuts(title: str, cuts: Iterable[tuple[TimelineMedia, Marker]]) -> bytes:
    """A timeline of cuts of several films, each with its marker, in frames of its film (or ticks, without a rate)."""
    rows = []
    for film, marker in cuts:
        rate = film.rate or 1 / film.span.base
        start, doc = _marker(marker, film, rate)
        end = ((marker.span.end * marker.span.base - film.span.start * film.span.base) * rate).__ceil__()
        cut = _range(start, max(start + 1, end), rate)
        media: JSON = {"OTIO_SCHEMA": "ExternalReference.1", "name": clean_text(film.name), "metadata": {}}
        media |= {"target_url": _url(film.path), "available_range": None}
        rows.append((film, _clip(film.name, cut, media) | {"markers": [doc]}))
    tracks = [_track("V1", "Video", [clip for _, clip in rows])]
    if any(film.sound for film, _ in rows):
        tracks.append(_track("A1", "Audio", [clip | {"markers": []} for _, clip in rows]))
    return (json.dumps(_timeline(title, tracks), indent=2) + "\n").encode("ascii")


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


def _timeline(name: str, tracks: list[JSON]) -> JSON:
    stack = {"OTIO_SCHEMA": "Stack.1", **_item("tracks"), "children": tracks}
    head: JSON = {"OTIO_SCHEMA": "Timeline.1", "name": clean_text(name), "global_start_time": None, "metadata": {}}
    return head | {"tracks": stack}


def _track(name: str, kind: str, clips: list[JSON]) -> JSON:
    return {"OTIO_SCHEMA": "Track.1", "kind": kind, **_item(name), "children": clips}


def _marker(marker: Marker, film: TimelineMedia, rate: Fraction) -> tuple[int, JSON]:
    """Where it begins in the film, and the marker."""
    zero, base = film.span.start * film.span.base, marker.span.base
    start, end = (((t * base - zero) * rate).__floor__() for t in (marker.span.start, marker.span.end))
    text = clean_text(marker.text)
    doc: JSON = {"OTIO_SCHEMA": "Marker.2", "name": text[:60], "color": marker.colour, "comment": text}
    doc |= {"marked_range": _range(start, max(start + 1, end), rate), "metadata": {"rushes": {"kind": marker.kind}}}
    return max(0, start), doc


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
    """Of a file, or of a film in a bucket (s3://bucket/key)."""
    scheme = next((scheme for scheme in BUCKETS if path.startswith(scheme)), "")
    return (scheme or "file://" * path.startswith("/")) + quote(os.fsencode(path.removeprefix(scheme)))
