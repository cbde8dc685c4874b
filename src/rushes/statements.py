"""Named SQL (and Lua) in files beside each backend, and numbered files that change its schema."""

import re
from collections.abc import Mapping
from pathlib import Path

from rushes.domain.errors import WrongHome

_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)
_BREAKING = "-- breaking: "  # then what older versions cannot work with


def statements(*files: Path) -> Mapping[str, str]:
    """The statements of these files by name."""
    found: dict[str, str] = {}
    for file in files:
        parts = _NAME.split(file.read_text("utf-8"))
        found |= {name: _bare(text) for name, text in zip(parts[1::2], parts[2::2], strict=True)}
    return found


def _bare(text: str) -> str:
    lines = (line for line in text.splitlines() if not line.startswith("--"))
    return "\n".join(lines).strip().rstrip(";")


class Migrations:
    """Numbered SQL files, each run once and in order; the highest number is the schema.

    A file adds to what is there, so that older versions go on beside it, or its first line is `-- breaking: ...`.
    """

    def __init__(self, folder: Path, store: str) -> None:
        """`store` is what people call what it changes."""
        self._files = {int(file.name[:4]): file for file in sorted(folder.glob("[0-9]*.sql"))}
        self._store, self.newest = store, max(self._files)

    def needed(self, upto: int) -> int:
        """The schema that a version must know to work with schema `upto`."""
        return max((number for number in self._files if number <= upto and self._breaks(number)), default=0)

    def check(self, at: int, needed: int) -> None:
        """Refuse a store with schema `at` that versions before schema `needed` cannot work with; 0: it is new.

        Raises:
            WrongHome: it is newer than this code and not only added to, or from before the first file.
        """
        if needed > self.newest:
            raise WrongHome(
                f"this {self._store} was written by a newer rushes (schema {needed}, this one knows {self.newest})",
                "Use the newer version, or restore a backup made by this one.",
            )
        if 0 < at < min(self._files):
            raise self.unreleased()

    def unreleased(self) -> WrongHome:
        """What is said of a store from before the first file."""
        return WrongHome(
            f"this {self._store} was written by a build before the first release",
            f"Use a new {self._store}: existing results in the bucket or folder are found and adopted.",
        )

    def pending(self, at: int, *, breaking: bool = False) -> list[Path]:
        """The files to run; those that break older versions only if told so, or if nobody has used the store yet.

        Raises:
            WrongHome: there are some, and nobody has asked for them.
        """
        changes = self.breaking_changes(at)
        if changes and not breaking:
            raise WrongHome(
                f"this {self._store} needs a change that older versions cannot work with: {'; '.join(changes)}",
                "Stop older workers and servers, make a backup, then run: rushes migrate",
            )
        return [file for number, file in self._files.items() if number > at]

    def breaking_changes(self, at: int) -> tuple[str, ...]:
        """What would change for older versions, if anybody has used the store yet."""
        later = [number for number in self._files if number > at > 0]
        return tuple(what for number in later if (what := self._breaks(number)))

    def _breaks(self, number: int) -> str:
        with self._files[number].open(encoding="utf-8") as file:
            first = file.readline()
        return first.removeprefix(_BREAKING).strip() if first.startswith(_BREAKING) else ""
