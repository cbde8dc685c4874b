"""Every blob store keeps these promises; what only a folder can break is below."""

import errno
import fcntl
import hashlib
import itertools
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from subprocess import PIPE
from typing import Any
from uuid import uuid4

import pytest
from obstore.store import MemoryStore
from tests.memory_blobs import MemoryBlobs

from rushes.blobs.documents import address, read_document
from rushes.blobs.folder import FolderBlobs
from rushes.blobs.local_disk import free_bytes, remove_unfinished
from rushes.blobs.port import Blobs, ByteRange
from rushes.blobs.published import missing_names, own_names, publish_names, wrong_names
from rushes.blobs.s3 import S3Blobs
from rushes.bucket.location import BucketLocation, parse_location
from rushes.domain.errors import DamagedBlob, NoRoom, Refused, StoreAway
from rushes.domain.keys import blob_key
from rushes.domain.result import Artifact, Manifest, Provenance

HELLO = hashlib.sha256(b"hello").hexdigest()
HOSTILE = ["", "/etc/passwd", "../x", "a/../x", "a//b", "a/", "/", ".", "a/./b", "a\0b", "a\nb", ".temp/x",
           "a/.hidden", "a\\b", "\ud800", "a" * 300, "a/" * 600 + "b", "blobs/anna/00/x"]  # fmt: skip
BAD_OWNERS = ["", "..", "a/b", "a\0", "a\n", "-a", ".", "a" * 65, "é"]


_fresh = itertools.count()


def _memory(_request: pytest.FixtureRequest, _folder: Path) -> Blobs:
    return MemoryBlobs()


def _folder(_request: pytest.FixtureRequest, folder: Path) -> Blobs:
    return FolderBlobs(folder / "store")


def _bucket(server: str) -> Callable[[pytest.FixtureRequest, Path], Blobs]:
    def opened(request: pytest.FixtureRequest, folder: Path) -> Blobs:
        location: BucketLocation = request.getfixturevalue(server)
        return S3Blobs(replace(location, prefix=f"home{next(_fresh)}"), folder / "scratch")

    return opened


def _clouds(_request: pytest.FixtureRequest, folder: Path) -> Blobs:
    """The code of gs:// and az:// over the client library's own store: there is no server of Google's to start."""
    blobs = S3Blobs(parse_location("az://container", "http://127.0.0.1:9", "account", "c2VjcmV0"), folder / "scratch")
    own_store: Any = MemoryStore()
    blobs._store = own_store
    return blobs


def _azurite(_request: pytest.FixtureRequest, folder: Path) -> Blobs:
    """Azure's emulator, where one runs: RUSHES_TEST_AZURITE=http://host:port/account,key, with a container rushes."""
    endpoint, _, key = os.environ[AZURITE].partition(",")
    place = parse_location(f"az://rushes/{uuid4()}", endpoint, endpoint.rpartition("/")[2], key)
    return S3Blobs(place, folder / "scratch")


AZURITE = "RUSHES_TEST_AZURITE"
OPEN = {"memory": _memory, "folder": _folder, "ministack": _bucket("ministack_s3"), "seaweed": _bucket("seaweed_s3")}
OPEN |= {"clouds": _clouds, **({"azurite": _azurite} if AZURITE in os.environ else {})}


@pytest.fixture(params=OPEN)
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> Blobs:
    return OPEN[request.param](request, tmp_path)


def _size(blobs: Blobs, owner: str, sha256: str) -> int | None:
    found = blobs.stat(owner, sha256)
    return found.size if found else None


