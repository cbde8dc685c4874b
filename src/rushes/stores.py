"""How the stores of a home are opened; `wiring` makes the one that the settings mean."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from rushes.blobs.port import Blobs, Multipart
from rushes.domain.video import BlockOriginal, Fingerprint
from rushes.index.port import Index
from rushes.ledger.port import Ledger
from rushes.records.port import Records
from rushes.sources.port import ExpectedUploads, Source, StorageEvents
from rushes.transport.port import Describe, Transport


class Stores(Protocol):
    """One set-up: how each part is opened."""

    def ledger(self) -> Ledger:
        """Jobs, tasks, leases, results, events."""

    def records(self) -> Records:
        """What people said."""

    def index(self) -> Index:
        """The projection for readers."""

    def transport(self, lanes: Sequence[str], describe: Describe, /) -> Transport:
        """Hints about tasks of these lanes; where they can be read by others, with what `describe` says of each."""

    def blobs(self) -> Blobs:
        """Immutable files."""

    def snapshots(self, ledger: Ledger, records: Records, /) -> Mapping[str, Callable[[Path], None]]:
        """The home's files that a backup must copy through their store, each with how.

        Raises:
            Refused: the store is a server, which has its own backup.
        """

    def multipart(self) -> Multipart | None:
        """How browsers send films straight to the bucket; None if they cannot, and send them to us."""

    def source(self, place: str) -> Source:
        """The place that a path or s3://bucket/prefix names."""

    def bucket_originals(self) -> Callable[[Fingerprint], BlockOriginal]:
        """How originals in buckets are opened; parts of them are kept in the home."""

    def expected_uploads(self) -> ExpectedUploads | None:
        """Uploads to the home's bucket, None if the home is a folder."""

    def storage_events(self) -> StorageEvents | None:
        """The queue of storage events, None if none is named."""

    def check_schema(self, ledger: Ledger, /) -> None:
        """Ask whether this process still knows the tables of the store.

        Raises:
            WrongHome: a newer rushes has changed them since.
        """

    def unprotected(self) -> Sequence[str] | None:
        """What of the store's own protection against loss is off; None where that is not ours to ask.

        Raises:
            NotAllowed: we may not ask.
        """

    def migrate(self, *, check: bool = False) -> tuple[str, ...]:
        """Change the tables of the store so that older versions cannot work with them; answers what changed.

        With `check` nothing is changed: it answers what would be.
        """

    def engine(self, stage: str) -> Any:
        """Where the models of a stage, or of search, run: an `Engine`, whose port loads numpy."""

    def clock(self) -> float | None:
        """Seconds since 1970 by the store's own clock, None if the store is a file of this machine.

        Raises:
            StoreAway: it does not answer.
        """
