"""Published files of a video, as reported to users."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file that belongs beside a film, and why it was not written ("" if it is there)."""

    path: Path
    kept: str = ""


@dataclass(frozen=True, slots=True)
class PublishedFilm:
    """A 3D version of a video of the library."""

    format: str
    name: str  # as it is published
    size: int
    file: str  # what a copy is called, as players read it
