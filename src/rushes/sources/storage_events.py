"""Storage events: a bucket says that a key was written, at least once, in any order, or not at all."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import unquote_plus

from rushes.domain.errors import Refused
from rushes.domain.keys import JSON


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
    """The keys that a message of S3 (as it is, or passed on by SNS) says were written, each once.

    Raises:
        Refused: it is no storage event.
    """
    try:
        doc = json.loads(message)
        doc = json.loads(doc["Message"]) if "Message" in doc else doc
        if doc.get("Event") == "s3:TestEvent":
            return ()
        return tuple(dict.fromkeys(_created(doc["Records"])))
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise Refused(f"not a storage event: {message[:80]!r}") from e


def _created(records: Iterable[JSON]) -> Iterator[StorageEvent]:
    for record in records:
        if "ObjectCreated:" in record["eventName"]:
            s3 = record["s3"]
            blob = s3["object"]
            yield StorageEvent(s3["bucket"]["name"], unquote_plus(blob["key"]), blob["eTag"].strip('"'))
