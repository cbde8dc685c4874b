"""The set-ups: which ledger, records, index, transport and blobs a home's settings mean.

The only place that names a backend. Each is imported when it is opened, so that a laptop needs no server's driver.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from rushes.blobs.port import Blobs, Multipart
from rushes.blobs.s3_place import Place, place_of
from rushes.domain.errors import Refused
from rushes.domain.video import Fingerprint, Footage
from rushes.index.port import Index
from rushes.ledger.port import Ledger
from rushes.records.port import Records
from rushes.settings import Settings, shown
from rushes.sources.folder import Folder
from rushes.sources.port import Awaited, Source
from rushes.sources.storage_events import News
from rushes.transport.port import Transport

_POSTGRES, _DYNAMODB = ("postgres://", "postgresql://"), "dynamodb://"
_REDIS = {"redis://": "redis://", "rediss://": "rediss://", "valkey://": "redis://", "valkeys://": "rediss://"}


class Stores(Protocol):
    """One set-up: how each part is opened."""

    def ledger(self) -> Ledger:
        """Jobs, tasks, leases, results, events."""

    def records(self) -> Records:
        """What people said."""

    def index(self) -> Index:
        """The projection for readers."""

    def transport(self, lanes: Sequence[str]) -> Transport:
        """Hints about tasks of these lanes."""

    def blobs(self) -> Blobs:
        """Immutable files."""

    def snapshots(self, ledger: Ledger, records: Records, /) -> Mapping[str, Callable[[Path], None]]:
        """The home's files that a backup must copy through their store, each with how.

        Raises:
            Refused: the store is a server, which has its own backup.
        """


@dataclass(frozen=True, slots=True)
class Laptop:
    """SQLite and a folder: no server at all."""

    settings: Settings
    home: Path
    take_over: bool

    def ledger(self) -> Ledger:
        """SQLite in the home."""
        from rushes.ledger.sqlite import SqliteLedger

        return SqliteLedger(self.home / "ledger.sqlite", take_over=self.take_over)

    def records(self) -> Records:
        """SQLite in the home."""
        from rushes.records.sqlite import SqliteRecords

        return SqliteRecords(self.home / "records.sqlite")

    def index(self) -> Index:
        """SQLite in the home."""
        from rushes.index.sqlite import SqliteIndex

        return SqliteIndex(self.home / "index.sqlite")

    def transport(self, _lanes: Sequence[str]) -> Transport:
        """Looking again."""
        from rushes.transport.poll import Poll

        return Poll()

    def blobs(self) -> Blobs:
        """A bucket, or the home's folder."""
        return blobs_of(self.settings, self.home)

    def snapshots(self, ledger: Ledger, records: Records, /) -> Mapping[str, Callable[[Path], None]]:
        """SQLite copies itself while it is in use."""
        from rushes.ledger.sqlite import SqliteLedger
        from rushes.records.sqlite import SqliteRecords

        if not isinstance(ledger, SqliteLedger) or not isinstance(records, SqliteRecords):
            raise Refused("this home's ledger is not a file")
        return {"ledger.sqlite": ledger.backup, "records.sqlite": records.backup}


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


def multipart_of(settings: Settings) -> Multipart | None:
    """How browsers send films straight to the bucket; None if they cannot, and send them to us."""
    if not settings.blobs or not settings.presigned or not find_spec("boto3"):
        return None
    from rushes.blobs.s3_multipart import S3Multipart

    return S3Multipart(_place(settings, settings.blobs), settings.s3_public)


def source_of(settings: Settings, place: str) -> Source:
    """The place that a path or s3://bucket/prefix names."""
    if not place.startswith("s3://"):
        return Folder(Path(place))
    with needed("s3"):
        from rushes.sources.bucket import Bucket
    return Bucket(_place(settings, place))


def far_originals(settings: Settings, home: Path) -> Callable[[Fingerprint], Footage]:
    """How originals in buckets are opened; parts of them are kept in the home."""
    with needed("s3"):
        from rushes.sources.bucket import Originals
    return Originals(_place(settings, "s3://any"), home / "copies").original


def awaited_of(settings: Settings, ledger: Ledger) -> Awaited | None:
    """Uploads to the home's bucket, None if the home is a folder."""
    if not settings.blobs:
        return None
    with needed("s3"):
        from rushes.sources.arrivals import Arrivals
    return Arrivals(ledger, _place(settings, settings.blobs))


def news_of(settings: Settings) -> News | None:
    """The queue of storage events, None if none is named."""
    if not settings.storage_events:
        return None
    with needed("aws"):
        from rushes.sources.event_queue import EventQueue
        from rushes.wiring.on_aws import service_of
    return EventQueue(service_of(settings, "sqs"), settings.storage_events)


def _place(settings: Settings, url: str) -> Place:
    return place_of(url, settings.s3_endpoint, settings.s3_key, settings.s3_secret)


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


def clock_of(settings: Settings) -> float | None:
    """Seconds since 1970 by the store's own clock, None if the store is a file of this machine.

    Raises:
        StoreAway: it does not answer.
    """
    if settings.store.startswith(_POSTGRES):
        return _clock_of_postgres(settings)
    return _clock_of_aws(settings) if settings.store.startswith(_DYNAMODB) else None


def _clock_of_postgres(settings: Settings) -> float:
    with needed("postgres"):
        from rushes.postgres.store import Postgres
    db = Postgres(settings.store, size=1, prepared=False)
    try:
        return float(db.ask("SELECT extract(epoch FROM clock_timestamp())", {})[0][0])
    finally:
        db.close()


def _clock_of_aws(settings: Settings) -> float:
    """By the date of an answer, which has whole seconds."""
    with needed("aws"):
        from rushes.wiring.on_aws import service_of
    service = service_of(settings, "dynamodb")
    service.ask("describe_table", TableName=settings.store.removeprefix(_DYNAMODB).strip("/"))
    now = service.wall_millis() / 1000
    service.close()
    return now


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
        return Laptop(settings, home, take_over)
    if settings.store.startswith(_POSTGRES):
        with needed("postgres"):
            from rushes.wiring.on_postgres import OnPostgres
        return OnPostgres(settings, home)
    if settings.store.startswith(_DYNAMODB):
        with needed("aws"):
            from rushes.wiring.on_aws import OnAws
        return OnAws(settings, home)
    raise Refused(f"there is no store {settings.store!r}", "Known are postgres://... and dynamodb://table.")
