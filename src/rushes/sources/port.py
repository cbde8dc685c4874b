"""Sources: what videos come from. One bad entry is reported and never stops the rest.

A bucket may say that a key was written: at least once, in any order, or not at all.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Protocol
from urllib.parse import unquote_plus

from rushes.domain.errors import Refused, RushesError
from rushes.domain.keys import JSON
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
    """A key of a bucket has these bytes now."""

    bucket: str
    key: str
    etag: str


@dataclass(frozen=True, slots=True)
class EventMessage:
    """One message: what it says has arrived, and the right to delete it."""

    events: tuple[StorageEvent, ...]
    receipt: str


class StorageEvents(Protocol):
    """A queue of storage events. Each message comes again until it is acknowledged."""

    poison: int  # messages that were no storage events

    def receive(self) -> Sequence[EventMessage]:
        """The next messages.

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


def parse_events(message: str) -> tuple[StorageEvent, ...]:
    """The keys that a message of S3 (as it is, or passed on by SNS or EventBridge) says were written, each once.

    Raises:
        Refused: it is no storage event.
    """
    try:
        doc = json.loads(message)
        doc = json.loads(doc["Message"]) if "Message" in doc else doc
        if doc.get("Event") == "s3:TestEvent":
            return ()
        if doc.get("source") == "aws.s3":
            return _passed_on(doc)
        return tuple(dict.fromkeys(_created(doc["Records"])))
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise Refused(f"not a storage event: {message[:80]!r}") from e


def _passed_on(doc: JSON) -> tuple[StorageEvent, ...]:
    """As EventBridge tells it: one object, whose key is plain text."""
    if doc["detail-type"] != "Object Created":
        return ()
    blob = doc["detail"]["object"]
    return (StorageEvent(str(doc["detail"]["bucket"]["name"]), str(blob["key"]), str(blob["etag"]).strip('"')),)


def _created(records: Iterable[JSON]) -> Iterator[StorageEvent]:
    for record in records:
        if "ObjectCreated:" in record["eventName"]:
            s3 = record["s3"]
            blob = s3["object"]
            yield StorageEvent(s3["bucket"]["name"], unquote_plus(blob["key"]), blob["eTag"].strip('"'))


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
    """Keys of the home that jobs wait for, each with the ETag of its content."""

    def on_event(self, event: StorageEvent) -> tuple[tuple[str, str], ...]:
        """What a storage event says has arrived."""

    def sweep(self) -> Iterator[tuple[str, str]]:
        """What is there and no sweep that came to its end has named: events may be lost."""
