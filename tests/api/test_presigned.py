"""Films straight to the bucket: signed parts, a cut and a restart in between, wrong parts, giving up."""

import hashlib
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from threading import Event
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from rushes.blobs.documents import read_document
from rushes.blobs.s3.multipart import S3Multipart
from rushes.bucket.location import BucketLocation
from rushes.domain.errors import StoreAway
from rushes.domain.task import TaskState
from rushes.home_location import bucket_home
from rushes.jobs.intake import JobRequest
from rushes.uploads import direct, expiry
from rushes.uploads.service import Uploads
from tests.api.kit import Serving, serving
from tests.api.test_uploads import begin, probe_state, send

PART = 5 << 20  # the least that a bucket takes, but for the last one
HEAD = b"\0\0\0\x18ftypmp42"


def in_bucket(home: Path, place: BucketLocation, *more: str) -> AbstractContextManager[Serving]:
    """A server whose films lie in the bucket; slots read the same settings."""
    said = {"s3_endpoint": place.endpoint, "s3_key": place.key, "s3_secret": place.secret}
    lines = [f'{name} = "{value}"' for name, value in said.items()]
    home.mkdir(exist_ok=True)
    (home / "rushes.toml").write_text("\n".join([*lines, f'blobs = "s3://{place.bucket}/{home.parent.name}"', *more]))
    return serving(home)


@pytest.fixture
def server(home: Path, seaweed_s3: BucketLocation) -> Iterator[Serving]:
    with in_bucket(home, seaweed_s3) as running:
        yield running


