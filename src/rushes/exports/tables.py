"""Observations as tables: CSV for spreadsheets, JSON Lines for programs, Parquet for data frames. Pure."""

import csv
import io
import json
from collections.abc import Iterable, Iterator
from importlib import import_module

from rushes.domain.keys import JSON, canonical
from rushes.domain.observation import Observation
from rushes.domain.span import clock, to_us

COLUMNS = ("video", "kind", "start", "end", "start_us", "end_us", "language", "confidence", "text")
_FORMULA = ("=", "+", "@", "\t", "\r")


def as_csv(observations: Iterable[Observation], video: str = "") -> bytes:
    """One row per observation; a text that a spreadsheet would run as a formula is led by an apostrophe."""
    spans = ((o, o.span.start_us, o.span.end_us) for o in observations)
    rows = ((video, o.kind, clock(a), clock(b), a, b, o.language, o.confidence, o.text) for o, a, b in spans)
    return csv_bytes(COLUMNS, rows)


def as_json_lines(observations: Iterable[Observation], video: str = "") -> bytes:
    """One object per observation: everything it holds, and its time in microseconds."""
    more = {"video": video} if video else {}
    rows = (o.to_json() | more | {"start_us": o.span.start_us, "end_us": o.span.end_us} for o in observations)
    return b"".join(canonical(row) + b"\n" for row in rows)


def as_parquet(observations: Iterable[Observation], video: str = "") -> bytes:
    """One row per observation with typed columns; places in the picture as four numbers, all else as JSON.

    Raises:
        ModuleNotFoundError: the extra `parquet` is not installed.
    """
    arrow = import_module("pyarrow")
    texts = ("video", "kind", "text", "language")
    columns = {**dict.fromkeys(texts, arrow.string()), "start_us": arrow.int64(), "end_us": arrow.int64()}
    columns |= {"confidence": arrow.float64(), "box": arrow.list_(arrow.float64()), "extra": arrow.string()}
    rows: list[dict[str, JSON]] = [
        {"video": _text(video), "kind": o.kind, "text": _text(o.text), "language": o.language}
        | {"start_us": o.span.start_us, "end_us": o.span.end_us, "confidence": o.confidence}
        | {"box": list(o.box) if o.box else None, "extra": canonical(dict(o.extra)).decode("ascii")}
        for o in observations
    ]
    out = io.BytesIO()
    import_module("pyarrow.parquet").write_table(arrow.Table.from_pylist(rows, arrow.schema(columns.items())), out)
    return out.getvalue()


def _text(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def as_words(lines: Iterable[Observation], video: str = "") -> bytes:
    """Every spoken word with its times, as one JSON document: in microseconds, and exact in ticks of its own base."""
    said = [word for line in lines for word in _words(line)]
    return json.dumps({"video": video, "words": said}, indent=1).encode() + b"\n"


def _words(line: Observation) -> Iterator[dict[str, JSON]]:
    """The words of a line; one that somebody corrected has no times of its own but the line's."""
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


def csv_bytes(columns: Iterable[str], rows: Iterable[Iterable[str | float]]) -> bytes:
    """A table of which no spreadsheet runs a cell."""
    out = io.StringIO(newline="")
    table = csv.writer(out)
    table.writerow(columns)
    table.writerows([_cell(value) if isinstance(value, str) else value for value in row] for row in rows)
    return out.getvalue().encode("utf-8", "replace")


def _cell(text: str) -> str:
    text = text.replace("\0", "")
    runs = text.startswith(_FORMULA) or (text.startswith("-") and text[1:2].strip() != "")
    return f"'{text}" if runs else text
