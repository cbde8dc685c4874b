"""Search hits as CSV, JSON Lines and EDL. Pure."""

from collections.abc import Iterable, Sequence

from rushes.domain.errors import Refused
from rushes.domain.keys import JSON, canonical
from rushes.domain.span import clock
from rushes.exports.tables import write_csv
from rushes.exports.timelines import TimelineMedia, cmx3600
from rushes.index.port import Hit

COLUMNS = ("video", "name", "kind", "start", "end", "start_us", "end_us", "language", "confidence", "text")


def as_csv(hits: Iterable[Hit]) -> bytes:
    """One row per hit; formulas are escaped with an apostrophe."""
    spans = ((h, h.start_us, h.end_us) for h in hits)
    rows = ((h.video, h.name, h.kind, clock(a), clock(b), a, b, h.language, h.confidence, h.text) for h, a, b in spans)
    return write_csv(COLUMNS, rows)


def as_json_lines(hits: Iterable[Hit]) -> bytes:
    """One object per hit, with all its fields."""
    return b"".join(canonical(hit_doc(hit)) + b"\n" for hit in hits)


def hit_doc(hit: Hit) -> dict[str, JSON]:
    """A hit as JSON."""
    return {
        "video": hit.video,
        "name": hit.name,
        "kind": hit.kind,
        "start_us": hit.start_us,
        "end_us": hit.end_us,
        "thumb_us": hit.thumb_us,
        "span": hit.span.to_json(),
        "line": hit.line.to_json(),
        "text": hit.text,
        "pieces": [list(piece) for piece in hit.pieces],
        "language": hit.language,
        "confidence": hit.confidence,
        "score": hit.score,
        "matched": [{"kind": m.kind, "span": m.span.to_json(), "text": m.text} for m in hit.matched],
    }


def as_edl(title: str, cuts: Sequence[tuple[TimelineMedia, Hit]]) -> bytes:
    """A CMX3600 list: the whole frames of each hit, as non-drop time code of its film.

    Raises:
        Refused: the films have variable or different frame rates.
    """
    rates = {film.rate for film, _ in cuts}
    rate = next(iter(rates), None)
    if rate is None or len(rates) > 1:
        raise Refused("these videos have different frame rates, so an EDL would be wrong", "Export csv, or one video.")
    notes = [(f"FROM CLIP NAME: {film.name}", f"COMMENT: {hit.text}") for film, hit in cuts]
    frames = (_frames(film, hit) for film, hit in cuts)
    return cmx3600(title, rate, ((start, end, note) for (start, end), note in zip(frames, notes, strict=True)))


def _frames(film: TimelineMedia, hit: Hit) -> tuple[int, int]:
    """The frames of a hit, end exclusive, at least one."""
    zero, rate = film.span.start * film.span.base, film.rate or 1
    start, end = ((t * hit.span.base - zero) * rate for t in (hit.span.start, hit.span.end))
    first = max(0, start.__floor__())
    return first, max(first + 1, end.__ceil__())
