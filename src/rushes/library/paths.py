"""Places that films come from: remembered ones, and what lies at a place."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from rushes.domain.errors import NotFound
from rushes.domain.keys import short
from rushes.home import Home
from rushes.records.port import Record
from rushes.sources.port import FoundFile, SkippedFile

__all__ = ["FoundFile", "Paths", "Record", "SkippedFile"]
PATH = "path"  # the kind of record


@dataclass(frozen=True, slots=True)
class Paths:
    """The remembered places of a home."""

    home: Home

    def all(self) -> Iterator[Record]:
        """Every remembered place."""
        return self.home.all_records(PATH)

    def get(self, id: str) -> str:
        """The place of that id.

        Raises:
            NotFound: there is none.
        """
        record = self.home.records.get(PATH, self.home.owner, id) if id.isascii() else None
        if record is None:
            raise NotFound(f"no path {id[:60]!r}", what="path")
        return str(record.doc["path"])

    def add(self, place: str) -> Record:
        """Remember a place."""
        return self.home.records.put(PATH, self.home.owner, "path_" + short(place), {"path": place})

    def remove(self, id: str) -> None:
        """Forget a place; its videos stay."""
        self.home.delete_record(PATH, id)

    def look(self, place: str, most: int) -> list[FoundFile | SkippedFile]:
        """What lies there, at most so many entries; nothing is taken in."""
        return list(islice(self.home.source(place).scan(), most))

    def may_be_read(self, place: str) -> bool:
        """Whether a place lies at or below one that the settings name, as seen with links resolved."""
        places = [p.strip() for p in self.home.settings.sources.split(",") if p.strip()]
        if place.startswith("s3://"):
            return any(f"{place}/".startswith(f"{p.rstrip('/')}/") for p in places)
        real = Path(place).resolve()
        return any(real.is_relative_to(Path(p).resolve()) for p in places if not p.startswith("s3://"))
