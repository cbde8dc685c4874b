"""Observations as tables: CSV for spreadsheets, JSON Lines for programs. Pure."""

import csv
import io
import json
from collections.abc import Iterable, Iterator

from rushes.domain.keys import JSON, canonical
from rushes.domain.observation import Observation
from rushes.domain.span import clock, to_us

COLUMNS = ("video", "kind", "start", "end", "start_us", "end_us", "language", "confidence", "text")
_FORMULA = ("=", "+", "@", "\t", "\r")


def as_csv(observations: Iterable[Observation], video: str = "") -> bytes:
    """One row per observation; formulas are escaped with an apostrophe."""
    out = io.StringIO(newline="")
    table = csv.writer(out)
    table.writerow(COLUMNS)
    for o in observations:
        start, end = o.span.start_us, o.span.end_us
        times = (clock(start), clock(end), start, end)
        table.writerow((cell(video), cell(o.kind), *times, cell(o.language), o.confidence, cell(o.text)))
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


def cell(text: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    text = text.replace("\0", "")
    runs = text.startswith(_FORMULA) or (text.startswith("-") and text[1:2].strip() != "")
    return f"'{text}" if runs else text
