"""A store and its results belong together, on every pair of backends: strangers are refused."""

import contextlib
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import test_blobs
import test_records
from tests.memory_blobs import MemoryBlobs

from rushes.blob_identity import MARK, check_identity, copy_identity
from rushes.blobs.documents import read_document
from rushes.blobs.port import Blobs
from rushes.domain.errors import Refused, WrongHome
from rushes.records.port import Record, Records

RECORDS = ("sqlite", "postgres18", "dynamodb")
BLOBS = ("folder", "seaweed", "ministack")


@pytest.fixture(params=RECORDS)
def records(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Records]:
    with contextlib.closing(test_records.OPEN[request.param](tmp_path)) as store:
        yield store


@pytest.fixture(params=BLOBS)
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> Blobs:
    return test_blobs.OPEN[request.param](request, tmp_path)


def test_a_store_knows_its_results_again_and_refuses_others(records: Records, blobs: Blobs) -> None:
    check_identity(records, blobs)
    check_identity(records, blobs)
    with pytest.raises(WrongHome, match="does not have the results of this store"):
        check_identity(records, MemoryBlobs())
    other = MemoryBlobs()
    other.create(MARK, b'{"id": "of another"}')
    with pytest.raises(WrongHome, match="has the results of another store"):
        check_identity(records, other)
    check_identity(records, blobs)


def test_of_many_that_begin_at_once_one_names_the_results(records: Records, blobs: Blobs) -> None:
    together = threading.Barrier(4)

    def begin(_: int) -> None:
        together.wait()
        check_identity(records, blobs)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(begin, range(4)))
    check_identity(records, blobs)


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[Records]:
    with contextlib.closing(test_records.OPEN["sqlite"](tmp_path)) as store:
        yield store


def test_a_new_store_takes_the_results_that_are_there(sqlite: Records) -> None:
    blobs = MemoryBlobs()
    blobs.create(MARK, b'{"id": "from before"}')
    check_identity(sqlite, blobs)
    with pytest.raises(WrongHome):
        check_identity(sqlite, MemoryBlobs())


def test_a_mark_that_was_lost_is_made_again_only_where_nothing_else_can_be_meant(sqlite: Records) -> None:
    blobs = MemoryBlobs()
    check_identity(sqlite, blobs)
    mark = read_document(blobs, MARK)
    blobs.delete(MARK)
    with pytest.raises(WrongHome):
        check_identity(sqlite, blobs)
    check_identity(sqlite, blobs, restores=True)
    assert read_document(blobs, MARK) == mark


def test_other_results_are_taken_over_when_a_person_says_so(sqlite: Records) -> None:
    check_identity(sqlite, MemoryBlobs())
    other, empty = MemoryBlobs(), MemoryBlobs()
    other.create(MARK, b'{"id": "of another"}')
    for blobs in (other, empty):
        check_identity(sqlite, blobs, take_over=True)
        check_identity(sqlite, blobs)


def test_a_copy_of_results_is_the_same_stores(sqlite: Records) -> None:
    blobs, copy, other = MemoryBlobs(), MemoryBlobs(), MemoryBlobs()
    check_identity(sqlite, blobs)
    copy_identity(blobs, copy)
    check_identity(sqlite, copy)
    copy_identity(MemoryBlobs(), copy)
    other.create(MARK, b'{"id": "of another"}')
    with pytest.raises(Refused, match="another store"):
        copy_identity(blobs, other)


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b"no json"])
def test_a_damaged_mark_is_said(data: bytes, sqlite: Records) -> None:
    blobs = MemoryBlobs()
    blobs.create(MARK, data)
    with pytest.raises(WrongHome, match="is damaged"):
        check_identity(sqlite, blobs)


def test_whoever_remembers_first_is_believed(sqlite: Records, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process has come between our look and our write, with other results."""
    put = sqlite.put

    def too_late(*args: Any, **more: Any) -> Record:
        monkeypatch.undo()
        put("identity", "", "blobs", {"id": "of another"})
        return put(*args, **more)

    monkeypatch.setattr(sqlite, "put", too_late)
    with pytest.raises(WrongHome, match="another store"):
        check_identity(sqlite, MemoryBlobs())


def test_the_mark_is_plain_json() -> None:
    blobs = MemoryBlobs()
    with contextlib.closing(test_records.OPEN["memory"](Path())) as records:
        check_identity(records, blobs)
    assert list(json.loads(read_document(blobs, MARK) or b"")) == ["id"]
