"""One invocation: the global options, the two screens, and JSON for programs."""

import json
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, is_dataclass
from datetime import date
from enum import Enum
from fractions import Fraction
from pathlib import Path

from rushes.domain.keys import JSON
from rushes.domain.text import clean_text
from rushes.surfaces.cli.screen import Cell, Column, Part, Screen
from rushes.telemetry import timestamp

_LEVELS = {"failed": "warning", "dead": "error"}  # by outcome of a task; messages are info


@dataclass(slots=True)
class Session:
    """The global options of this invocation, and where output goes."""

    home: str = ""
    json: bool = False
    quiet: bool = False
    verbose: bool = False
    progress: bool = True
    out: Screen = field(default_factory=Screen)
    err: Screen = field(default_factory=lambda: Screen(stderr=True))
    closing: ExitStack = field(default_factory=ExitStack)  # what must be closed at the end

    @property
    def talks(self) -> bool:
        """Whether to print remarks besides the data."""
        return not (self.json or self.quiet)

    @property
    def bars(self) -> bool:
        """Whether to draw progress bars."""
        return self.talks and self.progress and self.err.terminal

    def document(self, value: object) -> None:
        """The answer as one JSON document; with --json only."""
        if self.json:
            self._write(json.dumps(to_json(value), indent=2 if self.out.terminal else None))

    def message(self, message_type: str, **fields: object) -> None:
        """One JSON line of a long command, with time and level as log lines have them; with --json only."""
        level = "error" if message_type == "exit_error" else _LEVELS.get(str(fields.get("outcome")), "info")
        self._line(message_type, {"time": timestamp(time.time()), "level": level, **fields})

    def rows(self, message_type: str, rows: Iterable[object]) -> None:
        """A list for programs: one JSON line a row, none if there is nothing; with --json only."""
        for row in rows if self.json else ():
            self._line(message_type, to_json(row))

    def line(self, *parts: Part) -> None:
        """A line of the answer for people; not with --json."""
        if not self.json:
            self.out.line(*parts)

    def block(self, label: str, style: str, words: str, indent: int = 7) -> None:
        """A labelled line of the answer for people; not with --json."""
        if not self.json:
            self.out.block(label, style, words, indent)

    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> None:
        """The answer as a table for people; not with --json."""
        if not self.json:
            self.out.table(columns, rows)

    def remark(self, *parts: Part) -> None:
        """A line for people that is not data: on stderr, unless --quiet or --json."""
        if self.talks and self.out.heard:
            self.err.line(*parts)

    def _line(self, message_type: str, fields: Mapping[str, object]) -> None:
        if self.json:
            self._write(json.dumps({"message_type": message_type, **to_json(fields)}))

    def _write(self, text: str) -> None:
        # ASCII only (json escapes the rest): safe on every terminal, and odd file names survive.
        if not self.out.heard:
            return
        try:
            sys.stdout.write(text + "\n")
            sys.stdout.flush()
        except BrokenPipeError:
            self.out.leave()


def to_json(value: object) -> JSON:
    """A value as JSON can hold it."""
    if is_dataclass(value) and not isinstance(value, type):
        return to_json(asdict(value))
    match value:
        case Mapping():
            return {str(k): to_json(v) for k, v in value.items()}
        case list() | tuple() | set() | frozenset():
            return [to_json(v) for v in value]
        case Enum():
            return value.value
        case Fraction():
            return [value.numerator, value.denominator]
        case bytes():
            return value.decode("utf-8", "replace")
        case date():
            return value.isoformat()
        case str() | Path() | BaseException():
            return clean_text(str(value))
        case _:
            return value
