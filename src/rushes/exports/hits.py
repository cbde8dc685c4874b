"""Search hits as CSV, JSON Lines and EDL. Pure."""

import csv
import io
from collections.abc import Iterable, Sequence

from rushes.domain.errors import Refused
from rushes.domain.keys import JSON, canonical
from rushes.domain.span import clock
from rushes.exports.tables import cell
from rushes.exports.timelines import TimelineMedia, ascii_text, timecode
from rushes.index.port import Hit

COLUMNS = ("video", "name", "kind", "start", "end", "start_us", "end_us", "language", "confidence", "text")


def as_csv(hits: Iterable[Hit]) -> bytes:
    """One row per hit; formulas are escaped with an apostrophe."""
    out = io.StringIO(newline="")
    table = csv.writer(out)
    table.writerow(COLUMNS)
    for h in hits:
        times = (clock(h.start_us), clock(h.end_us), h.start_us, h.end_us)
        words = (cell(h.language), h.confidence, cell(h.text))
        table.writerow((h.video, cell(h.name), cell(h.kind), *times, *words))
    return out.getvalue().encode("utf-8", "replace")


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
    fps = -(-rate.numerator // rate.denominator)
    lines, at = [f"TITLE: {ascii_text(title, 70)}", "FCM: NON-DROP FRAME", ""], 0
    for n, (film, hit) in enumerate(cuts, 1):
        start, end = _frames(film, hit)
        times = [timecode(t, fps) for t in (start, end, at, at + end - start)]
        lines += [
            f"{n:03d}  AX       V     C        {' '.join(times)}",
            f"* FROM CLIP NAME: {ascii_text(film.name, 200)}",
            f"* COMMENT: {ascii_text(hit.text, 200)}",
        ]
        at += end - start
    return ("\r\n".join(lines) + "\r\n").encode("ascii")


def _frames(film: TimelineMedia, hit: Hit) -> tuple[int, int]:
    """The frames of a hit, end exclusive, at least one."""
    zero, rate = film.span.start * film.span.base, film.rate or 1
    start, end = ((t * hit.span.base - zero) * rate for t in (hit.span.start, hit.span.end))
    first = max(0, start.__floor__())
    return first, max(first + 1, end.__ceil__())
