"""Sources: places that videos come from. One bad entry is reported and never stops the rest."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Protocol

from rushes.domain.errors import RushesError
from rushes.domain.video import Fingerprint
from rushes.sources.storage_events import Arrival

MISSING = "no such file or folder"


@dataclass(frozen=True, slots=True)
class FoundFile:
    """Something that may be footage: readable and not empty. Its path is absolute, links resolved, or s3://bucket/key."""

    fingerprint: Fingerprint

    @property
    def path(self) -> str:
        """Where it lies."""
        return self.fingerprint.path

    @property
    def size(self) -> int:
        """Bytes."""
        return self.fingerprint.size

    @property
    def name(self) -> str:
        """What people call it: the last part of its path."""
        return PurePosixPath(self.path).name


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something that was asked for, or looks like footage, and is not taken in; the reason is for people."""

    path: str
    reason: str
    fault: bool = True  # false: passed over as it should be, and only told
    cause: RushesError | None = None  # the place itself cannot be looked at


class Source(Protocol):
    """A place that videos come from: a file or folder, a bucket."""

    @property
    def grows(self) -> bool:
        """Whether what is found may still be being written: who watches believes it when two looks agree."""

    def look(self) -> Iterator[FoundFile | LeftOut]:
        """Everything that is there now, in order, each thing once."""

    def at(self, bucket: str, key: str) -> Iterator[FoundFile]:
        """What lies now at a key that a storage event named, if it is of this place.

        Raises:
            StoreAway: nobody can tell.
        """


class Awaited(Protocol):
    """Keys of the home that jobs wait for."""

    def met(self, arrival: Arrival) -> tuple[str, ...]:
        """A storage event came; answers the tasks that became ready (to be announced)."""

    def sweep(self) -> tuple[str, ...]:
        """Look for what no event told; answers the tasks that became ready (to be announced)."""
