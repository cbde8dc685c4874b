"""Search hits for other tools: a table, JSON lines, a cut list over several videos. Pure."""

from collections.abc import Iterable, Sequence

from rushes.domain.errors import Refused
from rushes.domain.keys import JSON, canonical
from rushes.domain.span import clock
from rushes.exports.tables import csv_bytes
from rushes.exports.timelines import Cut, Marker, TimelineMedia, cmx3600, otio_cuts
from rushes.index.port import Hit

COLUMNS = ("video", "name", "kind", "start", "end", "start_us", "end_us", "language", "confidence", "text")


def as_csv(hits: Iterable[Hit]) -> bytes:
    """One row per hit; a text that a spreadsheet would run as a formula is led by an apostrophe."""
    times = ((h, (clock(h.start_us), clock(h.end_us), h.start_us, h.end_us)) for h in hits)
    return csv_bytes(COLUMNS, ((h.video, h.name, h.kind, *at, h.language, h.confidence, h.text) for h, at in times))


def as_json_lines(hits: Iterable[Hit]) -> bytes:
    """One object per hit: everything it holds."""
    return b"".join(canonical(hit_doc(hit)) + b"\n" for hit in hits)


def hit_doc(hit: Hit) -> dict[str, JSON]:
    """A hit for programs."""
    head = {name: getattr(hit, name) for name in ("video", "name", "kind", "start_us", "end_us", "thumb_us")}
    head |= {"span": hit.span.to_json(), "line": hit.line.to_json()}
    matched = [{"kind": m.kind, "span": m.span.to_json(), "text": m.text} for m in hit.matched]
    words = {"text": hit.text, "pieces": [list(piece) for piece in hit.pieces], "language": hit.language}
    return head | words | {"confidence": hit.confidence, "score": hit.score, "matched": matched}


def as_edl(title: str, cuts: Sequence[tuple[TimelineMedia, Hit]]) -> bytes:
    """A CMX3600 list, cut after cut: whole frames that hold the hit, as non-drop time code of each film.

    Raises:
        Refused: the films have no constant rate, or not the same: one list cannot count their frames.
    """
    rates = {film.rate for film, _ in cuts}
    rate = next(iter(rates), None)
    if rate is None or len(rates) > 1:
        raise Refused("these videos have different frame rates, so an EDL would be wrong", "Export csv, or one video.")
    return cmx3600(title, rate, [_cut(film, hit) for film, hit in cuts])


def as_otio(title: str, cuts: Sequence[tuple[TimelineMedia, Hit]]) -> bytes:
    """An OpenTimelineIO timeline, cut after cut, with a marker on each."""
    return otio_cuts(title, [(film, Marker(hit.text, hit.span, hit.kind)) for film, hit in cuts])


def _cut(film: TimelineMedia, hit: Hit) -> Cut:
    """The frames of a hit with a marker at its beginning."""
    frames, marker = _frames(film, hit), Marker(hit.text, hit.span, hit.kind)
    return Cut(frames, {"FROM CLIP NAME": film.name, "COMMENT": hit.text}, film.sound, [(frames[0], marker)])


def _frames(film: TimelineMedia, hit: Hit) -> tuple[int, int]:
    """The frames that hold a hit, end exclusive, at least one."""
    zero, rate = film.span.start * film.span.base, film.rate or 1
    start, end = ((t * hit.span.base - zero) * rate for t in (hit.span.start, hit.span.end))
    first = max(0, start.__floor__())
    return first, max(first + 1, end.__ceil__())
