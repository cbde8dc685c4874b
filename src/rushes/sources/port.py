"""Sources: what videos come from. One bad entry is reported and never stops the rest.

A bucket may say that a key was written: at least once, in any order, or not at all.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Protocol

from rushes.domain.errors import RushesError
from rushes.domain.text import clean_text
from rushes.domain.video import Fingerprint

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
        return clean_text(PurePosixPath(self.path).name)


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """Something that was named, or looks like footage, and is not taken in; the reason is for people."""

    path: str
    reason: str
    fault: bool = True  # false: skipped as it should be, and only reported
    cause: RushesError | None = None  # the source itself cannot be read


@dataclass(frozen=True, slots=True)
class StorageEvent:
    """A key of a bucket was written. Whoever hears of it looks at what lies there: anybody may have said it."""

    bucket: str
    key: str


@dataclass(frozen=True, slots=True)
class EventMessage:
    """One message: what it says has arrived, and the right to delete it."""

    events: tuple[StorageEvent, ...]
    receipt: str


class StorageEvents(Protocol):
    """A queue of storage events. Each message comes again until it is acknowledged."""

    poison: int  # messages that were no storage events

    def receive(self, wait: int | None = None) -> Sequence[EventMessage]:
        """The next messages; if there are none, those that come while so many seconds are waited for them.

        Raises:
            StoreAway: the service is away.
        """

    def waiting(self) -> int:
        """How many messages wait, as far as one can tell.

        Raises:
            RushesError: the queue cannot be asked.
        """

    def acknowledge(self, messages: Sequence[EventMessage]) -> None:
        """Delete messages whose events have been dealt with."""


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

    def key_of(self, event: StorageEvent) -> str:
        """The key of the home that a storage event names; "" if it lies elsewhere."""
