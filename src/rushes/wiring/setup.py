"""Shared by all set-ups. Backends are imported when they are opened: a laptop needs no drivers."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rushes.blobs.port import Blobs, Multipart
from rushes.bucket.location import BucketLocation, parse_location
from rushes.domain.errors import Refused
from rushes.domain.video import BUCKETS, BlockOriginal, Fingerprint
from rushes.files import local_path
from rushes.model_settings import uses_stub
from rushes.settings import Settings, shown
from rushes.sources.folder import Folder
from rushes.sources.port import ExpectedUploads, Source, StorageEvents
from rushes.transport.port import Describe, Transport

# Folders of a home in which nothing is footage that was given to us.
_RESULTS = ("blobs", "checkpoints", "frames", "results", "thumbs", "videos/3d", "videos/clips", "videos/proxy")
_PATIENCE_SECONDS = 30  # of a person who waits for an inference service
_ANSWER_SECONDS = 5.0  # that a queue may take beyond those that it was asked to wait
_REDIS = {"redis://": "redis://", "rediss://": "rediss://", "valkey://": "redis://", "valkeys://": "rediss://"}


class Setup:
    """What every set-up opens in the same way: buckets, sources, storage events."""

    def __init__(self, settings: Settings, home: Path) -> None:
        self._settings, self._home = settings, home

    @property
    def _index_file(self) -> Path:
        """Made-up answers have an index of their own."""
        return self._home / ("index-stub.sqlite" if uses_stub(self._settings) else "index.sqlite")

    def engine(self, stage: str) -> Any:
        """As the settings say, for questions of people."""
        from rushes.wiring.engines import open_engine

        return open_engine(self._settings, stage, min(_PATIENCE_SECONDS, self._settings.inference_seconds))

    def blobs(self) -> Blobs:
        """A bucket, or the home's folder; a fleet must share that."""
        return blobs_of(self._settings, self._home, fleet=bool(self._settings.store))

    def multipart(self) -> Multipart | None:
        """Signed uploads to the bucket, if boto3 is here to sign them."""
        s = self._settings
        signed = s.presigned and s.blobs and not s.blobs.startswith(("gs://", "az://"))
        if not signed or not find_spec("boto3"):
            return None
        from rushes.blobs.s3.multipart import S3Multipart

        return S3Multipart(_place(s, s.blobs), s.s3_public)

    def source(self, place: str) -> Source:
        """A folder or a bucket."""
        if not place.startswith(BUCKETS):
            return Folder(local_path(place, "Write a path, or s3://bucket/prefix."))
        with needed("s3"):
            from rushes.sources.bucket import Bucket
        location = _place(self._settings, place)
        return Bucket(location, own=self._own_folders(location))

    def _own_folders(self, place: BucketLocation) -> tuple[str, ...]:
        """Where results of this home lie in the same bucket."""
        home = _place(self._settings, self._settings.blobs) if self._settings.blobs else None
        same = home and (home.scheme, home.bucket) == (place.scheme, place.bucket)
        return tuple(f"{home.below(folder).prefix}/" for folder in _RESULTS) if home and same else ()

    def bucket_originals(self) -> Callable[[Fingerprint], BlockOriginal]:
        """Read by range, through copies in the home."""
        with needed("s3"):
            from rushes.sources.bucket import BucketOriginals
        return BucketOriginals(_place(self._settings, "s3://any"), self._home / "copies").original

    def expected_uploads(self) -> ExpectedUploads | None:
        """Uploads to the home's bucket."""
        if not self._settings.blobs:
            return None
        with needed("s3"):
            from rushes.sources.bucket import BucketUploads
        return BucketUploads(_place(self._settings, self._settings.blobs))

    def unprotected(self) -> Sequence[str] | None:
        """Backups of a file are the home's, and those of PostgreSQL its administrator's."""
        return None

    def storage_events(self) -> StorageEvents | None:
        """SQS."""
        s = self._settings
        return event_queue(s, s.storage_events) if s.storage_events else None


def event_queue(settings: Settings, name: str) -> StorageEvents:
    """A queue of storage events in SQS, by its name or URL."""
    with needed("aws"):
        from rushes.sources.event_queue import EventQueue
        from rushes.wiring.aws_client import service_of
    return EventQueue(service_of(settings, "sqs", _ANSWER_SECONDS + settings.sqs_wait_seconds), name)


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
            f"other machines cannot read {home / 'files'}",
            'Set blobs = "s3://bucket/prefix", or shared = true if every worker has this folder mounted.',
        )
    return folder_blobs(home / "files")


def folder_blobs(folder: Path) -> Blobs:
    """A blob store in a folder."""
    from rushes.blobs.folder import FolderBlobs

    return FolderBlobs(folder)


def _place(settings: Settings, url: str) -> BucketLocation:
    return parse_location(url, settings.s3_endpoint, settings.s3_key, settings.s3_secret)


def hints_of(settings: Settings, describe: Describe) -> Transport:
    """Redis or Valkey.

    Raises:
        Refused: it is not named as they are.
    """
    scheme, slashes, rest = settings.hints.partition("://")
    with needed("redis"):
        from rushes.transport.redis import RedisHints
    try:
        return RedisHints(_REDIS[scheme + slashes] + rest, describe=describe)
    except (KeyError, ValueError) as e:
        hint = "Write it as redis://host:port or valkey://host:port, with TLS as rediss:// or valkeys://."
        raise Refused(f"unknown hints {shown(settings, 'hints')!r}", hint) from e


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
