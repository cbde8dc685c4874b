"""Buckets as sources, read by parts of the version that was taken in, never by URL; uploads that jobs wait for."""

import hashlib
import io
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from obstore.exceptions import BaseError, PermissionDeniedError, PreconditionError

from rushes.blobs.local_cache import LocalCache
from rushes.bucket.client import ODD_KEY, BucketClient, connect, translate_errors
from rushes.bucket.location import BucketLocation
from rushes.domain.errors import SourceChanged, SourceMissing, StoreAway
from rushes.domain.video import Fingerprint
from rushes.files import READ
from rushes.sources.folder import AUDIO, VIDEO
from rushes.sources.port import FoundFile, SkippedFile, StorageEvent
from rushes.sources.ranges import RangedReader

_PAGE = 1000  # keys that one request lists
_BLOCK = 4 << 20  # bytes of one request; a decoder asks for 32 KB at a time


@dataclass(frozen=True, slots=True)
class Bucket:
    """A key as it is named, or everything below it that looks like footage. What S3 shows is whole.

    `own` are folders of a home in it, in which nobody's footage is: where there is much, they are not listed.
    """

    location: BucketLocation
    grows: bool = False
    own: tuple[str, ...] = ()

    def scan(self) -> Iterator[FoundFile | SkippedFile]:
        try:
            with translate_errors("listing a bucket"):
                yield from self._all()
        except StoreAway as e:
            yield SkippedFile(self.location.url, str(e), cause=type(e)(f"{self.location.url}: {e}", e.advice))

    def at(self, bucket: str, key: str) -> Iterator[FoundFile]:
        named, below = self.location.prefix, f"{self.location.prefix}/" if self.location.prefix else ""
        if bucket == self.location.bucket and (key == named or (key.startswith(below) and _looks_like_footage(key))):
            with translate_errors("checking a key"):
                found = [self._check(meta) for meta in _named(_whole(self.location), key)]
            yield from (entry for entry in found if isinstance(entry, FoundFile))

    def _all(self) -> Iterator[FoundFile | SkippedFile]:
        store, named, films, key = _whole(self.location), self.location.prefix, set[str](), list[Any]()
        with suppress(PermissionDeniedError):  # by who may read what is below it and nothing else: then it is a folder
            key = _named(store, named)
        for meta in key or self._list(store, named):
            if isinstance(meta, SkippedFile):
                yield meta
            elif meta["path"] not in films and (meta["path"] == named or _looks_like_footage(meta["path"])):
                films.add(meta["path"])
                yield self._check(meta)
        if not films:
            yield SkippedFile(self.location.url, "no videos in it")

    def _list(self, store: BucketClient, prefix: str) -> Iterator[Any]:
        """What is below; if a key there cannot be listed, folder by folder, and what came before it once more."""
        pages, below = iter(store.list(prefix or None, chunk_size=_PAGE)), f"{prefix}/" if prefix else ""
        try:
            first = next(pages, [])
            if len(first) < _PAGE or not any(folder.startswith(below) and folder != below for folder in self.own):
                yield from chain(first, chain.from_iterable(pages))
                return
        except BaseError as e:
            if ODD_KEY not in str(e):
                raise
        yield from self._by_folder(store, prefix)

    def _by_folder(self, store: BucketClient, prefix: str) -> Iterator[Any]:
        try:
            with translate_errors("listing a bucket"):
                found = store.list_with_delimiter(prefix or None)
        except StoreAway as e:
            if ODD_KEY not in str(e):
                raise
            place = replace(self.location, prefix=prefix).url
            yield SkippedFile(place, str(e), cause=StoreAway(f"{place}: {e}", e.advice))
            return
        yield from found["objects"]
        for folder in found["common_prefixes"]:
            if f"{folder}/" not in self.own:
                yield from self._list(store, folder)

    def _check(self, meta: Any) -> FoundFile | SkippedFile:
        found = _fingerprint(self.location, meta)
        return FoundFile(found) if found.size else SkippedFile(found.path, "it is empty")


