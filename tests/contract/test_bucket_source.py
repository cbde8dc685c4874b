"""Buckets as sources: what is found there, how it is read, and what storage events mean."""

import hashlib
import itertools
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from urllib.request import Request, urlopen

import boto3  # type: ignore[import-untyped]
import pytest
from tests.faulty_http import Way, expired, short, slow_down, way_to
from tests.servers_aws import KEY, SECRET, make_bucket

from rushes.bucket.client import connect
from rushes.bucket.location import BucketLocation
from rushes.domain.errors import Refused, SourceChanged, SourceMissing, StoreAway, StoreMissing, StoreRefuses
from rushes.domain.video import Fingerprint
from rushes.servers.process import Running
from rushes.sources.bucket import Bucket, BucketOriginals, BucketUploads
from rushes.sources.event_messages import MOST, parse_events
from rushes.sources.port import FoundFile, SkippedFile, StorageEvent

ODD = "films/a b+ü%20&'(1).mp4"
_fresh = itertools.count()


@pytest.fixture(params=["ministack_s3", "seaweed_s3"])
def place(request: pytest.FixtureRequest) -> BucketLocation:
    server: BucketLocation = request.getfixturevalue(request.param)
    return replace(server, prefix=f"source{next(_fresh)}")


def _found(place: BucketLocation) -> list[FoundFile]:
    return [entry for entry in Bucket(place).scan() if isinstance(entry, FoundFile)]


def test_everything_that_looks_like_footage_is_found(place: BucketLocation) -> None:
    store = connect(place)
    for key in ("b.mp4", "a/c.MOV", ODD, "a/notes.txt", ".hidden/d.mp4", "a/.e.mp4"):
        store.put(key, b"film")
    found = {f.path: f.size for f in _found(place)}
    assert found == {f"{place.url}/{key}": 4 for key in ("b.mp4", "a/c.MOV", ODD)}


