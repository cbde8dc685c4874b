"""Output: colour at the terminal's width, plain whole lines in a pipe; control characters are removed."""

import os
import re
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

NOW, TROUBLE, DONE, HEAD, MARK = "yellow", "red", "dim", "bold", "bold yellow"

Part = str | tuple[str, str]  # words, or words with a style
Cell = Part | Sequence[Part]


def silence(stream: IO[str]) -> None:
    """The reader of a pipe has closed it: write no more, and leave nothing to flush at exit."""
    with suppress(OSError, ValueError):  # not a real stream
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class _Console(Console):
    def on_broken_pipe(self) -> None:
        self.quiet = True
        silence(self.file)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table; a wide one is cut where the terminal is narrow."""

    title: str
    right: bool = False
    wide: bool = False


class Screen:
    """stdout or stderr. All text for people passes here and is cleaned."""

    def __init__(self, *, stderr: bool = False, env: Mapping[str, str] | None = None) -> None:
        self._env = os.environ if env is None else env
        self.console = _Console(stderr=stderr, highlight=False, markup=False, emoji=False)

    @cached_property
    def terminal(self) -> bool:
        """Whether it is a terminal."""
        return self.console.is_terminal

    @cached_property
    def utf8(self) -> bool:
        """Whether every character can be shown; in a pipe it can."""
        if not self.terminal:
            return True
        return shows_utf8(self._env, getattr(self.console.file, "encoding", "") or "")

    @property
    def heard(self) -> bool:
        """Whether the reader is still there."""
        return not self.console.quiet

    def leave(self) -> None:
        """The reader is gone: drop further output; the command goes on with its work."""
        self.console.on_broken_pipe()

    @property
    def width(self) -> int:
        """Columns of the terminal."""
        return self.console.width

    def styled(self, *parts: Part) -> Text:
        """Clean words with their styles; the only way to make a line."""
        text = Text()
        for part in parts:
            words, style = (part, "") if isinstance(part, str) else part
            text.append(clean(words, utf8=self.utf8), style)
        return text

    def cropped(self, *parts: Part) -> Text:
        """The same, cut where the terminal ends."""
        text = self.styled(*parts)
        text.truncate(self.width, overflow="crop")
        return text

    def line(self, *parts: Part) -> None:
        """One line (or, on a terminal, as many as it needs)."""
        text = self.styled(*parts)
        text.rstrip()
        self.console.print(text, soft_wrap=not self.terminal)

    def row(self, *parts: Part) -> None:
        """One line, never more: cut where the terminal ends."""
        self._row(self.styled(*parts))

    def block(self, label: str, style: str, words: str, indent: int = 7) -> None:
        """A labelled line whose continuation is indented."""
        text = self.styled(words)
        for n, part in enumerate(text.wrap(self.console, max(20, self.width - indent)) if self.terminal else [text]):
            self._row(self.styled((f"{'' if n else label:<{indent}}", style)) + part)

    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> None:
        """Rows in columns; the title row is for people only."""
        cells = [[self._cell(c) for c in row] for row in rows]
        if self.terminal and rows and any(c.title for c in columns):
            cells.insert(0, [self.styled((c.title, DONE)) for c in columns])
        widths = self._widths(columns, cells)
        for row in cells:
            self._row(self._joined(columns, widths, row))

    def raw(self, data: bytes) -> None:
        """A file's bytes: exact in a pipe, clean on a terminal."""
        if self.terminal:
            text = clean_lines(data.decode("utf-8", "replace"), utf8=self.utf8)
            self.console.out(text, end="", highlight=False)
        else:
            file: IO[bytes] = sys.stdout.buffer
            file.write(data)
            file.flush()

    def _cell(self, cell: Cell) -> Text:
        if isinstance(cell, str):
            return self.styled(cell)
        if isinstance(cell, tuple) and len(cell) == 2 and all(isinstance(c, str) for c in cell):
            return self.styled((str(cell[0]), str(cell[1])))
        return self.styled(*cell)

    def _widths(self, columns: Sequence[Column], rows: Sequence[Sequence[Text]]) -> list[int]:
        widths = [max((cell_len(row[n].plain) for row in rows), default=0) for n in range(len(columns))]
        over = sum(widths) + 2 * (len(columns) - 1) - self.width
        if self.terminal and over > 0:
            for n, column in enumerate(columns):
                if column.wide:
                    widths[n] = max(8, widths[n] - over)
        return widths

    def _joined(self, columns: Sequence[Column], widths: Sequence[int], row: Sequence[Text]) -> Text:
        out = Text()
        for n, (column, width, cell) in enumerate(zip(columns, widths, row, strict=True)):
            self._cut(cell, width)
            pad = Text(" " * (width - cell_len(cell.plain)))
            out.append("  " if n else "")
            out.append_text(pad + cell if column.right else cell + pad)
        return out

    def _cut(self, text: Text, width: int) -> None:
        text.truncate(width, overflow="ellipsis" if self.utf8 else "crop")

    def _row(self, text: Text) -> None:
        text.rstrip()
        if self.terminal:
            self._cut(text, self.width)
        self.console.print(text, soft_wrap=True)


def shows_utf8(env: Mapping[str, str], encoding: str) -> bool:
    """Whether the terminal shows UTF-8, by the locale that the person set.

    Python turns LANG=C into LC_CTYPE=C.UTF-8 for itself; that says nothing about the terminal.
    """
    if encoding.lower().replace("-", "") != "utf8":
        return False
    coerced = env.get("LC_CTYPE") in ("C.UTF-8", "C.utf8", "UTF-8")
    chosen = env.get("LC_ALL") or ("" if coerced and env.get("LANG") else env.get("LC_CTYPE")) or env.get("LANG")
    return chosen not in ("C", "POSIX")


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
