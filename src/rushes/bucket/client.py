"""Bucket clients, and their errors as errors of the domain."""

import contextlib
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import AzureStore, GCSStore, S3Store

from rushes.bucket.location import BucketLocation
from rushes.domain.errors import NoCredentials, StoreAway, StoreMissing, StoreRefuses

BucketClient = S3Store | GCSStore | AzureStore
ODD_KEY = "object with invalid path"  # what a list says that meets a key which no client can name
_ROLE = ("/latest/api/token", "/latest/meta-data/iam")  # the last address where credentials are looked for


# The client of each cloud, and what it calls an endpoint, a key and a secret.
_CLOUDS: dict[str, tuple[Any, dict[str, str]]] = {
    "s3://": (S3Store, {"endpoint": "endpoint", "key": "access_key_id", "secret": "secret_access_key"}),
    # by GOOGLE_APPLICATION_CREDENTIALS or the machine's service account
    "gs://": (GCSStore, {"endpoint": "base_url"}),
    "az://": (AzureStore, {"endpoint": "endpoint", "key": "account_name", "secret": "account_key"}),
}


def connect(location: BucketLocation) -> BucketClient:
    """A client for a location. Safe in threads and in spawned processes, never across a fork."""
    store, words = _CLOUDS[location.scheme]
    named = {word: getattr(location, name) for name, word in words.items()}
    if store is GCSStore and location.endpoint.startswith("http://"):
        named["bearer_token"] = "none"  # noqa: S105 - an emulator: no token goes over the network in the clear
    client: BucketClient = store(
        location.bucket,
        prefix=location.prefix or None,
        config={name: value for name, value in named.items() if value},
        client_options={
            "allow_http": location.endpoint.startswith("http://"),
            "connect_timeout": timedelta(seconds=5),
            "read_timeout": timedelta(seconds=15),
            "timeout": timedelta(hours=6),  # of one whole answer; what stalls is ended by the read timeout
        },
        retry_config={
            "max_retries": 8,
            "retry_timeout": timedelta(seconds=location.patience),
            "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=3), "base": 2},
        },
    )
    return client


@contextlib.contextmanager
def translate_errors(doing: str) -> Iterator[None]:
    """A bucket that is not there, or does not answer us, is away; a key that is not there stays FileNotFoundError."""
    try:
        yield
    except FileNotFoundError as e:
        if "NoSuchBucket" not in str(e):
            raise
        raise _store_error(doing, e) from e
    except BaseError as e:
        raise _store_error(doing, e) from e


def _store_error(doing: str, error: Exception) -> StoreAway:
    """A list is refused without a type of its own: only the words tell."""
    text = str(error)
    if "NoSuchBucket" in text:
        return StoreMissing(f"{doing}: the bucket does not exist")
    if any(part in text for part in _ROLE):
        return NoCredentials(
            f"{doing}: no credentials were found", "Set s3_key and s3_secret, or configure AWS credentials."
        )
    if isinstance(error, PermissionDeniedError | UnauthenticatedError) or "403 Forbidden" in text:
        return StoreRefuses(f"{doing}: the bucket denies access", "Check the key and its permissions.")
    if ODD_KEY in text:
        hint = 'Rename or delete it: keys with "//", "/./", "/../" or control characters cannot be listed.'
        return StoreAway(f"{doing}: {text.partition(chr(10))[0][:300]}", hint)
    hint = "Check the network and the address of the service. Workers continue when it answers."
    return StoreAway(f"{doing}: {text.partition(chr(10))[0][:300]}", hint)
