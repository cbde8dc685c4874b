"""Which home a process uses: the one named, the nearest one, or the user's own library."""

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import platformdirs

from rushes.bucket.location import parse_location
from rushes.domain.video import BUCKETS
from rushes.files import local_path, make_private, write_whole
from rushes.settings import FILE_NAME, REMOTE, load, read_environment

HOME_NAME = ".rushes"


def find_home(start: Path, named: str | Path | None = None, places: Iterable[str] = ()) -> Path:
    """The home: the one named, else the nearest `.rushes/` upwards, else the user's library.

    For `places` that all lie in one bucket it is that bucket instead of the user's library, unless that has a store.
    """
    if named := named or os.environ.get("RUSHES_HOME"):
        return named_home(named)
    return _nearest(start) or _bucket_of(places) or own_library()


def _bucket_of(places: Iterable[str]) -> Path | None:
    buckets = {replace(parse_location(p), prefix="").url if p.startswith(BUCKETS) else "" for p in places}
    if len(buckets) != 1 or "" in buckets or load(own_library()).settings.store:
        return None
    return bucket_home(buckets.pop())


def is_named(named: str | Path | None) -> bool:
    """Whether a person chose the home that `find_home` answers: named it, or has it as the own library."""
    return bool(named or os.environ.get("RUSHES_HOME")) or not _nearest(Path.cwd())


def _nearest(start: Path) -> Path | None:
    above = (folder / HOME_NAME for folder in (start.absolute(), *start.absolute().parents))
    return next((home for home in above if home.is_dir()), None)


def own_library() -> Path:
    """The user's library: the home where no other is found or named."""
    return Path(platformdirs.user_data_dir("rushes")) / "home"


def named_home(named: str | Path) -> Path:
    """The home that somebody names.

    Raises:
        Refused: it is no path of this machine.
    """
    if str(named).startswith((*BUCKETS, *REMOTE)):
        return bucket_home(str(named)) if str(named).startswith(BUCKETS) else server_home(str(named))
    return local_path(named, "A home is a folder, or s3://bucket/prefix.").expanduser().absolute()


def bucket_home(url: str) -> Path:
    """The folder of this machine for a home that lies in a bucket: working copies, the index, and where the bucket is.

    Raises:
        Refused: it is no bucket.
    """
    location, endpoint = parse_location(url), read_environment(os.environ).get("s3_endpoint", "")
    name = hashlib.sha256(f"{endpoint} {location.url}".encode()).hexdigest()[:12]
    folder = Path(platformdirs.user_cache_dir("rushes")) / "buckets" / f"{location.bucket}-{name}"
    _remember_store(folder, f"store = {json.dumps(location.url)}\nblobs = {json.dumps(location.url)}\n")
    return folder


def server_home(url: str) -> Path:
    """The folder of this machine for a worker of a server: copies and scratch."""
    name = hashlib.sha256(url.encode()).hexdigest()[:12]
    folder = Path(platformdirs.user_cache_dir("rushes")) / "servers" / name
    _remember_store(folder, f"store = {json.dumps(url)}\n")
    return folder


def _remember_store(folder: Path, text: str) -> None:
    if not (folder / FILE_NAME).exists():
        make_private(folder)
        write_whole(folder / FILE_NAME, text.encode())
