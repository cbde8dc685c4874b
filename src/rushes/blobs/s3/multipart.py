"""Files that browsers send to the bucket in parts: presigned addresses, and which parts have come.

The bucket's list of parts is the truth: nothing that a browser says of a part is needed.
"""

import contextlib
import os
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

import boto3  # type: ignore[import-untyped]
from botocore.config import Config  # type: ignore[import-untyped]
from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped]

from rushes.blobs.key_rules import checked_key, stored_key
from rushes.blobs.port import UploadedPart
from rushes.bucket.location import BucketLocation
from rushes.domain.errors import NotAllowed, StoreAway
from rushes.telemetry import effect

_MISSING = ("NoSuchUpload", "NoSuchKey", "NoSuchCORSConfiguration", "404")
_RULE = {"ID": "rushes", "AllowedMethods": ["GET", "PUT"], "AllowedHeaders": ["*"]}  # of CORS, for pages that upload


class S3Multipart:
    """The same bucket (or prefix of one) as the blobs; `public` is where browsers reach it, if not where we do."""

    def __init__(self, location: BucketLocation, public: str = "") -> None:
        self._location, self._public, self._credentials = location, public, (location.key, location.secret)

    @cached_property
    def origin(self) -> str:  # asked at every look, and a client takes 100 ms to make
        anybody = self._connected(self._public or self._location.endpoint, "any", "any")  # who signs does not matter
        named = {"Bucket": self._location.bucket, "Key": "any"}
        parts = urlsplit(str(anybody.generate_presigned_url("get_object", named, 1)))
        return f"{parts.scheme}://{parts.netloc}"

    def begin(self, key: str) -> str:
        return str(self._ask("create_multipart_upload", Key=self._key(key))["UploadId"])

    def sign_put(self, key: str, seconds: int, size: int = 0) -> str:
        return self._signed("put_object", self._key(key), seconds, **{"ContentLength": size} if size else {})

    def sign_get(self, key: str, seconds: int, disposition: str = "") -> str:
        named = {"ResponseContentDisposition": disposition} if disposition else {}
        return self._signed("get_object", self._within(stored_key(key)), seconds, **named)

    def sign(self, key: str, id: str, parts: Sequence[tuple[int, int]], seconds: int) -> list[str]:
        asked = [{"UploadId": id, "PartNumber": number, "ContentLength": size} for number, size in parts]
        return [self._signed("upload_part", self._key(key), seconds, **one) for one in asked]

    def parts(self, key: str, id: str) -> tuple[UploadedPart, ...] | None:
        found, after, more = [], 0, True
        with _absent():
            while more:
                page = self._ask("list_parts", Key=self._key(key), UploadId=id, PartNumberMarker=after)
                found += [_uploaded_part(part) for part in page.get("Parts", ())]
                after, more = page.get("NextPartNumberMarker", 0), page.get("IsTruncated", False)
            return tuple(found)
        return None

    def complete(self, key: str, id: str, parts: Sequence[UploadedPart]) -> None:
        named = [{"PartNumber": part.number, "ETag": part.etag} for part in parts]
        with effect("publish"):
            self._ask("complete_multipart_upload", Key=self._key(key), UploadId=id, MultipartUpload={"Parts": named})

    def abort(self, key: str, id: str) -> None:
        with effect("drop"), _absent():
            self._ask("abort_multipart_upload", Key=self._key(key), UploadId=id)

    def shut_out(self, origins: Collection[str]) -> list[str]:
        return [origin for origin in origins if not any(_lets_in(rule, origin) for rule in self._cors_rules())]

    def let_in(self, origins: Collection[str]) -> None:
        rules = self._cors_rules()
        kept = [rule for rule in rules if rule.get("ID") != _RULE["ID"]]
        ours = [origin for rule in rules if rule not in kept for origin in rule["AllowedOrigins"]]
        rule = {**_RULE, "AllowedOrigins": [*dict.fromkeys([*ours, *origins])]}
        with _may_ask():
            self._ask("put_bucket_cors", CORSConfiguration={"CORSRules": [*kept, rule]})

    def _cors_rules(self) -> list[Any]:
        with _absent(), _may_ask():
            return list(self._ask("get_bucket_cors")["CORSRules"])
        return []

    def abort_older(self, folder: str, seconds: float, but: Collection[str] = ()) -> int:
        then = datetime.now(UTC) - timedelta(seconds=seconds)
        pages = self._client.get_paginator("list_multipart_uploads")
        with _translate_errors("list_multipart_uploads"):
            answers = list(pages.paginate(Bucket=self._location.bucket, Prefix=f"{self._key(folder)}/"))
        found = [upload for page in answers for upload in page.get("Uploads", ())]
        old = [upload for upload in found if upload["Initiated"] < then and upload["UploadId"] not in but]
        for upload in old:
            with effect("drop"), _absent():
                self._ask("abort_multipart_upload", Key=upload["Key"], UploadId=upload["UploadId"])
        return len(old)

    def _signed(self, operation: str, key: str, seconds: int, **named: Any) -> str:
        request = {"Bucket": self._location.bucket, "Key": key, **named}
        with _translate_errors("signing an address"):
            return str(self._signer.generate_presigned_url(operation, request, seconds))

    def _key(self, key: str) -> str:
        return self._within(checked_key(key))

    def _within(self, key: str) -> str:
        return f"{self._location.prefix}/{key}".lstrip("/")

    def _ask(self, operation: str, **request: Any) -> Any:
        with _translate_errors(operation):
            return getattr(self._client, operation)(Bucket=self._location.bucket, **request)

    @cached_property
    def _client(self) -> Any:
        return self._connected(self._location.endpoint, *self._credentials)

    @cached_property
    def _signer(self) -> Any:
        return self._connected(self._public, *self._credentials) if self._public else self._client

    def _connected(self, endpoint: str, key: str, secret: str) -> Any:
        config = Config(
            signature_version="s3v4",
            s3={"addressing_style": "path" if endpoint or "." in self._location.bucket else "virtual"},
            connect_timeout=3,
            read_timeout=15,
            retries={"mode": "standard", "total_max_attempts": 2},
            request_checksum_calculation="when_required",  # other services refuse Amazon's newer checksums
            response_checksum_validation="when_required",
        )
        region = os.environ.get("AWS_REGION")  # which boto3 does not read; the rest of its sources it finds itself
        session = boto3.session.Session(key or None, secret or None, region_name=region or None)
        return session.client("s3", endpoint_url=endpoint or None, config=config)


