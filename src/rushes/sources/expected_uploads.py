"""Uploads to the home's bucket that jobs wait for: known by storage events, or by a scan where an event was lost."""

from rushes.blobs.bucket_location import BucketLocation
from rushes.ledger.port import Ledger
from rushes.sources.bucket import Bucket
from rushes.sources.storage_events import StorageEvent, parse_events


class BucketUploads:
    """Tells the ledger what has arrived below the home's prefix, by keys without it."""

    def __init__(self, ledger: Ledger, home: BucketLocation, uploads: str = "input") -> None:
        """`uploads` is the part of the home that others write to."""
        self._ledger, self._home = ledger, home
        self._uploads = Bucket(home.below(uploads))
        self._known: set[tuple[str, str]] = set()

    def on_message(self, message: str) -> tuple[str, ...]:
        """A storage event came; answers the tasks that became ready (to be announced).

        Raises:
            Refused: it is no storage event.
        """
        return tuple(task for event in parse_events(message) for task in self.on_event(event))

    def on_event(self, event: StorageEvent) -> tuple[str, ...]:
        """As `ExpectedUploads.on_event`; only keys below the home's prefix count."""
        return self._arrived(event.key, event.etag) if event.bucket == self._home.bucket else ()

    def sweep(self) -> tuple[str, ...]:
        """Find uploads whose event was lost; answers the tasks that became ready (to be announced)."""
        found = set(self._uploads.keys())
        ready = tuple(task for key, etag in sorted(found - self._known) for task in self._arrived(key, etag))
        self._known = found
        return ready

    def _arrived(self, key: str, etag: str) -> tuple[str, ...]:
        """The ledger knows each key with each ETag once, whoever tells it."""
        prefix = f"{self._home.prefix}/" if self._home.prefix else ""
        return self._ledger.arrived(key.removeprefix(prefix), etag) if key.startswith(prefix) else ()
