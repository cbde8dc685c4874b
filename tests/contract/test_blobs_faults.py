"""What an S3 does to its clients: each fault is retried or said, and wrong bytes are never returned."""

import hashlib
import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from tests.faulty_http import Way, conflict, expired, flipped, lost, short, slow_down, stalled, way_to

from rushes.blobs.documents import read_document
from rushes.blobs.local_disk import remove_unfinished
from rushes.blobs.s3 import S3Blobs
from rushes.bucket.location import BucketLocation, parse_location
from rushes.domain.errors import DamagedBlob, Refused, StoreAway
from rushes.domain.keys import blob_key

HELLO = hashlib.sha256(b"hello").hexdigest()
MANIFEST = "results/anna/aa/k.json"
LARGE = 20_000_000  # more than one part, more than is read whole
_fresh = itertools.count()


World = tuple[S3Blobs, Way, BucketLocation]


@pytest.fixture
def world(ministack_s3: BucketLocation, tmp_path: Path) -> Iterator[World]:
    with way_to(ministack_s3.endpoint) as (way, url):
        place = replace(ministack_s3, endpoint=url, prefix=f"faults{next(_fresh)}", patience=60.0)
        yield S3Blobs(place, tmp_path / "scratch"), way, place


@pytest.fixture
def blobs(world: World) -> S3Blobs:
    return world[0]


@pytest.fixture
def impatient(world: World, tmp_path: Path) -> S3Blobs:
    """For faults that never end."""
    return S3Blobs(replace(world[2], patience=0.5), tmp_path / "scratch")


@pytest.fixture
def way(world: World) -> Way:
    return world[1]


@pytest.fixture
def large(tmp_path: Path) -> Path:
    path = tmp_path / "large"
    path.write_bytes(os.urandom(1 << 20) * (LARGE >> 20))
    return path


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("method", ["PUT", "HEAD"])
def test_a_busy_store_is_asked_again(blobs: S3Blobs, way: Way, method: str) -> None:
    way.spoil(method, "", slow_down, 2)
    assert blobs.put("anna", b"hello").sha256 == HELLO
    way.spoil("GET", HELLO, slow_down, 2)
    assert blobs.verify("anna", HELLO)


def test_a_store_that_stays_busy_is_away(impatient: S3Blobs, way: Way) -> None:
    way.spoil("PUT", HELLO, slow_down, 50)
    with pytest.raises(StoreAway):
        impatient.put("anna", b"hello")


def test_a_store_that_does_not_answer_at_all_is_away(world: World, tmp_path: Path) -> None:
    nobody = S3Blobs(replace(world[2], endpoint="http://127.0.0.1:9", patience=0.2), tmp_path / "other")
    for verb in (lambda: nobody.put("anna", b"x"), lambda: read_document(nobody, "k"), lambda: list(nobody.keys(""))):
        with pytest.raises(StoreAway):
            verb()


def test_expired_credentials_are_a_store_that_is_away_not_a_failure_of_the_work(blobs: S3Blobs, way: Way) -> None:
    way.spoil("PUT", MANIFEST, expired)
    with pytest.raises(StoreAway, match="denies access"):
        blobs.create(MANIFEST, b"doc")


def test_a_create_whose_answer_was_lost_is_our_own_success(blobs: S3Blobs, way: Way) -> None:
    way.spoil("PUT", MANIFEST, lost)
    assert blobs.create(MANIFEST, b"mine")
    assert read_document(blobs, MANIFEST) == b"mine"
    assert sum(line.startswith("PUT") for line in way.seen) == 2


def test_the_same_document_of_somebody_else_is_not_our_success(blobs: S3Blobs) -> None:
    assert blobs.create(MANIFEST, b"same")
    assert not blobs.create(MANIFEST, b"same")


def test_a_conflict_of_two_creators_is_tried_again(blobs: S3Blobs, way: Way) -> None:
    way.spoil("PUT", MANIFEST, conflict)
    assert blobs.create(MANIFEST, b"mine")
    way.spoil("PUT", MANIFEST, conflict)
    assert not blobs.create(MANIFEST, b"late")
    assert read_document(blobs, MANIFEST) == b"mine"


def test_a_conflict_that_never_ends_is_a_store_that_is_away(impatient: S3Blobs, way: Way) -> None:
    way.spoil("PUT", MANIFEST, conflict, 50)
    with pytest.raises(StoreAway):
        impatient.create(MANIFEST, b"mine")


