"""How a bucket is reached, and what its errors mean here."""

import contextlib
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import S3Store

from rushes.blobs.s3_place import Place
from rushes.domain.errors import StoreAway


def connect(place: Place) -> S3Store:
    """A client for a place. Safe in threads and in spawned processes, never across a fork."""
    named = {"endpoint": place.endpoint, "access_key_id": place.key, "secret_access_key": place.secret}
    config: Any = {name: value for name, value in named.items() if value}
    return S3Store(
        place.bucket,
        prefix=place.prefix or None,
        config=config,
        client_options={
            "allow_http": place.endpoint.startswith("http://"),
            "connect_timeout": timedelta(seconds=5),
            "read_timeout": timedelta(seconds=15),
            "timeout": timedelta(hours=6),  # of one whole answer; what stalls is ended by the read timeout
        },
        retry_config={
            "max_retries": 8,
            "retry_timeout": timedelta(seconds=place.patience),
            "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=3), "base": 2},
        },
    )


@contextlib.contextmanager
def translated(doing: str) -> Iterator[None]:
    """A bucket that does not answer, or not us, is away; what is not there stays FileNotFoundError."""
    try:
        yield
    except (PermissionDeniedError, UnauthenticatedError) as e:
        raise StoreAway(f"{doing}: the bucket refuses us", "Check the key and what it may do.") from e
    except BaseError as e:
        raise StoreAway(f"{doing}: {_first_line(e)}", "Check that the bucket is there; work goes on by itself.") from e


def _first_line(error: BaseError) -> str:
    return str(error).partition("\n")[0][:300]
