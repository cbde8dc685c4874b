"""Players read by ranges what lies in a bucket."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rushes.bucket.location import BucketLocation
from rushes.library import JobRequest, Library
from rushes.surfaces.api.media import parse_range
from tests.api.kit import Serving, serving


@pytest.fixture
def far(home: Path, film: Path, ministack_s3: BucketLocation) -> Iterator[Serving]:
    """A server over a home whose results lie in a bucket."""
    home.mkdir()
    place = {"blobs": f"{ministack_s3.url}/far-media", "s3_endpoint": ministack_s3.endpoint,
             "s3_key": ministack_s3.key, "s3_secret": ministack_s3.secret}  # fmt: skip
    (home / "rushes.toml").write_text("".join(f'{name} = "{value}"\n' for name, value in place.items()))
    with Library(home) as library:
        assert library.run([film], JobRequest(only=("playlist",)), slots=1).exit_code == 0
    with serving(home) as running:
        yield running


def test_a_piece_of_the_proxy_in_a_bucket_is_read_by_ranges(far: Serving) -> None:
    (video,) = far.get("/api/v1/videos")["items"]
    names = [line for line in far.http.get(video["proxy"]).text.splitlines() if line and not line.startswith("#")]
    piece = f"{video['proxy'].rpartition('/')[0]}/{names[0]}"
    whole = far.http.get(piece)
    assert (whole.status_code, whole.headers["accept-ranges"]) == (200, "bytes")
    assert int(whole.headers["content-length"]) == len(whole.content) > 100
    middle = far.http.get(piece, headers={"Range": "bytes=10-19"})
    assert (middle.status_code, middle.content) == (206, whole.content[10:20])
    assert middle.headers["content-range"] == f"bytes 10-19/{len(whole.content)}"
    assert far.http.get(piece, headers={"Range": "bytes=-7"}).content == whole.content[-7:]
    assert far.http.get(piece, headers={"Range": f"bytes={len(whole.content)}-"}).status_code == 416
    assert far.http.get(piece, headers={"If-None-Match": whole.headers["etag"]}).status_code == 304
    stale = far.http.get(piece, headers={"Range": "bytes=0-1", "If-Range": '"another"'})
    assert (stale.status_code, stale.content) == (200, whole.content)
    head = far.http.head(piece)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == whole.headers["content-length"]


@pytest.mark.parametrize(
    ("said", "range"),
    [("", (0, 100)), ("bytes=0-", (0, 100)), ("bytes=5-9", (5, 10)), ("bytes=90-200", (90, 100)),
     ("bytes=-5", (95, 100)), ("bytes=-500", (0, 100)), ("bytes=100-", (100, 100)), ("bytes=-", (0, 100)),
     ("bytes=1-2,4-5", (0, 100)), ("lines=1-2", (0, 100))],
)  # fmt: skip
def test_a_range_is_read_as_players_write_it(said: str, range: tuple[int, int]) -> None:
    assert parse_range(said, 100) == range
