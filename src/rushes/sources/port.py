"""Sources: what videos come from. One bad entry is reported and never stops the rest."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Protocol

from rushes.domain.errors import RushesError
from rushes.domain.video import Fingerprint
from rushes.sources.storage_events import StorageEvent

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
class SkippedFile:
    """Something that was named, or looks like footage, and is not taken in; the reason is for people."""

    path: str
    reason: str
    fault: bool = True  # false: skipped as it should be, and only reported
    cause: RushesError | None = None  # the source itself cannot be read


class Source(Protocol):
    """What videos come from: a file, a folder, a bucket."""

    @property
    def grows(self) -> bool:
        """Whether what is found may still be being written: who watches believes it when two looks agree."""

    def scan(self) -> Iterator[FoundFile | SkippedFile]:
        """Everything that is there now, in order, each thing once."""

    def at(self, bucket: str, key: str) -> Iterator[FoundFile]:
        """What lies now at a key that a storage event named, if it is in this source.

        Raises:
            StoreAway: nobody can tell.
        """


class ExpectedUploads(Protocol):
    """Keys of the home that jobs wait for."""

    def on_event(self, event: StorageEvent) -> tuple[str, ...]:
        """A storage event came; answers the tasks that became ready (to be announced)."""

    def sweep(self) -> tuple[str, ...]:
        """Find uploads whose event was lost; answers the tasks that became ready (to be announced)."""
