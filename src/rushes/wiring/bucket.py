"""The set-up of a bucket and no server at all: a database and a lock for each film, kept beside its results."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from rushes.bucket.conditional import ConditionalBucket
from rushes.bucket.location import BucketLocation, parse_location
from rushes.domain.errors import Refused
from rushes.domain.job import NewJob
from rushes.domain.stereo_keys import CHECKED
from rushes.domain.text import clean_text
from rushes.domain.video import BUCKETS
from rushes.domain.worker import Incarnation
from rushes.index.port import Index
from rushes.index.sqlite import SqliteIndex
from rushes.ledger.bucket import BucketLedger
from rushes.ledger.port import Ledger
from rushes.records.bucket import BucketRecords
from rushes.records.port import Records
from rushes.settings import Settings
from rushes.transport.poll import Poll
from rushes.transport.port import Describe, Transport
from rushes.wiring.setup import Setup


class BucketSetup(Setup):
    """Everything in one bucket; this machine has working copies and the index."""

    def __init__(self, settings: Settings, home: Path, me: Incarnation) -> None:
        """`me` is this process, as the locks name it.

        Raises:
            Refused: the results are to lie in another place than the databases.
        """
        super().__init__(settings, home)
        if settings.blobs.rstrip("/") != settings.store.rstrip("/"):
            raise Refused("the store is a bucket, and the results are not in it", "Set blobs to the same as store.")
        s, self._me = settings, me
        self._location = parse_location(s.store, s.s3_endpoint, s.s3_key, s.s3_secret)

    def ledger(self) -> Ledger:
        """A SQLite database for each film."""
        bucket, film = ConditionalBucket.at(self._location), FilmNames(self._location)
        transcripts = f"{self._location.url}/{quote(self._settings.transcripts_prefix.strip('/'))}"
        places = {"originals": clean_text(str(self._home)), "transcripts": transcripts}
        folder, seconds = self._home / "checkpoints", self._settings.checkpoint_seconds
        return BucketLedger(bucket, folder, self._me, film.of_job, film.of_key, places=places, store_seconds=seconds)

    def records(self) -> Records:
        """One SQLite file for all films."""
        return BucketRecords(ConditionalBucket.at(self._location))

    def index(self) -> Index:
        """SQLite beside this process."""
        return SqliteIndex(self._home / "index.sqlite")

    def transport(self, _lanes: Sequence[str], _describe: Describe) -> Transport:
        """Looking again."""
        return Poll()

    def snapshots(self, _ledger: Ledger, _records: Records, /) -> Mapping[str, Callable[[Path], None]]:
        """The bucket has its own."""
        hint = "Turn versioning on for the bucket, or copy it with a tool of your storage service."
        raise Refused("this home lies in a bucket; rushes backup does not copy it", hint)

    def check_schema(self, _ledger: Ledger, /) -> None:
        """Each database is checked when it is opened."""

    def migrate(self, *, check: bool = False) -> tuple[str, ...]:  # noqa: ARG002 - there is nothing to do
        """Each database is migrated when it is taken."""
        return ()

    def clock(self) -> None:
        """Clocks of two machines are never compared."""


class FilmNames:
    """How the film of a job is called: its full key in the bucket."""

    def __init__(self, home: BucketLocation) -> None:
        self._home = home

    def of_job(self, new: NewJob) -> str:
        """The key of the job's original; a job without one in a bucket is a film of its own."""
        try:
            path = str(json.loads(new.payload)["source"]["path"])
        except (ValueError, KeyError, TypeError):
            path = ""
        if not path.startswith(BUCKETS):
            return f"jobs/{new.id}"
        return path.partition("://")[2].removeprefix(f"{self._home.bucket}/")

    def of_key(self, key: str) -> str:
        """The film that is uploaded under a key of the home, also if its job waits until it is looked at."""
        return f"{self._home.prefix}/{key.removesuffix(CHECKED)}".lstrip("/")
