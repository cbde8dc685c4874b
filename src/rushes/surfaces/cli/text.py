"""Text for a terminal: without control characters, cut to the cells there are."""

import re
import unicodedata
from pathlib import Path

from rich.cells import cell_len, set_cell_size

_JOINERS = "\u200c\u200d"  # scripts and emoji need them, terminals ignore them
_ASCII = dict(zip("\u2018\u2019\u201c\u201d\u2013\u2014\u00d7", "''\"\"--x", strict=True)) | {"\u2026": "..."}


def clean(text: str, *, utf8: bool = True) -> str:
    """One line without characters that a terminal would obey.

    Names and words come from videos, so they may be hostile: escape sequences, bidirectional overrides, newlines.
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


def shorten(name: str, room: int) -> str:
    """A name cut to so many cells (0 = all of it); its end is kept, because it shows the kind of file."""
    name = clean(name)
    if not room or cell_len(name) <= room:
        return name
    tail = name[-8:] if cell_len(name[-8:]) <= 8 else name[-4:]
    return f"{set_cell_size(name, max(1, room - 3 - cell_len(tail))).rstrip()}...{tail}"


def relative_path(path: str | Path) -> str:
    """A path relative to the current folder, if it is below it."""
    here = Path.cwd()
    return str(Path(path).relative_to(here)) if Path(path).is_relative_to(here) else str(path)