def test_published_names_are_right_until_they_are_missing_or_hold_other_bytes(blobs: Blobs) -> None:
    film, other = blobs.put("anna", b"film"), blobs.put("anna", b"another take")
    artifact = Artifact("film.mp4", film.sha256, film.size, "video/mp4", "videos/proxy/v/film.mp4")
    manifest = Manifest("k", "film", (artifact,), Provenance("job", "join", "p", "1", "f", "c", "i", 1))
    names = own_names("job", manifest)
    assert wrong_names(blobs, "anna", names) == missing_names(blobs, names) == ["videos/proxy/v/film.mp4"]
    publish_names(blobs, "anna", names)
    assert wrong_names(blobs, "anna", names) == missing_names(blobs, names) == []
    blobs.publish("videos/proxy/v/film.mp4", "anna", other.sha256)
    assert wrong_names(blobs, "anna", names) == [], "two takes share a name"
    blobs.delete("videos/proxy/v/film.mp4")
    assert wrong_names(blobs, "anna", names) == ["videos/proxy/v/film.mp4"]


Damage = Callable[[bytes], None]


@pytest.fixture
def damage(blobs: Blobs, tmp_path: Path) -> Damage:
    """Gives the blob of "hello" other bytes."""
    key = blob_key("anna", HELLO)

    def spoil(data: bytes) -> None:
        if isinstance(blobs, MemoryBlobs):
            blobs._bytes[key] = data
        elif isinstance(blobs, S3Blobs):
            blobs._store.put(key, data)
        else:
            (tmp_path / "store" / key).chmod(0o644)
            (tmp_path / "store" / key).write_bytes(data)

    return spoil


def test_a_blob_is_named_by_its_bytes(blobs: Blobs) -> None:
    blob = blobs.put("anna", b"hello")
    assert (blob.sha256, blob.size) == (HELLO, 5)
    assert _size(blobs, "anna", HELLO) == 5
    with blobs.open("anna", HELLO) as file:
        file.seek(1)
        assert file.read() == b"ello"
    assert blobs.local("anna", HELLO).read_bytes() == b"hello"
    assert blobs.verify("anna", HELLO)


def test_a_file_is_stored_and_stays_where_it_was(blobs: Blobs, tmp_path: Path) -> None:
    source = tmp_path / "film.mp4"
    source.write_bytes(b"x" * 3_000_000)
    blob = blobs.put("anna", source)
    assert blob.sha256 == hashlib.sha256(b"x" * 3_000_000).hexdigest()
    assert source.stat().st_size == 3_000_000


def test_storing_the_same_again_changes_nothing(blobs: Blobs) -> None:
    assert blobs.put("anna", b"hello") == blobs.put("anna", b"hello")
    assert list(blobs.keys("")) == [blob_key("anna", HELLO)]


def test_the_empty_blob_is_a_blob(blobs: Blobs) -> None:
    blob = blobs.put("anna", b"")
    assert _size(blobs, "anna", blob.sha256) == 0
    assert blobs.verify("anna", blob.sha256)


def test_owners_share_nothing(blobs: Blobs) -> None:
    blobs.put("anna", b"hello")
    assert _size(blobs, "bert", HELLO) is None
    with pytest.raises(DamagedBlob):
        blobs.open("bert", HELLO)


def test_a_blob_that_is_not_there_is_said_so(blobs: Blobs) -> None:
    assert _size(blobs, "anna", HELLO) is None
    assert not blobs.verify("anna", HELLO)
    with pytest.raises(DamagedBlob):
        blobs.local("anna", HELLO)
    with pytest.raises(DamagedBlob):
        blobs.publish("a/name", "anna", HELLO)
    blobs.delete(blob_key("anna", HELLO))
    blobs.verify("anna", HELLO, quarantine=True)


