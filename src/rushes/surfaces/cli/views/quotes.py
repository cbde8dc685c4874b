"""A hit as a quote: the line around it with the found words marked, and the reference for `rushes clip`."""

from collections.abc import Sequence

from rushes.domain.span import clock
from rushes.library.search import Hit, Piece
from rushes.surfaces.cli.screen import MARK, Part
from rushes.surfaces.cli.text import clean

_DOTS = "..."


def reference(hit: Hit) -> str:
    """`VIDEO@12:41.000-12:45.000`; the end is rounded up, so that the last word is whole."""
    end = -(-hit.end_us // 1000) * 1000
    return f"{hit.video}@{clock(hit.start_us)}-{clock(end)}"


def quote_parts(pieces: Sequence[Piece], room: int, *, utf8: bool) -> list[Part]:
    """The line in quotes, found words marked, cut to so many cells around the first of them (0 = all)."""
    tidy = [(clean(text, utf8=utf8), found) for text, found in pieces]
    whole = sum(len(text) for text, _ in tidy)
    start, end = _window(tidy, whole, room - 2) if room else (0, whole)
    parts: list[Part] = ['"' + (_DOTS if start else "")]
    at = 0
    for text, found in tidy:
        some = text[max(0, start - at) : max(0, end - at)]
        at += len(text)
        parts += [(some, MARK) if found else some] if some else []
    return [*parts, (_DOTS if end < whole else "") + '"']


def _window(pieces: Sequence[Piece], whole: int, room: int) -> tuple[int, int]:
    if whole <= room:
        return 0, whole
    room -= 2 * len(_DOTS)
    first = 0
    for text, found in pieces:
        if found:
            break
        first += len(text)
    start = min(max(0, first - room // 3), max(0, whole - room))
    return start, start + room