def _uploaded_part(part: Any) -> UploadedPart:
    age = max(0.0, (datetime.now(UTC) - part["LastModified"]).total_seconds())
    return UploadedPart(part["PartNumber"], part["Size"], part["ETag"], age)


def _lets_in(rule: Any, origin: str) -> bool:
    allows = any(fnmatchcase(origin, known) for known in rule["AllowedOrigins"])
    return allows and {"GET", "PUT"} <= {*rule["AllowedMethods"]} and "*" in rule.get("AllowedHeaders", ())


@contextlib.contextmanager
def _may_ask() -> Iterator[None]:
    """Raises NotAllowed: our role may not ask about the bucket itself."""
    try:
        yield
    except StoreAway as e:
        if isinstance(e.__cause__, ClientError) and e.__cause__.response["Error"]["Code"] == "AccessDenied":
            raise NotAllowed(
                "this role may not read the CORS rules", "It needs s3:GetBucketCORS, s3:PutBucketCORS."
            ) from e
        raise


@contextlib.contextmanager
def _translate_errors(doing: str) -> Iterator[None]:
    """A bucket that does not answer, or not us, is away; what is not there is FileNotFoundError."""
    try:
        yield
    except ClientError as e:
        if e.response["Error"]["Code"] in _MISSING:
            raise FileNotFoundError(doing) from e
        raise StoreAway(f"{doing}: {e}"[:300], "Check the key and its permissions for the bucket.") from e
    except BotoCoreError as e:
        raise StoreAway(f"{doing}: {e}"[:300], "Check that the bucket exists. Work continues automatically.") from e


def _absent() -> contextlib.AbstractContextManager[None]:
    return contextlib.suppress(FileNotFoundError)
