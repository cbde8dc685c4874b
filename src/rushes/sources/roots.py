"""Roots: the folders and buckets from which videos may be added over HTTP, and how many at once."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from rushes.domain.errors import NotAllowed, OverLimit
from rushes.domain.video import BUCKETS
from rushes.sources.port import FoundFile, SkippedFile

_USUAL = ("Videos", "Movies", "Pictures", "Music")
_NAMED = re.compile(r'^XDG_(?:VIDEOS|PICTURES|MUSIC)_DIR="\$HOME/([^"]+)"', re.MULTILINE)  # in the user's own language


def media_folders() -> list[Path]:
    """The folders in which this user keeps films, pictures and music, as far as they are there."""
    try:
        named = _NAMED.findall((Path.home() / ".config" / "user-dirs.dirs").read_text("utf-8"))
    except (OSError, ValueError):
        named = []
    return [folder for name in dict.fromkeys((*_USUAL, *named)) if (folder := Path.home() / name).is_dir()]


def is_below(place: str, roots: Iterable[str]) -> bool:
    """Whether a place is one of the roots or lies below it, as seen with links resolved."""
    if place.startswith(BUCKETS):
        return any(f"{place}/".startswith(f"{root.rstrip('/')}/") for root in roots)
    real = Path(os.path.realpath(place))
    return any(real.is_relative_to(os.path.realpath(root)) for root in roots if not root.startswith(BUCKETS))


def bounded(
    entries: Iterable[FoundFile | SkippedFile], roots: Sequence[str], most: int
) -> Iterator[FoundFile | SkippedFile]:
    """At most so many entries (0: all), and only files that lie below a root (none named: anywhere)."""
    for n, entry in enumerate(entries):
        if most and n == most:
            told = f"more than {most} files"
            yield SkippedFile(entry.path, told, cause=OverLimit(told, "Add its folders one by one, or: rushes watch"))
            return
        if isinstance(entry, FoundFile) and roots and not is_below(entry.path, roots):
            yield SkippedFile(entry.path, "it is outside the configured sources", cause=outside())
        else:
            yield entry


def outside() -> NotAllowed:
    """The error for a place that lies below no root."""
    return NotAllowed("only files in the configured sources can be added", "Set sources in rushes.toml.")