@pytest.mark.parametrize("fault", [short, flipped])
def test_a_blob_spoilt_on_the_way_is_asked_for_again(blobs: S3Blobs, way: Way, fault: object, large: Path) -> None:
    assert fault in (short, flipped)
    small, big = blobs.put("anna", b"hello"), blobs.put("anna", large)
    for blob, data in ((small, b"hello"), (big, large.read_bytes())):
        way.spoil("GET", blob.sha256, flipped if fault is flipped else short)
        with blobs.open("anna", blob.sha256) as file:
            assert file.read() == data
    way.spoil("GET", HELLO, flipped if fault is flipped else short)
    assert blobs.verify("anna", HELLO)


@pytest.mark.parametrize("verb", ["open", "local"])
def test_a_blob_that_comes_spoilt_every_time_is_damaged_and_never_returned(
    blobs: S3Blobs, way: Way, verb: str, large: Path, tmp_path: Path
) -> None:
    for blob in (blobs.put("anna", b"hello"), blobs.put("anna", large)):
        way.spoil("GET", blob.sha256, flipped, 3)
        with pytest.raises(DamagedBlob):
            getattr(blobs, verb)("anna", blob.sha256)
        way.spoil("GET", blob.sha256, flipped, 3)
        assert not blobs.verify("anna", blob.sha256)
    assert [path for path in (tmp_path / "scratch").rglob("*") if path.is_file()] == []


def test_a_blob_that_ends_too_early_every_time_is_never_returned(
    blobs: S3Blobs, impatient: S3Blobs, way: Way, large: Path
) -> None:
    for blob in (blobs.put("anna", b"hello"), blobs.put("anna", large)):
        way.spoil("GET", blob.sha256, short, 50)
        with pytest.raises((StoreAway, DamagedBlob)):
            impatient.open("anna", blob.sha256)


@pytest.mark.parametrize("fault", [short, flipped])
def test_a_document_spoilt_on_the_way_is_asked_for_again(blobs: S3Blobs, way: Way, fault: object) -> None:
    blobs.create(MANIFEST, b"document" * 100)
    way.spoil("GET", MANIFEST, flipped if fault is flipped else short)
    assert read_document(blobs, MANIFEST) == b"document" * 100


def test_a_document_that_comes_spoilt_every_time_is_damaged(blobs: S3Blobs, way: Way) -> None:
    blobs.create(MANIFEST, b"document")
    way.spoil("GET", MANIFEST, flipped, 3)
    with pytest.raises(DamagedBlob):
        read_document(blobs, MANIFEST)


def test_a_lost_answer_to_a_part_of_a_large_blob_hurts_nobody(blobs: S3Blobs, way: Way, large: Path) -> None:
    way.spoil("PUT", "partNumber=2", lost)
    way.spoil("PUT", "partNumber=1", slow_down)
    blob = blobs.put("anna", large)
    assert blobs.verify("anna", blob.sha256)
    assert _hash(blobs.local("anna", blob.sha256)) == _hash(large)


def test_a_file_that_changes_while_it_is_stored_is_not_stored(blobs: S3Blobs, large: Path, way: Way) -> None:
    before = _hash(large)
    unspoilt = way.fault

    def meanwhile(method: str, path: str) -> object:
        if method == "HEAD":
            large.write_bytes(b"y" * LARGE)
        return unspoilt(method, path)

    way.fault = meanwhile  # type: ignore[assignment,method-assign]
    with pytest.raises(StoreAway, match="changed"):
        blobs.put("anna", large)
    assert blobs.stat("anna", before) is None


def test_a_copy_in_scratch_is_used_again(blobs: S3Blobs, way: Way, large: Path) -> None:
    blob = blobs.put("anna", large)
    first = blobs.local("anna", blob.sha256)
    way.seen.clear()
    assert blobs.local("anna", blob.sha256) == first
    assert not any(line.startswith("GET") for line in way.seen)
    blobs.delete(blob_key("anna", blob.sha256))
    assert not first.exists()


