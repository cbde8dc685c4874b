"""Versions of a video that were made and published."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PublishedFilm:
    """A 3D version of a video of the library."""

    format: str
    name: str  # as it is published
    size: int
    file: str  # what a copy is called, as players read it
