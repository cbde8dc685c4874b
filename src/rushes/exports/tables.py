"""Observations as tables: CSV for spreadsheets, JSON Lines for programs. Pure."""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence

from rushes.domain.keys import JSON, canonical
from rushes.domain.observation import Observation
from rushes.domain.span import clock, to_us

COLUMNS = ("video", "kind", "start", "end", "start_us", "end_us", "language", "confidence", "text")
_FORMULA = ("=", "+", "@", "\t", "\r")


def as_csv(observations: Iterable[Observation], video: str = "") -> bytes:
    """One row per observation; formulas are escaped with an apostrophe."""
    spans = ((o, o.span.start_us, o.span.end_us) for o in observations)
    rows = ((video, o.kind, clock(a), clock(b), a, b, o.language, o.confidence, o.text) for o, a, b in spans)
    return write_csv(COLUMNS, rows)


def write_csv(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    """A table in which no text is a formula."""
    out = io.StringIO(newline="")
    table = csv.writer(out)
    table.writerow(columns)
    table.writerows([_cell(value) if isinstance(value, str) else value for value in row] for row in rows)
    return out.getvalue().encode("utf-8", "replace")


def as_json_lines(observations: Iterable[Observation], video: str = "") -> bytes:
    """One object per observation, with all its fields and its time in microseconds."""
    more = {"video": video} if video else {}
    rows = (o.to_json() | more | {"start_us": o.span.start_us, "end_us": o.span.end_us} for o in observations)
    return b"".join(canonical(row) + b"\n" for row in rows)


def as_words(lines: Iterable[Observation], video: str = "") -> bytes:
    """Every spoken word with its times, in microseconds and in exact ticks, as one JSON document."""
    said = [word for line in lines for word in _words(line)]
    return json.dumps({"video": video, "words": said}, indent=1).encode() + b"\n"


def _words(line: Observation) -> Iterator[dict[str, JSON]]:
    """The words of a line; a corrected line is one word with the times of the line."""
    base = line.span.base
    whole = (line.text, line.span.start, line.span.end, line.confidence)
    for text, start, end, sure in line.words or ((whole,) if line.text else ()):
        yield {
            "text": text.strip(),
            "start_us": to_us(start, base),
            "end_us": to_us(end, base),
            "span": [start, end, base.numerator, base.denominator],
            "confidence": sure,
            "language": line.language,
        }


def _cell(text: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    text = text.replace("\0", "")
    runs = text.startswith(_FORMULA) or (text.startswith("-") and text[1:2].strip() != "")
    return f"'{text}" if runs else text
