"""Films straight to the bucket: what a bucket is asked when it is done already."""

from dataclasses import replace

import pytest
from botocore.stub import Stubber  # type: ignore[import-untyped]

from rushes.blobs.port import ByteRange
from rushes.blobs.s3.multipart import S3Multipart
from rushes.bucket.location import BucketLocation
from rushes.uploads.direct import DirectUpload
from tests.memory_blobs import MemoryBlobs

HEAD = b"\0\0\0\x18ftypisom"


class Whole(MemoryBlobs):
    """The film lies there: it was completed, and then came a kill or the reply was lost."""

    def read(self, key: str, start: int = 0, end: int | None = None) -> ByteRange | None:
        return ByteRange(HEAD[start:end], len(HEAD), "etag")


def test_a_film_that_is_whole_already_is_found_and_not_completed_again() -> None:
    bucket = S3Multipart(BucketLocation("b", "", "http://127.0.0.1:1", "k", "s"))
    with Stubber(bucket._client) as amazon:
        amazon.add_client_error("list_parts", "NoSuchUpload", http_status_code=404)
        found = DirectUpload(bucket, Whole(), "input/job/source.mp4", "id", len(HEAD), 16 << 20).complete("")
    assert found == ("etag", "")


@pytest.mark.parametrize(
    ("bucket", "endpoint", "style"),
    [("films", "", "virtual"), ("films", "http://127.0.0.1:1", "path"), ("films.of.ann", "", "path")],
)
def test_a_bucket_is_named_in_the_path_where_it_cannot_be_in_the_host(bucket: str, endpoint: str, style: str) -> None:
    client = S3Multipart(BucketLocation(bucket))._connected(endpoint, "k", "s")
    assert client.meta.config.s3["addressing_style"] == style


def test_uploads_that_nobody_finished_are_aborted_but_those_that_go_on(ministack_s3: BucketLocation) -> None:
    bucket = S3Multipart(replace(ministack_s3, prefix="unfinished"))
    left, going = (bucket.begin(f"input/{name}/source.mp4") for name in ("left", "going"))
    assert bucket.abort_older("input", 3600.0) == 0, "they are young"
    assert bucket.abort_older("input", -3600.0, but=[going]) == 1
    assert bucket.parts("input/left/source.mp4", left) is None
    assert bucket.parts("input/going/source.mp4", going) == ()
