"""The location of a bucket, parsed from the settings."""

import re
from dataclasses import dataclass, field, replace

from rushes.domain.errors import Refused
from rushes.domain.video import BUCKETS

SCHEME = "s3://"
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_PART = r"(?!\.\.?(?:/|$))[^/\x00-\x1f\x7f]+"  # neither empty nor a way up
_PREFIX = re.compile(f"{_PART}(?:/{_PART})*")


@dataclass(frozen=True, slots=True)
class BucketLocation:
    """A bucket, or a part of it. Empty means as its cloud's tools find it: environment, role of the machine."""

    bucket: str
    prefix: str = ""
    endpoint: str = ""
    key: str = ""
    secret: str = field(default="", repr=False)
    patience: float = 20.0  # seconds that a request is tried again for; below a lease
    scheme: str = SCHEME

    @property
    def url(self) -> str:
        """As people write it."""
        return f"{self.scheme}{self.bucket}/{self.prefix}".rstrip("/")

    def below(self, part: str) -> "BucketLocation":
        """A folder of it."""
        return replace(self, prefix=f"{self.prefix}/{part}".strip("/"))


def parse_location(url: str, endpoint: str = "", key: str = "", secret: str = "") -> BucketLocation:
    """The location that s3://bucket/prefix, gs:// or az:// names (a bare bucket is one of S3).

    Raises:
        Refused: it names none.
    """
    scheme = next((scheme for scheme in BUCKETS if url.startswith(scheme)), SCHEME)
    bucket, _, prefix = url.removeprefix(scheme).partition("/")
    prefix = prefix.strip("/")
    if not _BUCKET.fullmatch(bucket) or (prefix and not _PREFIX.fullmatch(prefix)):
        raise Refused(
            f"not a bucket: {url[:200]!r}",
            "Write it as s3://bucket/prefix, gs://bucket/prefix or az://container/prefix.",
        )
    return BucketLocation(bucket, prefix, endpoint, key, secret, scheme=scheme)
