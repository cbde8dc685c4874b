"""The set-ups: which ledger, records, index, transport and blobs a home's settings mean.

The only place that names a backend. Each is imported when it is opened, so that a laptop needs no server's driver.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from rushes.blobs.port import Blobs, Multipart
from rushes.blobs.s3.location import BucketLocation, parse_location
from rushes.domain.errors import Refused
from rushes.domain.video import Fingerprint, Footage
from rushes.home import Stores
from rushes.index.port import Index
from rushes.ledger.port import Ledger
from rushes.records.port import Records
from rushes.settings import Settings, shown
from rushes.sources.folder import Folder
from rushes.sources.port import ExpectedUploads, Source
from rushes.sources.storage_events import StorageEvents
from rushes.transport.port import Transport

_POSTGRES, _DYNAMODB = ("postgres://", "postgresql://"), "dynamodb://"
_REDIS = {"redis://": "redis://", "rediss://": "rediss://", "valkey://": "redis://", "valkeys://": "rediss://"}


class Shared:
    """What every set-up opens in the same way: buckets, sources, storage events."""

    def __init__(self, settings: Settings, home: Path) -> None:
        self._settings, self._home = settings, home

    def multipart(self) -> Multipart | None:
        """Signed uploads to the bucket, if boto3 is here to sign them."""
        s = self._settings
        if not s.blobs or not s.presigned or not find_spec("boto3"):
            return None
        from rushes.blobs.s3.multipart import S3Multipart

        return S3Multipart(_place(s, s.blobs), s.s3_public)

    def source(self, place: str) -> Source:
        """A folder or a bucket."""
        if not place.startswith("s3://"):
            return Folder(Path(place))
        with needed("s3"):
            from rushes.sources.bucket import Bucket
        return Bucket(_place(self._settings, place))

    def bucket_originals(self) -> Callable[[Fingerprint], Footage]:
        """Read by range, through copies in the home."""
        with needed("s3"):
            from rushes.sources.bucket import BucketOriginals
        return BucketOriginals(_place(self._settings, "s3://any"), self._home / "copies").original

    def expected_uploads(self, ledger: Ledger) -> ExpectedUploads | None:
        """Uploads to the home's bucket."""
        if not self._settings.blobs:
            return None
        with needed("s3"):
            from rushes.sources.expected_uploads import BucketUploads
        return BucketUploads(ledger, _place(self._settings, self._settings.blobs))

    def storage_events(self) -> StorageEvents | None:
        """SQS."""
        if not self._settings.storage_events:
            return None
        with needed("aws"):
            from rushes.sources.event_queue import EventQueue
            from rushes.wiring.on_aws import service_of
        return EventQueue(service_of(self._settings, "sqs"), self._settings.storage_events)


class Laptop(Shared):
    """SQLite and a folder: no server at all."""

    def __init__(self, settings: Settings, home: Path, *, take_over: bool = False) -> None:
        super().__init__(settings, home)
        self._take_over = take_over

    def ledger(self) -> Ledger:
        """SQLite in the home."""
        from rushes.ledger.sqlite import SqliteLedger

        return SqliteLedger(self._home / "ledger.sqlite", take_over=self._take_over)

    def records(self) -> Records:
        """SQLite in the home."""
        from rushes.records.sqlite import SqliteRecords

        return SqliteRecords(self._home / "records.sqlite")

    def index(self) -> Index:
        """SQLite in the home."""
        from rushes.index.sqlite import SqliteIndex

        return SqliteIndex(self._home / "index.sqlite")

    def transport(self, _lanes: Sequence[str]) -> Transport:
        """Looking again."""
        from rushes.transport.poll import Poll

        return Poll()

    def blobs(self) -> Blobs:
        """A bucket, or the home's folder."""
        return blobs_of(self._settings, self._home)

    def snapshots(self, ledger: Ledger, records: Records, /) -> Mapping[str, Callable[[Path], None]]:
        """SQLite copies itself while it is in use."""
        from rushes.ledger.sqlite import SqliteLedger
        from rushes.records.sqlite import SqliteRecords

        if not isinstance(ledger, SqliteLedger) or not isinstance(records, SqliteRecords):
            raise Refused("this home's ledger is not a file")
        return {"ledger.sqlite": ledger.backup, "records.sqlite": records.backup}

    def clock(self) -> None:
        """This machine's."""


def blobs_of(settings: Settings, home: Path, *, fleet: bool = False) -> Blobs:
    """The bucket of the settings, else the home's folder.

    Raises:
        Refused: a fleet would not see that folder.
    """
    if settings.blobs:
        with needed("s3"):
            from rushes.blobs.s3 import S3Blobs
        return S3Blobs(_place(settings, settings.blobs), home / "copies")
    if fleet and not settings.shared:
        raise Refused(
            f"the workers of a fleet would not see {home / 'files'}",
            'Set blobs = "s3://bucket/prefix", or shared = true if every worker has this folder mounted.',
        )
    from rushes.blobs.folder import FolderBlobs

    return FolderBlobs(home / "files")


def _place(settings: Settings, url: str) -> BucketLocation:
    return parse_location(url, settings.s3_endpoint, settings.s3_key, settings.s3_secret)


def hints_of(settings: Settings) -> Transport:
    """Redis or Valkey.

    Raises:
        Refused: it is not named as they are.
    """
    scheme, slashes, rest = settings.hints.partition("://")
    with needed("redis"):
        from rushes.transport.redis import RedisHints
    try:
        return RedisHints(_REDIS[scheme + slashes] + rest)
    except (KeyError, ValueError) as e:
        hint = "Write it as redis://host:port or valkey://host:port, with TLS as rediss:// or valkeys://."
        raise Refused(f"there are no hints by {shown(settings, 'hints')!r}", hint) from e


@contextmanager
def needed(extra: str) -> Iterator[None]:
    """What is imported here comes with an extra of the package.

    Raises:
        Refused: it is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as e:
        if (e.name or "").startswith("rushes"):
            raise
        raise Refused(f"{e.name} is not installed", f"Install it with: pip install 'rushes[{extra}]'") from e


def stores_of(settings: Settings, home: Path, *, take_over: bool = False) -> Stores:
    """The set-up that the settings mean.

    Raises:
        Refused: there is no such store.
    """
    if not settings.store:
        return Laptop(settings, home, take_over=take_over)
    if settings.store.startswith(_POSTGRES):
        with needed("postgres"):
            from rushes.wiring.on_postgres import OnPostgres
        return OnPostgres(settings, home)
    if settings.store.startswith(_DYNAMODB):
        with needed("aws"):
            from rushes.wiring.on_aws import OnAws
        return OnAws(settings, home)
    raise Refused(f"there is no store {settings.store!r}", "Known are postgres://... and dynamodb://table.")
