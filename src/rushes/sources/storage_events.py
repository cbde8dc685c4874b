"""What a storage says of itself: an object was created. Told at least once, in any order, or not at all."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import unquote_plus

from rushes.domain.errors import Refused
from rushes.domain.keys import JSON


@dataclass(frozen=True, slots=True)
class Arrival:
    """A key of a bucket has these bytes now."""

    bucket: str
    key: str
    etag: str


@dataclass(frozen=True, slots=True)
class Told:
    """One message: what it says has arrived, and the right to delete it."""

    arrivals: tuple[Arrival, ...]
    receipt: str


class News(Protocol):
    """Where messages of storages wait. Each comes again until it is settled."""

    poison: int  # messages that were no storage events

    def receive(self) -> Sequence[Told]:
        """The next messages.

        Raises:
            StoreAway: the service is away.
        """

    def waiting(self) -> int:
        """How many messages wait, as far as one can tell.

        Raises:
            RushesError: the queue cannot be asked.
        """

    def settle(self, told: Sequence[Told]) -> None:
        """What these say has been done: they are not needed any more."""


def arrivals(message: str) -> tuple[Arrival, ...]:
    """What a message of S3 (as it is, or passed on by SNS) says has arrived, each once; other news is none.

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


def _created(records: Iterable[JSON]) -> Iterator[Arrival]:
    for record in records:
        if "ObjectCreated:" in record["eventName"]:
            s3 = record["s3"]
            blob = s3["object"]
            yield Arrival(s3["bucket"]["name"], unquote_plus(blob["key"]), blob["eTag"].strip('"'))