def test_scratch_is_bounded_and_keeps_what_was_used_last(world: World, tmp_path: Path) -> None:
    small = S3Blobs(world[2], tmp_path / "bounded", most=250_000)
    made = [small.put("anna", bytes([n]) * 100_000).sha256 for n in range(4)]
    for n, sha256 in enumerate(made[:3]):
        os.utime(small.local("anna", sha256), (1000 + n, 1000 + n))  # long ago
    os.utime(small.local("anna", made[0]), (2000, 2000))
    small.local("anna", made[3])
    kept = {path.name.removeprefix("anna-") for path in (tmp_path / "bounded").iterdir() if path.is_file()}
    assert kept == {made[0], made[3]}
    assert [path.exists() for path in map(small.local, ["anna"] * 4, made)] == [True] * 4


def test_what_was_just_asked_for_outlives_a_full_scratch(world: World, tmp_path: Path) -> None:
    tiny = S3Blobs(world[2], tmp_path / "tiny", most=1)
    paths = [tiny.local("anna", tiny.put("anna", bytes([n]) * 1000).sha256) for n in range(3)]
    assert all(path.exists() for path in paths)


def test_opening_scratch_clears_what_a_dead_process_left(world: World, tmp_path: Path) -> None:
    blobs, way, place = world
    blob = blobs.put("anna", b"hello")
    way.spoil("GET", HELLO, stalled)
    code = f"""
import sys, threading, os, time
from pathlib import Path
from rushes.blobs.s3 import S3Blobs
from rushes.bucket.location import BucketLocation
store, folder = S3Blobs(BucketLocation(**{asdict(place)!r}), Path(sys.argv[1])), Path(sys.argv[1])
threading.Thread(target=store.local, args=("anna", {blob.sha256!r}), daemon=True).start()
while not list((folder / ".temp").iterdir()):
    pass
os._exit(0)
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "dead")], check=True, timeout=240)
    assert len(list((tmp_path / "dead" / ".temp").iterdir())) == 1
    assert remove_unfinished(S3Blobs(place, tmp_path / "dead")) == 0  # whoever opens it has done so
    assert list((tmp_path / "dead" / ".temp").iterdir()) == []


def test_a_large_blob_goes_up_and_down_in_constant_memory(seaweed_s3: BucketLocation, tmp_path: Path) -> None:
    big = tmp_path / "big"
    with big.open("wb") as file:
        file.truncate(200_000_000)
    code = f"""
import resource, sys
from pathlib import Path
from rushes.blobs.s3 import S3Blobs
from rushes.bucket.location import BucketLocation
store = S3Blobs(BucketLocation(**{asdict(replace(seaweed_s3, prefix="big"))!r}), Path(sys.argv[1]))
store.put("anna", b"warm")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
blob = store.put("anna", Path({str(big)!r}))
assert store.verify("anna", blob.sha256)
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(grown, file=sys.stderr)
sys.exit(0 if grown < 120_000 else 1)
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "scratch")], check=True, timeout=240)


def test_an_old_blob_that_is_stored_again_is_young_again(blobs: S3Blobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rushes.blobs.s3._YOUNG", -1.0)  # as if an hour had passed
    blobs.put("anna", b"hello")
    blobs.put("anna", b"hello")
    assert blobs.verify("anna", HELLO)
    found = blobs.stat("anna", HELLO)
    assert found
    assert found.age < 60


def test_what_somebody_else_put_there_is_read_as_it_is(blobs: S3Blobs) -> None:
    blobs._store.put("notes/from-somebody.txt", b"no label")
    assert read_document(blobs, "notes/from-somebody.txt") == b"no label"


def test_a_damaged_blob_in_the_bucket_is_repaired_by_storing_it(blobs: S3Blobs) -> None:
    blobs._store.put(blob_key("anna", HELLO), b"he")
    assert not blobs.verify("anna", HELLO)
    with pytest.raises(DamagedBlob):
        blobs.local("anna", HELLO)
    blobs.put("anna", b"hello")
    assert blobs.verify("anna", HELLO)


@pytest.mark.parametrize(
    ("url", "bucket", "prefix"),
    [("s3://b", "b", ""), ("s3://b/", "b", ""), ("s3://b/p/q/", "b", "p/q"), ("b", "b", "")],
)
def test_a_place_is_read_as_people_write_it(url: str, bucket: str, prefix: str) -> None:
    place = parse_location(url)
    assert (place.bucket, place.prefix) == (bucket, prefix)
    assert "secret" not in repr(parse_location(url, secret="secret-word"))


@pytest.mark.parametrize("url", ["", "s3://", "http://x/y", "postgres://x"])
def test_what_is_no_bucket_is_refused(url: str) -> None:
    with pytest.raises(Refused):
        parse_location(url)
