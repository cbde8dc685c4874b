"""Which video or job a name means, and the file names of a video."""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from rushes.domain.errors import NotFound
from rushes.domain.job import Job
from rushes.domain.text import clean_text
from rushes.index.port import Video
from rushes.sources.folder import AUDIO, VIDEO

T = TypeVar("T", Video, Job)


def goes_by(video: Video, name: str) -> bool:
    """Whether a person who says this name, which is clean text, means that video."""
    if video.id.startswith(name) or video.id == f"vid_{name}" or name in (video.name, Path(video.name).stem):
        return True
    return any(_is_path(path, name) for path in video.paths)


def _is_path(path: str, name: str) -> bool:
    if name in (path, Path(path).name, Path(path).stem):
        return True
    if "/" not in name or Path(path).name != Path(name).name:
        return False
    return Path(clean_text(str(Path(name).resolve()))).match(path)


def stem(video: Video) -> str:
    """What files of a video are called by: its name, without the ending of a film."""
    begun, _, ending = video.name.rpartition(".")
    return begun if begun and f".{ending.lower()}" in VIDEO + AUDIO else video.name


def pick_one(name: str, found: Sequence[T], what: str) -> T:
    """The only one of these that goes by a name.

    Raises:
        NotFound: none, or more than one.
    """
    exact = [f for f in found if f.id == name]
    some = exact or list(found)
    if len(some) != 1:
        many = f"{len(some)} {what}s match {name!r}" if some else f"no {what} {name!r}"
        hint = f"Choose one: {', '.join(f'{f.id} ({f.name})' for f in some[:3])}." if some else None
        raise NotFound(many, hint, what)
    return some[0]
