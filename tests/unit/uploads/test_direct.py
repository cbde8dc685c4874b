"""Films straight to the bucket: what a bucket is asked when it is done already."""

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
