"""Moments as people type them: 1:02:03.5, 754.25, 90s; and references to hits."""

import re
from fractions import Fraction

from rushes.domain.errors import Refused

_CLOCK = re.compile(r"^(?:(\d+):)?(\d+):([0-5]?\d(?:[.,]\d+)?)\Z", re.ASCII)
_SECONDS = re.compile(r"^(\d+(?:[.,]\d+)?)s?\Z", re.ASCII)
_HINT = "Write a time as 1:02:03.5, or as seconds (754.25)."


def parse_moment(text: str) -> int:
    """Microseconds from what a person typed.

    Raises:
        Refused: it is not a moment.
    """
    if found := _SECONDS.match(text):
        return _us(found[1])
    if found := _CLOCK.match(text):
        hours, minutes, seconds = found.groups()
        return (int(hours or 0) * 3600 + int(minutes) * 60) * 1_000_000 + _us(seconds)
    raise Refused(f"{text!r} is not a time", _HINT)


def parse_reference(text: str) -> tuple[str, int, int] | None:
    """VIDEO, start and end of `VIDEO@12:41.000-12:45.000`; None if the text is not such a reference."""
    video, at, span = text.rpartition("@")
    start, dash, end = span.partition("-")
    if not (video and at and dash):
        return None
    try:
        return video, parse_moment(start), parse_moment(end)
    except Refused:
        return None  # a file name with an @ in it


def _us(seconds: str) -> int:
    return int(Fraction(seconds.replace(",", ".")) * 1_000_000)