def test_a_source_that_is_not_there_is_no_fault_of_the_store(blobs: Blobs, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        blobs.put("anna", tmp_path / "nothing")


def test_a_damaged_blob_set_aside_can_be_made_again(blobs: Blobs, damage: Damage) -> None:
    for _ in range(2):
        blobs.put("anna", b"hello")
        damage(b"hullo")
        blobs.verify("anna", HELLO, quarantine=True)
        assert _size(blobs, "anna", HELLO) is None
        assert list(blobs.keys("")) == []


def test_a_damaged_blob_is_left_where_it_is_by_whoever_only_looks(blobs: Blobs, damage: Damage) -> None:
    blobs.put("anna", b"hello")
    damage(b"hullo")
    assert not blobs.verify("anna", HELLO)
    assert _size(blobs, "anna", HELLO) == 5


def test_a_sound_blob_is_not_set_aside(blobs: Blobs) -> None:
    blobs.put("anna", b"hello")
    blobs.verify("anna", HELLO, quarantine=True)
    assert blobs.verify("anna", HELLO)


def test_a_dropped_blob_is_gone(blobs: Blobs) -> None:
    blobs.put("anna", b"hello")
    assert blobs.delete(blob_key("anna", HELLO))
    assert _size(blobs, "anna", HELLO) is None
    assert not blobs.delete(blob_key("anna", HELLO))


def test_a_young_blob_is_not_dropped_by_who_wants_an_old_one(blobs: Blobs) -> None:
    blobs.put("anna", b"hello")
    assert not blobs.delete(blob_key("anna", HELLO), older=3600.0)
    assert blobs.verify("anna", HELLO)


def test_an_old_blob_that_is_stored_again_is_young(blobs: Blobs, age: Callable[[float], None]) -> None:
    """gc has seen that nobody names it, and somebody stores it for a new result before it is deleted."""
    blobs.put("anna", b"hello")
    age(2 * 86_400.0)
    found = blobs.stat("anna", HELLO)
    assert found
    assert found.age >= 86_400.0
    blobs.put("anna", b"hello")
    if isinstance(blobs, S3Blobs):  # a server's clock cannot be set: what is stored again has its own bytes again
        assert blobs.verify("anna", HELLO)
        return
    assert not blobs.delete(blob_key("anna", HELLO), older=86_400.0)
    assert blobs.verify("anna", HELLO)


@pytest.fixture
def age(blobs: Blobs, tmp_path: Path, damage: Damage, monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Makes the blob of "hello" older; in a bucket also damages it, to see whether it is stored again."""
    key = blob_key("anna", HELLO)

    def grow(seconds: float) -> None:
        if isinstance(blobs, MemoryBlobs):
            blobs._stored[key] -= seconds
        elif isinstance(blobs, S3Blobs):
            damage(b"spoil")
            later = datetime.now(UTC) + timedelta(seconds=seconds)
            monkeypatch.setattr(
                "rushes.blobs.s3.datetime", type("Later", (), {"now": staticmethod(lambda _zone: later)})
            )
        else:
            then = time.time() - seconds
            os.utime(tmp_path / "store" / key, (then, then))

    return grow


def test_a_document_is_removed_only_while_it_has_the_bytes_it_had(blobs: Blobs) -> None:
    blobs.create("k", b"first")
    blobs.delete("k", was=b"another")
    assert read_document(blobs, "k") == b"first"
    blobs.delete("k", was=b"first")
    assert read_document(blobs, "k") is None
    blobs.delete("k", was=b"first")


def test_the_first_writer_of_a_document_wins(blobs: Blobs) -> None:
    assert blobs.create("results/anna/aa/k.json", b"first")
    assert not blobs.create("results/anna/aa/k.json", b"second")
    assert read_document(blobs, "results/anna/aa/k.json") == b"first"
    blobs.delete("results/anna/aa/k.json")
    blobs.delete("results/anna/aa/k.json")
    assert read_document(blobs, "results/anna/aa/k.json") is None
    assert blobs.create("results/anna/aa/k.json", b"third")


def test_of_eight_racing_creators_one_wins_and_all_read_its_words(blobs: Blobs) -> None:
    start = threading.Barrier(8)

    def race(n: int) -> bool:
        start.wait()
        return blobs.create("results/x/y.json", b"%d" % n * 1000)

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(race, range(8)))
    assert won.count(True) == 1
    assert read_document(blobs, "results/x/y.json") == b"%d" % won.index(True) * 1000


def test_a_published_name_can_be_replaced_and_removed(blobs: Blobs) -> None:
    one, two = blobs.put("anna", b"one"), blobs.put("anna", b"two")
    blobs.publish("videos/proxy/v/index.m3u8", "anna", one.sha256)
    blobs.publish("videos/proxy/v/index.m3u8", "anna", one.sha256)
    assert read_document(blobs, "videos/proxy/v/index.m3u8") == b"one"
    blobs.publish("videos/proxy/v/index.m3u8", "anna", two.sha256)
    assert read_document(blobs, "videos/proxy/v/index.m3u8") == b"two"
    assert blobs.verify("anna", one.sha256)
    assert list(blobs.keys("videos/")) == ["videos/proxy/v/index.m3u8"]
    blobs.delete("videos/proxy/v/index.m3u8")
    assert read_document(blobs, "videos/proxy/v/index.m3u8") is None
    assert blobs.verify("anna", two.sha256)


def test_a_published_name_is_read_by_parts(blobs: Blobs) -> None:
    one, two = blobs.put("anna", b"0123456789"), blobs.put("anna", b"abcdefghij")
    assert blobs.read("videos/v.mp4", 0, 10) is None
    blobs.publish("videos/v.mp4", "anna", one.sha256)
    parts = [_part(blobs, *at) for at in ((0, 10), (3, 5), (8, 99), (10, 20), (0, 0))]
    assert [part.data for part in parts] == [b"0123456789", b"34", b"89", b"", b""]
    assert {(part.size, part.version) for part in parts} == {(10, parts[0].version)}
    blobs.publish("videos/v.mp4", "anna", two.sha256)
    other = _part(blobs, 0, 3)
    assert other.data == b"abc"
    assert other.version != parts[0].version


def _part(blobs: Blobs, start: int, end: int) -> ByteRange:
    part = blobs.read("videos/v.mp4", start, end)
    assert part
    return part


def test_an_address_names_the_place(blobs: Blobs) -> None:
    assert address(blobs, "videos/clips/v/c.mp4").endswith("videos/clips/v/c.mp4")


def test_keys_come_in_order_below_any_prefix(blobs: Blobs) -> None:
    names = ["a", "b/c", "b-d/e", "b.x", "b/é", "b/c2/d"]
    for name in names:
        blobs.create(name, b"")
    assert list(blobs.keys("")) == sorted(names)
    assert list(blobs.keys("b/")) == ["b/c", "b/c2/d", "b/é"]
    assert list(blobs.keys("b/c")) == ["b/c", "b/c2/d"]
    assert list(blobs.keys("nothing/here")) == []


@pytest.mark.parametrize("key", HOSTILE)
def test_hostile_keys_are_refused_by_every_verb(blobs: Blobs, key: str) -> None:
    blobs.put("anna", b"hello")
    verbs: list[Callable[[], object]] = [
        lambda: blobs.create(key, b""),
        lambda: read_document(blobs, key),
        lambda: blobs.read(key, 0, 1),
        lambda: blobs.delete(key),
        lambda: blobs.publish(key, "anna", HELLO),
        lambda: address(blobs, key),
    ]
    for verb in verbs:
        with pytest.raises(Refused):
            verb()


@pytest.mark.parametrize("owner", BAD_OWNERS)
def test_hostile_owners_are_refused_by_every_verb(blobs: Blobs, owner: str) -> None:
    verbs: list[Callable[[], object]] = [
        lambda: blobs.put(owner, b"x"),
        lambda: _size(blobs, owner, HELLO),
        lambda: blobs.open(owner, HELLO),
        lambda: blobs.verify(owner, HELLO, quarantine=True),
        lambda: blobs.delete(blob_key(owner, HELLO)),
    ]
    for verb in verbs:
        with pytest.raises(Refused):
            verb()


@pytest.mark.parametrize("sha256", ["", "..", HELLO.upper(), HELLO + "\n", HELLO[:-1], "../../" + HELLO[6:]])
def test_what_is_not_a_hash_is_refused(blobs: Blobs, sha256: str) -> None:
    with pytest.raises(Refused):
        blobs.open("anna", sha256)


@pytest.fixture
def folder(tmp_path: Path) -> FolderBlobs:
    return FolderBlobs(tmp_path / "store")


@pytest.fixture
def root(tmp_path: Path, folder: FolderBlobs) -> Path:
    return tmp_path / "store"


def _temps(root: Path) -> list[Path]:
    return list((root / ".temp").glob("*"))


def _is_locked(path: Path) -> bool:
    """Whether its writer has said that it lives: it does so just after the file is there."""
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_nothing_is_left_over_after_each_verb(folder: FolderBlobs, root: Path) -> None:
    folder.put("anna", b"hello")
    folder.put("anna", b"hello")
    folder.create("k", b"")
    folder.create("k", b"")
    folder.publish("n", "anna", HELLO)
    folder.publish("n", "anna", HELLO)
    assert _temps(root) == []


def test_a_blob_of_wrong_size_is_repaired_by_storing_it(folder: FolderBlobs, root: Path) -> None:
    place = root / blob_key("anna", HELLO)
    place.parent.mkdir(parents=True)
    place.write_bytes(b"he")
    assert not folder.verify("anna", HELLO)
    folder.put("anna", b"hello")
    assert folder.verify("anna", HELLO)


def test_blobs_cannot_be_written_by_accident(folder: FolderBlobs, root: Path) -> None:
    folder.put("anna", b"hello")
    assert stat.S_IMODE((root / blob_key("anna", HELLO)).stat().st_mode) & 0o222 == 0


def test_a_published_name_costs_no_second_copy(folder: FolderBlobs, root: Path) -> None:
    folder.put("anna", b"hello")
    folder.publish("videos/v.mp4", "anna", HELLO)
    assert (root / "videos/v.mp4").samefile(root / blob_key("anna", HELLO))


def test_without_hard_links_everything_still_holds(
    folder: FolderBlobs, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_link(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_link)
    folder.put("anna", b"hello")
    assert folder.put("anna", b"hello").sha256 == HELLO
    assert folder.create("k", b"1")
    assert not folder.create("k", b"2")
    folder.publish("videos/v.mp4", "anna", HELLO)
    assert read_document(folder, "videos/v.mp4") == b"hello"
    assert not (root / "videos/v.mp4").samefile(root / blob_key("anna", HELLO))
    assert _temps(root) == []


def _record(events: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    real_sync, real_link = os.fsync, os.link

    def sync(fd: int) -> None:
        events.append("sync " + ("folder" if stat.S_ISDIR(os.fstat(fd).st_mode) else "file"))
        real_sync(fd)

    def link(*args: object, **kwargs: object) -> None:
        events.append("link")
        real_link(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "link", link)


def test_bytes_reach_the_disk_before_their_name_and_the_name_before_the_answer(
    folder: FolderBlobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.put("anna", b"other folders are made and synced")
    events: list[str] = []
    _record(events, monkeypatch)
    folder.put("anna", b"hello")
    written = events.index("sync file")
    assert written < events.index("link")
    assert events[-1] == "sync folder"
    events.clear()
    folder.create("results/k", b"doc")
    assert events.index("sync file") < events.index("link")
    assert events[-1] == "sync folder"
    events.clear()
    assert folder.delete("results/k")
    assert events == ["sync folder"], "what is gone stays gone"


def test_folders_are_private_whatever_the_mask_of_the_process(folder: FolderBlobs, root: Path) -> None:
    before = os.umask(0o277)
    try:
        folder.create("results/ab/k", b"doc")
    finally:
        os.umask(before)
    assert [stat.S_IMODE((root / name).stat().st_mode) for name in ("results", "results/ab")] == [0o700, 0o700]


def test_a_new_folder_reaches_the_disk_even_if_another_process_made_it(
    folder: FolderBlobs, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.create("warm", b"")
    (root / "results").mkdir()
    events: list[str] = []
    _record(events, monkeypatch)
    folder.create("results/k", b"doc")
    assert events == ["sync file", "sync folder", "link", "sync folder"]


def test_symlinks_are_never_followed(folder: FolderBlobs, root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    (root / "results").symlink_to(outside)
    (root / "doc").symlink_to(outside / "secret")
    with pytest.raises(Refused):
        folder.create("results/new", b"x")
    assert read_document(folder, "results/secret") is None
    with pytest.raises(Refused):
        read_document(folder, "doc")
    assert list(folder.keys("")) == []
    assert [p.name for p in outside.iterdir()] == ["secret"]


def test_a_link_in_place_of_a_blob_is_replaced_not_written_through(
    folder: FolderBlobs, root: Path, tmp_path: Path
) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"precious")
    place = root / blob_key("anna", HELLO)
    place.parent.mkdir(parents=True)
    place.symlink_to(target)
    folder.put("anna", b"hello")
    assert folder.verify("anna", HELLO)
    assert target.read_bytes() == b"precious"


def test_a_pipe_in_the_store_hangs_nobody(folder: FolderBlobs, root: Path) -> None:
    os.mkfifo(root / "pipe")
    assert read_document(folder, "pipe") is None
    assert list(folder.keys("")) == []


@pytest.mark.parametrize(("code", "error"), [(errno.ENOSPC, NoRoom), (errno.EDQUOT, NoRoom), (errno.EIO, StoreAway)])
def test_a_full_or_broken_disk_is_said_as_such_and_leaves_nothing(
    folder: FolderBlobs, root: Path, monkeypatch: pytest.MonkeyPatch, code: int, error: type[Exception]
) -> None:
    def broken(*_: object) -> int:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", broken)
        with pytest.raises(error):
            folder.put("anna", b"hello")
    assert _temps(root) == []
    assert _size(folder, "anna", HELLO) is None


def test_a_blob_that_is_stored_while_gc_drops_it_is_put_back(
    folder: FolderBlobs, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, rename = root / blob_key("anna", HELLO), os.rename
    folder.put("anna", b"hello")
    os.utime(place, (0, 0))

    def late(*args: object, **kwargs: object) -> None:
        monkeypatch.setattr(os, "rename", rename)
        folder.put("anna", b"hello")
        rename(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "rename", late)
    assert not folder.delete(blob_key("anna", HELLO), older=3600.0)
    assert folder.verify("anna", HELLO)
    os.utime(place, (0, 0))
    assert folder.delete(blob_key("anna", HELLO), older=3600.0)
    assert not [p for p in root.rglob("*") if p.is_file()]


def test_a_blob_that_gc_drops_while_it_is_stored_is_stored(
    folder: FolderBlobs, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, utime = root / blob_key("anna", HELLO), os.utime
    folder.put("anna", b"hello")

    def late(*args: object, **kwargs: object) -> None:
        monkeypatch.setattr(os, "utime", utime)
        place.unlink()
        utime(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "utime", late)
    folder.put("anna", b"hello")
    assert folder.verify("anna", HELLO)


def test_what_is_mended_while_it_is_set_aside_is_put_back(
    folder: FolderBlobs, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, rename = root / blob_key("anna", HELLO), os.rename
    folder.put("anna", b"hello")
    place.chmod(0o644)
    place.write_bytes(b"hullo")

    def late(*args: object, **kwargs: object) -> None:
        monkeypatch.setattr(os, "rename", rename)
        place.write_bytes(b"hello")
        rename(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "rename", late)
    folder.verify("anna", HELLO, quarantine=True)
    assert folder.verify("anna", HELLO)


def test_room_is_what_the_file_system_says(folder: FolderBlobs) -> None:
    assert (free_bytes(folder) or 0) > 0


def test_tidy_leaves_a_living_writers_file_alone(folder: FolderBlobs, root: Path, tmp_path: Path) -> None:
    source = tmp_path / "pipe"
    os.mkfifo(source)
    with ThreadPoolExecutor(1) as pool:
        stored = pool.submit(folder.put, "anna", source)
        with source.open("wb") as writer:
            writer.write(b"hel")
            writer.flush()
            while not any(map(_is_locked, _temps(root))):
                assert not stored.done()
            assert remove_unfinished(folder) == 0
            writer.write(b"lo")
        assert stored.result().sha256 == HELLO
    assert folder.verify("anna", HELLO)


def _child(root: Path, what: str, crash: str = "") -> int:
    code = f"""
import os, signal, sys
from pathlib import Path
from rushes.blobs.folder import FolderBlobs
store = FolderBlobs(Path(sys.argv[1]))
{what}
"""
    count = root.with_name("passed")
    env = {**os.environ, "RUSHES_CRASH": f"{crash}#1" if crash else "", "RUSHES_CRASH_COUNT": str(count)}
    return subprocess.run([sys.executable, "-c", code, str(root)], env=env, check=False, timeout=240).returncode


@pytest.mark.parametrize(
    ("verb", "point", "kept"),
    [
        ("store.put('anna', b'hello')", "blob:before", False),
        ("store.put('anna', b'hello')", "blob:after", True),
        ("store.create('k', b'doc')", "manifest:before", False),
        ("store.create('k', b'doc')", "manifest:after", True),
    ],
)
def test_a_kill_leaves_all_or_nothing_and_tidy_the_rest(tmp_path: Path, verb: str, point: str, kept: bool) -> None:
    root = tmp_path / "store"
    assert _child(root, verb, point) == -signal.SIGKILL
    store = FolderBlobs(root)
    assert len(list(store.keys(""))) == kept
    assert len(_temps(root)) == 1
    assert remove_unfinished(store) == 1
    assert _temps(root) == []
    assert len(list(store.keys(""))) == kept
    assert store.put("anna", b"hello").sha256 == HELLO
    assert store.verify("anna", HELLO)


def test_a_kill_between_the_two_names_of_a_publication_changes_nothing(tmp_path: Path) -> None:
    root = tmp_path / "store"
    store = FolderBlobs(root)
    store.put("anna", b"hello")
    die = "os.rename = lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL)"
    assert _child(root, f"{die}\nstore.publish('n', 'anna', {HELLO!r})") == -signal.SIGKILL
    assert read_document(store, "n") is None
    assert remove_unfinished(store) == 1
    assert store.verify("anna", HELLO)


def test_of_eight_racing_processes_one_creates(tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
from rushes.blobs.folder import FolderBlobs
store = FolderBlobs(Path(sys.argv[1]))
sys.stdin.readline()
print(store.create("results/y.json", sys.argv[2].encode() * 1000))
"""
    command = [sys.executable, "-c", code, str(tmp_path / "store")]
    racers = [subprocess.Popen([*command, str(n)], stdin=PIPE, stdout=PIPE, text=True) for n in range(8)]
    for racer in racers:
        assert racer.stdin
        racer.stdin.write("go\n")
        racer.stdin.flush()
    won = [racer.communicate()[0].strip() == "True" for racer in racers]
    assert won.count(True) == 1
    assert read_document(FolderBlobs(tmp_path / "store"), "results/y.json") == b"%d" % won.index(True) * 1000


def test_a_large_file_is_stored_in_constant_memory(tmp_path: Path) -> None:
    big = tmp_path / "big"
    with big.open("wb") as file:
        file.truncate(80_000_000)
    what = f"""
import resource
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
blob = store.put('anna', Path({str(big)!r}))
assert store.verify('anna', blob.sha256)
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
sys.exit(0 if grown < 20_000 else 1)
"""
    assert _child(tmp_path / "store", what) == 0
