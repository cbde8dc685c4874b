"""Keys of the home's bucket that jobs wait for: told by storage events, and found by a look where an event was lost."""

from rushes.blobs.s3.location import BucketLocation
from rushes.ledger.port import Ledger
from rushes.sources.bucket import Bucket
from rushes.sources.storage_events import Arrival, arrivals


class Arrivals:
    """Tells the ledger what has arrived below the home's prefix, by keys without it."""

    def __init__(self, ledger: Ledger, home: BucketLocation, uploads: str = "input") -> None:
        """`uploads` is the part of the home that others write to."""
        self._ledger, self._home = ledger, home
        self._uploads = Bucket(home.below(uploads))
        self._told: set[tuple[str, str]] = set()

    def heard(self, message: str) -> tuple[str, ...]:
        """A storage event came; answers the tasks that became ready (to be announced).

        Raises:
            Refused: it is no storage event.
        """
        return tuple(task for arrival in arrivals(message) for task in self.met(arrival))

    def met(self, arrival: Arrival) -> tuple[str, ...]:
        """What is below the home's prefix is told to the ledger; answers the tasks that became ready."""
        return self._arrived(arrival.key, arrival.etag) if arrival.bucket == self._home.bucket else ()

    def sweep(self) -> tuple[str, ...]:
        """Look for what no event told; answers the tasks that became ready (to be announced)."""
        found = set(self._uploads.keys())
        ready = tuple(task for key, etag in sorted(found - self._told) for task in self._arrived(key, etag))
        self._told = found
        return ready

    def _arrived(self, key: str, etag: str) -> tuple[str, ...]:
        """The ledger knows each key with each ETag once, whoever tells it."""
        prefix = f"{self._home.prefix}/" if self._home.prefix else ""
        return self._ledger.arrived(key.removeprefix(prefix), etag) if key.startswith(prefix) else ()