@pytest.fixture
def large(film: Path, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """A film in three parts."""
    monkeypatch.setattr(direct, "PART", PART)
    return film.read_bytes() + bytes(2 * PART)


def ask(server: Serving, at: str) -> Any:
    return server.post(f"{at}/parts")


def put(piece: Any, data: bytes) -> int:
    return httpx.put(piece["url"], content=data[piece["start"] : piece["end"]], timeout=60).status_code


def incomplete(server: Serving) -> list[Any]:
    bucket = server.library.home.multipart
    assert isinstance(bucket, S3Multipart)
    found = bucket._client.list_multipart_uploads(Bucket=bucket._location.bucket, Prefix=bucket._location.prefix)
    return list(found.get("Uploads", ()))


def test_parts_go_straight_to_the_bucket_and_the_job_begins_when_all_are_there(server: Serving, large: bytes) -> None:
    at, job = begin(server, large, direct="yes", sha256=hashlib.sha256(large).hexdigest())
    said = ask(server, at)
    assert [(p["number"], p["start"], p["end"]) for p in said["parts"]] == [
        (1, 0, PART), (2, PART, 2 * PART), (3, 2 * PART, len(large))
    ]  # fmt: skip
    assert [put(p, large) for p in said["parts"]] == [200, 200, 200]
    assert probe_state(server, job) is TaskState.WAITING
    done = ask(server, at)
    assert (done["upload"]["state"], done["parts"]) == ("arrived", [])
    assert probe_state(server, job) is TaskState.READY
    assert read_document(server.library.home.blobs, f"input/{job}/source.mp4") == large
    assert not list((server.library.home.folder).rglob("*.part"))
    assert ask(server, at) == done


def test_the_film_is_developed_from_the_bucket(server: Serving, film: Path) -> None:
    data = film.read_bytes()
    at, _ = begin(server, data, direct="yes")
    (piece,) = ask(server, at)["parts"]
    assert put(piece, data) == 200
    assert ask(server, at)["upload"]["state"] == "arrived"
    assert server.library.work(slots=1, until_idle=True) == 0
    (video,) = server.get("/api/v1/videos")["items"]
    assert (video["name"], video["sha256"]) == ("holiday.mp4", hashlib.sha256(data).hexdigest())
    original = f"/api/v1/videos/{video['id']}/original"
    assert server.http.get(original).content == data
    middle = server.http.get(original, headers={"Range": "bytes=100-199"})
    assert (middle.status_code, middle.content) == (206, data[100:200])
    assert middle.headers["content-disposition"].startswith('attachment; filename="holiday.mp4"')


def test_cut_in_the_middle_it_goes_on_where_it_was_even_after_a_restart(
    home: Path, seaweed_s3: BucketLocation, large: bytes
) -> None:
    with in_bucket(home, seaweed_s3) as server:
        at, job = begin(server, large, direct="yes")
        assert put(ask(server, at)["parts"][1], large) == 200
    with in_bucket(home, seaweed_s3) as server:
        head = server.http.head(at).headers
        assert (head["upload-offset"], head["rushes-parts"]) == (str(PART), f"{at}/parts")
        said = ask(server, at)
        assert [p["number"] for p in said["parts"]] == [1, 3]
        assert [put(p, large) for p in said["parts"]] == [200, 200]
        assert int(server.http.head(at).headers["upload-offset"]) == len(large)
        assert probe_state(server, job) is TaskState.READY


def test_an_upload_to_a_home_in_a_bucket_goes_on_at_a_server_of_another_machine(
    seaweed_s3: BucketLocation, large: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first server is gone with its disk; nothing but the bucket knows of the upload."""
    place = f"{seaweed_s3.url}/{tmp_path.name}"
    for name in ("endpoint", "key", "secret"):
        monkeypatch.setenv(f"RUSHES_S3_{name.upper()}", getattr(seaweed_s3, name))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "first"))
    with serving(bucket_home(place)) as server:
        at, job = begin(server, large, direct="yes")
        assert put(ask(server, at)["parts"][1], large) == 200
    shutil.rmtree(tmp_path / "first")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "second"))
    with serving(bucket_home(place)) as server:
        said = ask(server, at)
        assert [put(p, large) for p in said["parts"]] == [200, 200]
        assert ask(server, at)["upload"]["state"] == "arrived"
        assert probe_state(server, job) is TaskState.READY
        at, job = begin(server, large)  # through the server
        assert send(server, at, 0, large).status_code == 204
        assert probe_state(server, job) is TaskState.READY
        assert len(server.get("/api/v1/jobs")["items"]) == 2


def test_a_kill_between_the_bucket_and_the_ledger_loses_nothing(
    home: Path, seaweed_s3: BucketLocation, film: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = film.read_bytes()
    with in_bucket(home, seaweed_s3) as server:
        at, job = begin(server, data, direct="yes")
        assert put(ask(server, at)["parts"][0], data) == 200
        uploads: Uploads = server.library.uploads
        found = uploads.direct(uploads.get(at.rpartition("/")[2]))
        assert found
        found.complete("")
        assert probe_state(server, job) is TaskState.WAITING
    with in_bucket(home, seaweed_s3) as server:
        assert probe_state(server, job) is TaskState.READY


def test_a_look_at_the_bucket_tells_the_ledger_of_what_has_come(server: Serving, film: Path) -> None:
    data = film.read_bytes()
    at, job = begin(server, data, direct="yes", sha256=hashlib.sha256(data).hexdigest())
    assert put(ask(server, at)["parts"][0], data) == 200
    assert probe_state(server, job) is TaskState.WAITING
    assert list(server.library.watch((), once=True)) == []
    assert probe_state(server, job) is TaskState.READY


def test_no_job_begins_before_its_bytes_are_looked_at(server: Serving, film: Path) -> None:
    """The film is seen in the bucket, by an event or a sweep, while it is still compared with its promise."""
    data = film.read_bytes()
    at, job = begin(server, data, direct="yes", sha256=hashlib.sha256(data).hexdigest())
    assert put(ask(server, at)["parts"][0], data) == 200
    uploads = server.library.uploads
    direct = uploads.direct(uploads.get(at.rpartition("/")[2]))
    assert direct
    direct.complete("")
    server.library.puts.on_key(f"input/{job}/source.mp4")
    server.library.puts.look_for_promised(old=True)
    assert probe_state(server, job) is TaskState.WAITING
    assert ask(server, at)["upload"]["state"] == "arrived"
    assert probe_state(server, job) is TaskState.READY


def test_only_what_is_ours_and_in_no_open_record_is_aborted(server: Serving, large: bytes) -> None:
    at, _ = begin(server, large, direct="yes")
    bucket, going = server.library.home.multipart, server.library.uploads.get(at.rpartition("/")[2]).multipart
    assert bucket
    theirs, _stray = bucket.begin("input-masters/a.mp4"), bucket.begin("input/job_stray/source.mp4")
    assert bucket.abort_older("input", -1.0, {going}) == 1
    assert {one["UploadId"] for one in incomplete(server)} == {going, theirs}


def test_a_bucket_that_hangs_holds_up_no_other_upload(
    server: Serving, large: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    uploads, wanted = Uploads(server.library.home), JobRequest("subtitles")
    begin(server, large, direct="yes")  # one that is open, whose parts lie in the bucket
    asked, answers = Event(), Event()

    def hang(*_: object) -> None:
        asked.set()
        answers.wait()
        raise StoreAway("the bucket does not answer")

    monkeypatch.setattr(S3Multipart, "begin", hang)
    monkeypatch.setattr(S3Multipart, "parts", hang)
    with ThreadPoolExecutor() as threads:
        try:
            hung = threads.submit(uploads.begin, "a.mp4", 2 * PART, wanted, direct=True)
            assert asked.wait(60)
            other = threads.submit(uploads.begin, "b.mp4", 1000, wanted).result(60)
        finally:
            answers.set()
        with pytest.raises(StoreAway):
            hung.result()
    assert [u.id for u in uploads._promised() if u.name in "a.mp4 b.mp4"] == [other.id]


def test_an_address_takes_just_its_part(server: Serving, large: bytes) -> None:
    at, _ = begin(server, large, direct="yes")
    first, second, _ = ask(server, at)["parts"]
    assert put(first | {"end": first["end"] - 1}, large) == 403
    other = first["url"].replace("partNumber=1", "partNumber=2")
    assert httpx.put(other, content=large[:PART], timeout=60).status_code == 403
    assert put(second, large) == 200
    assert [p["number"] for p in ask(server, at)["parts"]] == [1, 3]
    assert 0 < int(parse_qs(urlsplit(first["url"]).query)["X-Amz-Expires"][0]) <= 900


def test_a_part_of_another_size_is_asked_for_again(server: Serving, large: bytes) -> None:
    """Buckets that do not look at the signed length: what counts is what lies there."""
    at, _ = begin(server, large, direct="yes")
    uploads, id = server.library.uploads, at.rpartition("/")[2]
    bucket, kept = server.library.home.multipart, uploads.get(id)
    assert bucket
    (url,) = bucket.sign(kept.key, kept.multipart, [(1, PART - 1)], 60)
    assert httpx.put(url, content=large[: PART - 1], timeout=60).status_code == 200
    said = ask(server, at)
    assert ([p["number"] for p in said["parts"]], said["upload"]["offset"]) == ([1, 2, 3], 0)


@pytest.mark.parametrize(
    ("data", "sha256", "why"),
    [(b"%PDF-1.7\n\xff\xfe", "", "PDF"), (HEAD + bytes(9), "0" * 64, "announced")],
    ids=["a PDF", "other bytes"],
)
def test_what_is_not_what_was_promised_is_refused_and_removed(
    server: Serving, data: bytes, sha256: str, why: str
) -> None:
    at, job = begin(server, data, direct="yes", **({"sha256": sha256} if sha256 else {}))
    assert put(ask(server, at)["parts"][0], data) == 200
    assert why in server.post(f"{at}/parts", status=400)["detail"]
    assert server.http.get(f"/api/v1/jobs/{job}").status_code == 404, "no job is left of it"
    assert read_document(server.library.home.blobs, f"input/{job}/source.mp4") is None
    assert server.http.head(at).status_code == 410


def test_given_up_it_leaves_nothing_in_the_bucket(server: Serving, large: bytes) -> None:
    at, job = begin(server, large, direct="yes")
    piece = ask(server, at)["parts"][0]
    assert put(piece, large) == 200
    assert server.http.delete(at).status_code == 204
    assert server.http.get(f"/api/v1/jobs/{job}").status_code == 404, "no job is left of it"
    assert incomplete(server) == []
    assert put(piece, large) == 404


def test_what_a_lifecycle_rule_cleared_is_told(server: Serving, large: bytes) -> None:
    at, job = begin(server, large, direct="yes")
    bucket, kept = server.library.home.multipart, server.library.uploads.get(at.rpartition("/")[2])
    assert bucket
    bucket.abort(kept.key, kept.multipart)
    assert "deleted from the bucket" in server.post(f"{at}/parts", status=400)["detail"]
    assert server.http.get(f"/api/v1/jobs/{job}").status_code == 404, "no job is left of it"


def test_gc_gives_up_what_nobody_goes_on_with_and_what_is_in_no_record(
    server: Serving, large: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    at, _ = begin(server, large, direct="yes")
    assert put(ask(server, at)["parts"][0], large) == 200
    bucket = server.library.home.multipart
    assert bucket
    bucket.begin("input/job_stray/source.mp4")
    server.library.maintenance.gc()
    assert len(incomplete(server)) == 2
    monkeypatch.setattr(expiry, "EXPIRE_SECONDS", -1.0)
    server.library.maintenance.gc()
    assert incomplete(server) == []
    assert server.get(at)["why"] == "it was not continued in time"


def test_what_arrived_long_ago_is_forgotten_but_not_its_film(
    server: Serving, film: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = film.read_bytes()
    at, job = begin(server, data, direct="yes")
    assert put(ask(server, at)["parts"][0], data) == 200
    assert ask(server, at)["upload"]["state"] == "arrived"
    server.library.maintenance.gc()
    assert server.get(at)["state"] == "arrived"
    monkeypatch.setattr(expiry, "EXPIRE_SECONDS", -1.0)
    server.library.maintenance.gc()
    server.get(at, status=404)
    assert read_document(server.library.home.blobs, f"input/{job}/source.mp4") == data
    assert probe_state(server, job) is TaskState.READY


def test_pages_may_connect_to_the_bucket_and_nowhere_else(
    server: Serving, seaweed_s3: BucketLocation, home: Path
) -> None:
    policy = server.http.get("/add").headers["content-security-policy"]
    assert f"connect-src 'self' {seaweed_s3.endpoint};" in policy
    with serving(home.parent / "near") as near:
        assert "connect-src 'self';" in near.http.get("/add").headers["content-security-policy"]


def test_parts_come_through_the_server_where_they_cannot_go_straight(
    home: Path, seaweed_s3: BucketLocation, film: Path
) -> None:
    data = film.read_bytes()
    with in_bucket(home, seaweed_s3, "presigned = false") as server:
        at, _ = begin(server, data, direct="yes")
        assert "rushes-parts" not in server.http.head(at).headers
        assert "PATCH" in server.post(f"{at}/parts", status=400)["hint"]
        assert server.http.get("/add").text.count("data-direct") == 0


def test_parts_that_go_straight_do_not_come_through_the_server(server: Serving, large: bytes) -> None:
    at, _ = begin(server, large, direct="yes")
    headers = {"Upload-Offset": "0", "Content-Type": "application/offset+octet-stream"}
    assert server.http.patch(at, content=large[:100], headers=headers).status_code == 400


@pytest.mark.parametrize(("size", "part"), [(1, 16 << 20), (200 * 10**9, 22_222_223), (10**12, None)])
def test_no_part_is_larger_than_what_proxies_let_through(size: int, part: int | None) -> None:
    assert direct.part_size(size) == part


@pytest.mark.parametrize("region", ["AWS_REGION", "AWS_DEFAULT_REGION"])
@pytest.mark.parametrize(
    ("bucket", "public", "origin"),
    [("films", "", "https://films.s3.eu-west-1.amazonaws.com"),
     ("films.example.org", "", "https://s3.eu-west-1.amazonaws.com"),
     ("films", "https://s3.example.org:9000", "https://s3.example.org:9000")],
)  # fmt: skip
def test_where_pages_connect_to_is_known_without_a_key(
    bucket: str, public: str, origin: str, region: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(region, "eu-west-1")
    there = S3Multipart(BucketLocation(bucket), public)
    assert there.origin == origin
    with pytest.raises(StoreAway):
        there.sign("input/a", "id", [(1, 1)], 60)
