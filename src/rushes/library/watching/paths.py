"""Places that films come from: remembered ones, and what lies at a place."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from rushes.domain.errors import NotFound
from rushes.domain.keys import short
from rushes.domain.video import BUCKETS, Fingerprint
from rushes.home import Home
from rushes.jobs.intake import JobRequest, job_spec
from rushes.records.port import Record
from rushes.sources.port import FoundFile, SkippedFile
from rushes.sources.roots import is_below, media_folders, outside

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

    def add(self, place: str, wanted: JobRequest | None = None) -> Record:
        """Remember a place, and what is wanted of the films there.

        Raises:
            Refused: that is not possible here.
        """
        self.home.source(place)
        if wanted:
            job_spec(self.home, Fingerprint("", 0, 0), wanted)
        asked = {"profile": wanted.profile, "options": wanted.options} if wanted else {}
        return self.home.records.put(PATH, self.home.owner, "path_" + short(place), {"path": place, **asked})

    def remove(self, id: str) -> None:
        """Forget a place; its videos stay."""
        self.home.delete_record(PATH, id)

    def look(self, place: str, most: int) -> list[FoundFile | SkippedFile]:
        """What lies there, at most so many entries; nothing is taken in."""
        return list(islice(self.home.source(place).scan(), most))

    def roots(self, *, usual: bool) -> list[str]:
        """What the settings name; else, if `usual`, the home's folder and this user's media folders."""
        named = [place.strip() for place in self.home.settings.sources.split(",") if place.strip()]
        folders = [self.home.originals.resolve(), *media_folders()] if usual and not named else []
        return named + [str(folder) for folder in folders if folder != Path("/")]

    def allowed(self, places: Sequence[str], *, usual: bool) -> list[str]:
        """The roots that these places lie below; if `usual`, places in buckets need none: the credentials decide.

        Raises:
            NotAllowed: one lies elsewhere.
        """
        roots = self.roots(usual=usual)
        buckets = [place for place in places if usual and place.startswith(BUCKETS)]
        if not all(place in buckets or is_below(place, roots) for place in places):
            raise outside()
        return [*roots, *buckets]