def test_where_there_is_much_the_results_of_a_home_are_not_listed(
    place: BucketLocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every machine of a fleet looks again and again, and a film leaves many keys."""
    monkeypatch.setattr("rushes.sources.bucket._PAGE", 5)
    films = ("a.mp4", "blobs.mp4", "blobs-2/b.mp4", "videos/c.mp4", "videos/proxy.mp4", "videos/x/proxy/d.mp4")
    for key in (*films, *(f"{folder}/{n}.mp4" for folder in ("blobs", "videos/proxy") for n in range(9))):
        connect(place).put(key, b"film")
    own = tuple(f"{place.prefix}/{folder}/" for folder in ("blobs", "videos/proxy"))
    found = Bucket(place, own=own).scan()
    assert {e.path for e in found if isinstance(e, FoundFile)} == {f"{place.url}/{key}" for key in films}
    assert len(list(Bucket(replace(place, prefix=f"{place.prefix}/blobs"), own=own).scan())) == 9, "it is named"


def test_a_key_that_is_named_itself_is_found_whatever_it_is_called(place: BucketLocation) -> None:
    connect(place).put("film", b"film")
    connect(place).put("film2.mp4", b"film")
    (found,) = Bucket(place.below("film")).scan()
    assert isinstance(found, FoundFile)
    assert found.path == f"{place.url}/film"


def test_a_list_and_a_look_agree_who_it_is(place: BucketLocation) -> None:
    connect(place).put("a.mp4", b"film")
    assert _found(place) == _found(place.below("a.mp4"))
    (found,) = _found(place)
    assert (found.fingerprint.etag, found.fingerprint.inode) == (hashlib.md5(b"film").hexdigest(), 0)
    assert Fingerprint.from_json({"path": "x", "size": 1, "mtime_ns": 1, "etag": "e"}).etag == "e"


def test_an_empty_file_and_an_empty_place_are_told(place: BucketLocation) -> None:
    assert [type(e) for e in Bucket(place).scan()] == [SkippedFile]
    connect(place).put("empty.mp4", b"")
    assert {e.reason for e in Bucket(place).scan() if isinstance(e, SkippedFile)} == {"it is empty"}


def test_a_bucket_that_cannot_be_seen_is_told_with_what_to_do(place: BucketLocation) -> None:
    def cause(**other: Any) -> tuple[type | None, int, str]:
        (told,) = Bucket(replace(place, patience=0.1, **other)).scan()
        assert isinstance(told, SkippedFile)
        assert told.cause
        assert replace(place, **other).url in str(told.cause)
        return type(told.cause), told.cause.exit_code, told.cause.advice.partition(",")[0]

    assert cause(endpoint="http://127.0.0.1:9")[:2] == (StoreAway, 5)
    assert cause(bucket="nowhere") == (StoreMissing, 6, "Create it")


@pytest.mark.parametrize("odd", ["films/old//a.mp4", "films/old/%2E%2E/a.mp4", "films/old/%0A.mp4"])
def test_a_key_that_cannot_be_listed_hides_nothing_but_its_folder(ministack_s3: BucketLocation, odd: str) -> None:
    place = replace(ministack_s3, bucket=f"odd-keys{next(_fresh)}", prefix="")
    make_bucket(place.endpoint, place.bucket)
    for key in ("a.mp4", "films/b.mp4", "films/old/c.mp4", "films/zoo/d.mp4", odd):
        urlopen(Request(f"{place.endpoint}/{place.bucket}/{key}", data=b"film", method="PUT"), timeout=30).close()
    assert not list(Bucket(place).at(place.bucket, unquote(odd)))
    assert [found.path for found in _found(place)] == [
        f"{place.url}/{key}" for key in ("a.mp4", "films/b.mp4", "films/zoo/d.mp4")
    ]
    (told,) = [entry for entry in Bucket(place).scan() if isinstance(entry, SkippedFile)]
    assert told.path == f"{place.url}/films/old"
    assert told.cause
    assert told.cause.advice.startswith("Rename or delete it")


def test_a_bucket_that_does_not_know_us_is_told(seaweed_s3: BucketLocation) -> None:
    (told,) = Bucket(replace(seaweed_s3, key="stranger")).scan()
    assert isinstance(told, SkippedFile)
    assert isinstance(told.cause, StoreRefuses)
    assert told.cause.exit_code == 4


def test_a_machine_without_credentials_is_told(seaweed_s3: BucketLocation, monkeypatch: pytest.MonkeyPatch) -> None:
    with way_to(seaweed_s3.endpoint) as (way, url):
        way.spoil("PUT", "/latest/api/token", expired, times=20)
        monkeypatch.setenv("AWS_METADATA_ENDPOINT", url)
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(name, raising=False)
        (told,) = Bucket(replace(seaweed_s3, key="", secret="", patience=0.1)).scan()
    assert isinstance(told, SkippedFile)
    assert isinstance(told.cause, StoreRefuses)
    assert "no credentials" in str(told.cause)


@pytest.fixture
def film(place: BucketLocation) -> bytes:
    film = os.urandom(1 << 20) * 9 + b"the end"  # three blocks
    connect(place).put("film.mp4", film)
    return film


@pytest.fixture
def originals(place: BucketLocation, tmp_path: Path) -> BucketOriginals:
    return BucketOriginals(place, tmp_path / "scratch")


def test_an_original_is_read_from_anywhere(place: BucketLocation, film: bytes, originals: BucketOriginals) -> None:
    far = originals.original(_found(place)[0].fingerprint)
    assert far.name == "film.mp4"
    with far.open() as file:
        for at in (0, 5_000_000, (4 << 20) - 10, len(film) - 5, 17):
            assert file.seek(at) == at
            assert file.read(100) == film[at : at + 100]
        assert file.seek(-3, os.SEEK_END) == len(film) - 3
        assert (file.read(), file.read()) == (b"end", b"")
        file.seek(0)
        assert file.read() == film


def test_only_what_is_needed_is_fetched_and_only_once(place: BucketLocation, film: bytes, tmp_path: Path) -> None:
    with way_to(place.endpoint) as (way, url):
        originals = BucketOriginals(replace(place, endpoint=url), tmp_path / "scratch")
        taken_in = _found(place)[0].fingerprint
        for _ in range(2):
            with originals.original(taken_in).open() as file:
                file.seek(-100, os.SEEK_END)
                assert file.read() == film[-100:]
        assert len(way.seen) == 1


def test_another_version_is_never_mixed_in(place: BucketLocation, film: bytes, originals: BucketOriginals) -> None:
    far = originals.original(_found(place)[0].fingerprint)
    with far.open() as file:
        file.read(10)
        connect(place).put("film.mp4", b"x" * len(film))
        file.seek(-10, os.SEEK_END)
        with pytest.raises(SourceChanged):
            file.read(10)


def test_an_original_that_is_gone_is_missing(place: BucketLocation, film: bytes, originals: BucketOriginals) -> None:
    far = originals.original(_found(place)[0].fingerprint)
    connect(place).delete("film.mp4")
    with far.open() as file, pytest.raises(SourceMissing):
        file.read(10)


@pytest.fixture
def way(ministack_s3: BucketLocation) -> Iterator[tuple[Way, BucketLocation]]:
    with way_to(ministack_s3.endpoint) as (way, url):
        yield way, replace(ministack_s3, endpoint=url, prefix=f"source{next(_fresh)}", patience=60.0)


def test_a_bucket_that_stumbles_is_asked_again(way: tuple[Way, BucketLocation], tmp_path: Path) -> None:
    connect(way[1]).put("film.mp4", b"film" * 1000)
    far = BucketOriginals(way[1], tmp_path).original(_found(way[1])[0].fingerprint)
    way[0].spoil("GET", "film.mp4", slow_down, 2)
    way[0].spoil("GET", "film.mp4", short)
    with far.open() as file:
        assert file.read() == b"film" * 1000


def test_a_bucket_that_goes_away_while_it_is_read_is_said(way: tuple[Way, BucketLocation], tmp_path: Path) -> None:
    connect(way[1]).put("film.mp4", b"film" * 1000)
    far = BucketOriginals(replace(way[1], patience=0.5), tmp_path).original(_found(way[1])[0].fingerprint)
    way[0].spoil("GET", "film.mp4", slow_down, 50)
    with far.open() as file, pytest.raises(StoreAway):
        file.read()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def _event(*records: dict[str, Any]) -> str:
    return json.dumps({"Records": list(records)})


def _record(key: Any, etag: str = "e1", name: str = "ObjectCreated:Put", bucket: Any = "b") -> dict[str, Any]:
    return {"eventName": name, "s3": {"bucket": {"name": bucket}, "object": {"key": key, "eTag": etag, "size": 1}}}


def test_an_event_names_what_arrived_by_its_true_key() -> None:
    assert parse_events(_event(_record("input/a+b%C3%BC%2B%2520.mp4"))) == (StorageEvent("b", "input/a bü+%20.mp4"),)
    assert parse_events(_event(_record("input%2Fx.mp4"))) == (StorageEvent("b", "input/x.mp4"),)


def test_the_same_arrival_told_twice_is_one() -> None:
    twice = _event(_record("k"), _record("k", name="s3:ObjectCreated:CompleteMultipartUpload"), _record("k2"))
    assert parse_events(twice) == (StorageEvent("b", "k"), StorageEvent("b", "k2"))


def test_test_events_and_other_news_are_no_arrivals() -> None:
    assert parse_events(json.dumps({"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "b"})) == ()
    assert parse_events(_event(_record("k", name="ObjectRemoved:Delete"))) == ()


def test_an_event_passed_on_by_sns_is_understood() -> None:
    passed_on = json.dumps({"Type": "Notification", "Message": _event(_record("k"))})
    assert parse_events(passed_on) == (StorageEvent("b", "k"),)


def test_addresses_of_films_are_told_one_in_each_line() -> None:
    found = (StorageEvent("b", "a b.mp4"), StorageEvent("c", "d/e.mp4"))
    assert parse_events("s3://b/a b.mp4\ngs://c/d/e.mp4\ns3://b/a b.mp4\n") == found


ODD_MESSAGES: list[str | bytes] = ["", "hello", "[]", "{}", "null", "[" * 100_000, b"\xff\xfe", '{"Message": 3}',
    "s3://", "s3://b", "s3:///k", "s3://b/k\nk", "s3://b/\ud800",
    '{"Records": 3}', '{"Records": [{}]}', '{"event_type": "create", "message": 3}',
    '{"event_type": "create", "message": {"new_entry": 1}}']  # fmt: skip


@pytest.mark.parametrize(
    "message", [*ODD_MESSAGES, *(_event(_record(k, bucket=b)) for k, b in ((3, "b"), (3, 3), ("\ud800", "b")))]
)
def test_what_is_no_event_is_refused(message: str | bytes) -> None:
    with pytest.raises(Refused):
        parse_events(message)


def test_an_event_names_keys_below_the_home() -> None:
    here, root = BucketUploads(BucketLocation("b", "home")), BucketUploads(BucketLocation("b"))
    told = [_record("home/input/a", bucket="other"), _record("elsewhere/input/a"), _record("homely"), _record("home/a")]
    assert [here.key_of(event) for event in parse_events(_event(*told))] == ["", "", "", "a"]
    assert root.key_of(StorageEvent("b", "home/a")) == "home/a"


def test_real_events_of_a_real_queue_are_understood(aws_server: Running) -> None:
    aws = {"endpoint_url": aws_server.url, "region_name": "us-east-1"}
    aws |= {"aws_access_key_id": KEY, "aws_secret_access_key": SECRET}
    s3, sqs = boto3.client("s3", **aws), boto3.client("sqs", **aws)
    queue = sqs.create_queue(QueueName="arrivals")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    s3.create_bucket(Bucket="uploads")
    told = {"QueueConfigurations": [{"QueueArn": arn, "Events": ["s3:ObjectCreated:*"]}]}
    s3.put_bucket_notification_configuration(Bucket="uploads", NotificationConfiguration=told)
    s3.put_object(Bucket="uploads", Key=ODD, Body=b"film")
    met: set[StorageEvent] = set()
    while not met:
        for message in sqs.receive_message(QueueUrl=queue, WaitTimeSeconds=20).get("Messages", []):
            met |= set(parse_events(message["Body"]))
    assert met == {StorageEvent("uploads", ODD)}


@pytest.mark.parametrize("wrapped", [False, True], ids=["plain", "by SNS"])
def test_events_of_eventbridge_are_read(wrapped: bool) -> None:
    """Their keys are plain text: a plus is a plus."""

    def told(kind: str) -> str:
        detail = {"bucket": {"name": "b"}, "object": {"key": "input/a+b%20.mp4", "etag": "e1", "size": 7}}
        text = json.dumps({"version": "0", "source": "aws.s3", "detail-type": kind, "detail": detail})
        return json.dumps({"Type": "Notification", "Message": text}) if wrapped else text

    assert parse_events(told("Object Created")) == (StorageEvent("b", "input/a+b%20.mp4"),)
    assert parse_events(told("Object Deleted")) == ()
    with pytest.raises(Refused):
        parse_events(json.dumps({"source": "aws.s3", "detail-type": "Object Created", "detail": {}}))


def test_a_message_that_names_many_keys_is_refused() -> None:
    assert len(parse_events(_event(*(_record(f"k{n}") for n in range(MOST))))) == MOST
    with pytest.raises(Refused, match="more than"):
        parse_events(_event(*(_record(f"k{n}") for n in range(MOST + 1))))


def test_an_event_of_minio_is_one_of_s3_with_the_key_twice() -> None:
    told = json.loads(_event(_record("input/a%2Bb.mp4", name="s3:ObjectCreated:Put")))
    said = json.dumps({"EventName": "s3:ObjectCreated:Put", "Key": "b/input/a+b.mp4", **told})
    assert parse_events(said) == (StorageEvent("b", "input/a+b.mp4"),)


@pytest.mark.parametrize(
    ("key", "message", "found"),
    [
        ("/buckets/b/input/a+b %41.mp4", {"new_entry": {"name": "a+b %41.mp4"}}, ("b", "input/a+b %41.mp4")),
        ("/buckets/b/x", {"new_entry": {"name": "y"}, "new_parent_path": "/buckets/b/to"}, ("b", "to/y")),
        ("/buckets/b", {"new_entry": {"name": "b", "is_directory": True}}, None),
        ("/buckets/b/x", {"old_entry": {"name": "x"}}, None),
        ("/etc/iam/identity.json", {"new_entry": {"name": "identity.json"}}, None),
        ("/buckets/stray.mp4", {"new_entry": {"name": "stray.mp4"}}, None),
    ],
)
def test_events_of_seaweedfs_name_files_in_buckets(
    key: str, message: dict[str, Any], found: tuple[str, str] | None
) -> None:
    said = json.dumps({"key": key, "event_type": "create", "message": message})
    assert parse_events(said) == ((StorageEvent(*found),) if found else ())