class BucketOriginals:
    """Opens originals in any bucket that the same credentials reach; parts of them are kept in a bounded cache."""

    def __init__(self, access: BucketLocation, cache: Path, most: int = 10 << 30) -> None:
        """`access` says how buckets are reached; its own bucket and prefix do not matter."""
        self._access = access
        self._cache = LocalCache(cache, most)
        self._stores: dict[str, BucketClient] = {}

    def original(self, taken_in: Fingerprint) -> "BucketOriginal":
        """The original that was taken in as this; of one that was promised before it was there, what is there now.

        Raises:
            SourceMissing: it was promised and is not there.
            StoreAway: the bucket does not answer.
        """
        scheme, slashes, rest = taken_in.path.partition("://")
        name, _, key = rest.partition("/")
        bucket = replace(self._access, bucket=name, prefix="", scheme=scheme + slashes)
        store = self._stores.setdefault(bucket.url, _whole(bucket))
        return BucketOriginal(store, key, taken_in if taken_in.etag else _now(store, bucket, key), self._cache)


@dataclass(frozen=True, slots=True)
class BucketOriginal:
    """An original in a bucket. Every read names the ETag that was taken in, so another version is never mixed in."""

    store: BucketClient
    key: str
    taken_in: Fingerprint
    cache: LocalCache

    @property
    def name(self) -> str:
        """What people call it."""
        return PurePosixPath(self.key).name

    def open(self) -> BinaryIO:
        """A seekable reader.

        Raises (while it is read as well):
            SourceMissing, SourceChanged: it is not there, or not what was taken in.
            StoreAway: the bucket does not answer.
        """
        opened = RangedReader(self.taken_in.size, _BLOCK, lambda number: os.open(self.block(number), READ))
        return io.BufferedReader(opened, 1 << 16)

    @property
    def block_size(self) -> int:
        return _BLOCK

    def block(self, number: int) -> Path:
        start = number * _BLOCK
        end = min(start + _BLOCK, self.taken_in.size)
        whole = hashlib.sha256(f"{self.taken_in.path}\n{self.taken_in.etag}".encode()).hexdigest()
        return self.cache.copy(f"{whole[:32]}-{number:06d}", end - start, lambda file: self._fetch(file, start, end))

    def _fetch(self, file: BinaryIO, start: int, end: int) -> None:
        try:
            with translate_errors(f"reading {self.name}"):
                data = self._range(start, end)
        except FileNotFoundError as e:
            raise SourceMissing(f"{self.taken_in.path} is missing") from e
        if len(data) != end - start:
            raise StoreAway(f"reading {self.name}: {len(data)} bytes arrived instead of {end - start}")
        file.write(data)

    def _range(self, start: int, end: int) -> bytes:
        try:
            answer = self.store.get(self.key, options={"range": (start, end), "if_match": f'"{self.taken_in.etag}"'})
            return bytes(answer.bytes())
        except PreconditionError as e:
            raise SourceChanged(f"{self.name} has changed since it was added") from e


def _whole(location: BucketLocation) -> BucketClient:
    return connect(replace(location, prefix=""))


def _named(store: BucketClient, key: str) -> list[Any]:
    try:
        return [store.head(key)] if key else []
    except (FileNotFoundError, ValueError):  # ValueError: a key with an empty part, "..", or a control character
        return []


def _now(store: BucketClient, bucket: BucketLocation, key: str) -> Fingerprint:
    with translate_errors("checking a key"):
        for meta in _named(store, key):
            return _fingerprint(bucket, meta)
    raise SourceMissing(f"{bucket.url}/{key} is missing")


def _etag(meta: Any) -> str:
    return (meta["e_tag"] or "").strip('"')


def _fingerprint(bucket: BucketLocation, meta: Any) -> Fingerprint:
    changed = int(meta["last_modified"].timestamp()) * 10**9  # a list says milliseconds where one look says seconds
    return Fingerprint(f"{replace(bucket, prefix='').url}/{meta['path']}", meta["size"], changed, etag=_etag(meta))


def _looks_like_footage(key: str) -> bool:
    path = PurePosixPath(key)
    return path.suffix.lower() in VIDEO + AUDIO and not any(part.startswith(".") for part in path.parts)


class BucketUploads:
    """Which keys of a bucket are the home's."""

    def __init__(self, home: BucketLocation) -> None:
        self._bucket, self._prefix = home.bucket, f"{home.prefix}/" if home.prefix else ""

    def key_of(self, event: StorageEvent) -> str:
        """Only keys below the home's prefix count."""
        inside = event.bucket == self._bucket and event.key.startswith(self._prefix)
        return event.key.removeprefix(self._prefix) if inside else ""
