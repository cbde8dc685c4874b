"""Messages of storages about new keys, parsed: S3 and MinIO, wrapped by SNS or EventBridge, SeaweedFS. Pure."""

import json
from collections.abc import Iterable, Iterator
from urllib.parse import unquote_plus

from rushes.domain.errors import Refused
from rushes.domain.keys import JSON
from rushes.domain.video import BUCKETS
from rushes.sources.port import StorageEvent

MOST = 100  # keys that one message may name; S3 names one
_BUCKETS = "/buckets/"  # where the buckets of SeaweedFS lie


def parse_events(message: str | bytes) -> tuple[StorageEvent, ...]:
    """The keys that a message says were written, each once; none for test events and other news.

    A program that shares out films says their addresses (s3://bucket/key), one in each line.
    Raises:
        Refused: it is no storage event, or names too many keys.
    """
    try:
        text = message if isinstance(message, str) else message.decode()
        events = tuple(dict.fromkeys(_addressed(text) if text.startswith(BUCKETS) else _told(text)))
        "".join(f"{event.bucket}{event.key}" for event in events).encode()  # half of a character is no name
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
        raise Refused(f"not a storage event: {message[:80]!r}") from e
    if len(events) > MOST:
        raise Refused(f"more than {MOST} keys in one storage event")
    return events


def _addressed(text: str) -> Iterator[StorageEvent]:
    for address in text.splitlines():
        bucket, _, key = address.partition("://")[2].partition("/")
        if not (address.startswith(BUCKETS) and bucket and key):
            raise ValueError(address)
        yield StorageEvent(bucket, key)


def _told(text: str) -> Iterator[StorageEvent]:
    doc = json.loads(text)
    return _events(json.loads(doc["Message"]) if "Message" in doc else doc)


def _events(doc: JSON) -> Iterator[StorageEvent]:
    if doc.get("Event") == "s3:TestEvent":
        return
    if doc.get("source") == "aws.s3":
        yield from _passed_on(doc)
    elif "event_type" in doc:
        yield from _of_filer(doc)
    else:
        yield from _created(doc["Records"])


def _passed_on(doc: JSON) -> Iterator[StorageEvent]:
    """As EventBridge tells it: one object, whose key is plain text."""
    if doc["detail-type"] == "Object Created":
        yield StorageEvent(_text(doc["detail"]["bucket"]["name"]), _text(doc["detail"]["object"]["key"]))


def _created(records: Iterable[JSON]) -> Iterator[StorageEvent]:
    for record in records:
        if "ObjectCreated:" in record["eventName"]:
            s3 = record["s3"]
            yield StorageEvent(_text(s3["bucket"]["name"]), unquote_plus(s3["object"]["key"]))


def _of_filer(doc: JSON) -> Iterator[StorageEvent]:
    """As SeaweedFS tells of its files: by path; what was renamed by its new one."""
    entry = doc["message"].get("new_entry")
    if not entry or entry.get("is_directory"):
        return
    folder = doc["message"].get("new_parent_path") or doc["key"].rpartition("/")[0]
    bucket, slash, key = f"{folder}/{entry['name']}".removeprefix(_BUCKETS).partition("/")
    if folder.startswith(_BUCKETS) and slash:
        yield StorageEvent(bucket, key)


def _text(value: JSON) -> str:
    if not isinstance(value, str):
        raise TypeError("a name must be a string")
    return value
