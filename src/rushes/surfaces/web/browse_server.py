"""What lies at a place that the server sees: films, what cannot be taken in, and folders to go on to."""

from dataclasses import dataclass, field
from pathlib import Path

from fastapi import Request

from rushes.domain.errors import Refused, RushesError
from rushes.library import Library
from rushes.library.paths import FoundFile, SkippedFile
from rushes.surfaces.api.videos import check_places

LOOKS = 1000  # entries that are looked at
SHOWN = 50  # of them that are named


@dataclass(frozen=True, slots=True)
class Listing:
    """A place as it is now, or why it cannot be looked at."""

    place: str
    films: list[tuple[str, int]] = field(default_factory=list)  # name, bytes
    more: bool = False
    faults: list[tuple[str, str]] = field(default_factory=list)  # name, why
    folders: list[str] = field(default_factory=list)
    parent: str = ""
    error: str = ""
    hint: str = ""


def list_place(request: Request, library: Library, place: str) -> Listing:
    """Look, without taking anything in."""
    try:
        looked = _look(request, library, place)
    except RushesError as e:
        return Listing(place, error=str(e), hint=e.advice)
    films = [(e.name, e.size) for e in looked if isinstance(e, FoundFile)]
    faults = [(Path(e.path).name, e.reason) for e in looked if isinstance(e, SkippedFile) and e.fault]
    return Listing(place, films, len(looked) > LOOKS, faults, _folders(place), _parent(place))


def _look(request: Request, library: Library, place: str) -> list[FoundFile | SkippedFile]:
    if not place.startswith(("/", "s3://")) or "\0" in place:
        raise Refused("the path must start with / or s3://", "Enter the full path on the server.")
    check_places(request, library, [place])
    return library.paths.look(place, LOOKS + 1)


def _folders(place: str) -> list[str]:
    if place.startswith("s3://"):
        return []
    try:
        inside = sorted(p.name for p in Path(place).iterdir() if p.is_dir() and not p.name.startswith("."))
    except OSError:
        return []
    return inside[:SHOWN]


def _parent(place: str) -> str:
    return "" if place.startswith("s3://") or place == "/" else str(Path(place).parent)
