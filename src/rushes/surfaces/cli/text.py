"""Text for people: clean of control characters, and times, sizes and ranges as they are read out."""

import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path

from rich.cells import cell_len, set_cell_size

from rushes.domain.span import clock

_JOINERS = "\u200c\u200d"  # scripts and emoji need them, terminals ignore them
_UNITS = (("h", 3600.0, 5400), ("min", 60.0, 90), ("s", 1.0, 0))  # and from how many seconds each is used
APART = 1.05  # a range that is wider than this has two ends, if need be in a finer unit
_ASCII = dict(zip("\u2018\u2019\u201c\u201d\u2013\u2014\u00d7", "''\"\"--x", strict=True)) | {"\u2026": "..."}


def clean(text: str, *, utf8: bool = True) -> str:
    """One line without a single character that a terminal could obey.

    Names and words come from footage, so they are hostile: escape sequences, bidirectional overrides, newlines.
    Without UTF-8 only ASCII is left, because bytes of other letters are control characters to an old terminal.
    """
    return "".join(_safe(c, utf8) for c in text)


def clean_lines(text: str, *, utf8: bool = True) -> str:
    """The same for a text of several lines."""
    return "\n".join(clean(line, utf8=utf8) for line in re.split(r"\r\n|\r|\n", text))


def _safe(c: str, utf8: bool) -> str:
    if " " <= c <= "~":
        return c
    kind = unicodedata.category(c)
    if kind in ("Zl", "Zp") or c in "\t\n\r":
        return " "
    if kind == "Cc":
        return ""
    if kind == "Cf":
        return c if utf8 and c in _JOINERS else ""
    if kind in ("Cs", "Co", "Cn"):
        return "�" if utf8 else "?"
    return c if utf8 else _plain(c)


def _plain(c: str) -> str:
    if c in _ASCII:
        return _ASCII[c]
    kept = unicodedata.normalize("NFKD", c).encode("ascii", "ignore").decode("ascii")
    return kept or ("" if unicodedata.combining(c) else "?")


def size(count: int) -> str:
    """1.3 GB."""
    value = float(count)
    for unit in ("bytes", "kB", "MB", "GB"):
        if value < 999.5:
            return f"{value:.0f} {unit}" if unit == "bytes" or value >= 99.5 else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def lasted(seconds: float) -> str:
    """22 min 10 s."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def between(span: Sequence[float] | None) -> str:
    """A range of seconds: 6-9 min; never more exact than it is."""
    if span is None:
        return "measuring"
    low, high = span[0], max(span[0], span[1])
    if high < 1:
        return "under 1 s"
    units = [unit for unit in _UNITS if high >= unit[2]]
    told = [(_figure(low / over, unit), _figure(high / over, unit), unit) for unit, over, _ in units]
    wide = high > APART * low
    a, b, unit = next((one for one in told if wide and one[0] != one[1]), told[0])
    return f"{b} {unit}" if a == b else f"{a}-{b} {unit}"


def times(speed: float | None) -> str:
    """Speed against real time: 3.1x."""
    if speed is None:
        return ""
    return f"{speed:.0f}x" if speed >= 99.5 else f"{speed:.1f}x"


def many(count: int, one: str, more: str = "") -> str:
    """1 hit, 2 hits."""
    return f"{count} {one if count == 1 else more or one + 's'}"


def brief(name: str, room: int) -> str:
    """A name in so many cells (0 = as many as it has), its end kept because that says what kind of file it is."""
    name = clean(name)
    if not room or cell_len(name) <= room:
        return name
    tail = name[-8:] if cell_len(name[-8:]) <= 8 else name[-4:]
    return f"{set_cell_size(name, max(1, room - 3 - cell_len(tail))).rstrip()}...{tail}"


def nearby(path: str | Path) -> str:
    """A path as it is shortest from here."""
    here = Path.cwd()
    return str(Path(path).relative_to(here)) if Path(path).is_relative_to(here) else str(path)


def length(us: int) -> str:
    """How long a film is: 41:38."""
    return clock(us, 0)


def _figure(value: float, unit: str) -> str:
    if unit == "h":
        return f"{value:.1f}".removesuffix(".0")
    return str(max(1, round(value)))
