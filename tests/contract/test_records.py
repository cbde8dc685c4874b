"""The contract of records: versioned documents by kind, owner and id."""

import contextlib
import functools
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import aws_kit
import postgres_kit
import pytest
from obstore.store import MemoryStore

from rushes.bucket.conditional import ConditionalBucket
from rushes.domain.errors import NoRoom, StoreAway, WrongHome
from rushes.records.bucket import BucketRecords
from rushes.records.dynamodb import DynamoRecords
from rushes.records.port import Conflict, Record, Records
from rushes.records.postgres import PostgresRecords
from rushes.records.sqlite import SqliteRecords


class Handle(Records, Protocol):
    """Records that can be closed."""

    def close(self) -> None: ...


@functools.cache
def _memory_bucket(_folder: Path) -> ConditionalBucket:
    return ConditionalBucket(MemoryStore())


OPEN: dict[str, Callable[[Path], Handle]] = {
    "memory": lambda _: SqliteRecords(Path(":memory:")),
    "sqlite": lambda folder: SqliteRecords(folder / "records.sqlite"),
    "dynamodb": lambda folder: DynamoRecords(aws_kit.table(folder)),
    "bucket": lambda folder: BucketRecords(_memory_bucket(folder)),
    "postgres18": lambda folder: PostgresRecords(postgres_kit.database(18, folder)),
    "postgres16": lambda folder: PostgresRecords(postgres_kit.database(16, folder)),
}


@pytest.fixture(params=OPEN)
def records(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Records]:
    with contextlib.closing(OPEN[request.param](tmp_path)) as store:
        yield store


def test_a_record_is_read_as_it_was_written(records: Records) -> None:
    doc = {"path": "/films/é\n'\".mp4", "size": 3, "tags": ["a", None], "deep": {"x": 1.5}}
    assert records.put("path", "ann", "1", doc) == Record("path", "ann", "1", 1, doc)
    assert records.get("path", "ann", "1") == Record("path", "ann", "1", 1, doc)


def test_a_path_whose_bytes_are_no_text_is_read_as_it_was_written(records: Records) -> None:
    doc = {"path": "/films/\udcff\ud800\0.mp4"}
    records.put("path", "ann", "1", doc)
    assert records.get("path", "ann", "1") == Record("path", "ann", "1", 1, doc)


def test_what_nobody_wrote_is_none(records: Records) -> None:
    records.put("path", "ann", "1", {})
    assert records.get("path", "bob", "1") is None
    assert records.get("name", "ann", "1") is None
    assert records.get("path", "ann", "2") is None


def test_many_are_read_at_once_and_what_is_not_there_is_left_out(records: Records) -> None:
    wanted = [f"{n:03d}.'\"é" for n in range(205)]
    for id in wanted[::2]:
        records.put("path", "ann", id, {"id": id})
    records.put("path", "bob", wanted[1], {})
    records.put("name", "ann", wanted[3], {})
    records.delete("path", "ann", wanted[0])
    found = records.get_many("path", "ann", wanted)
    assert {id: record.doc for id, record in found.items()} == {id: {"id": id} for id in wanted[2::2]}
    assert found[wanted[2]] == records.get("path", "ann", wanted[2])
    assert records.get_many("path", "ann", ()) == {}


def test_every_write_is_the_next_version(records: Records) -> None:
    versions = [records.put("path", "ann", "1", {"n": n}).version for n in range(3)]
    assert versions == [1, 2, 3]
    assert records.put("path", "ann", "2", {}).version == 1


def test_a_write_that_expects_what_is_there_goes_through(records: Records) -> None:
    records.put("path", "ann", "1", {}, expected=0)
    assert records.put("path", "ann", "1", {"b": 2}, expected=1).version == 2


@pytest.mark.parametrize("expected", [0, 2, 7])
def test_a_write_that_expects_something_else_changes_nothing(records: Records, expected: int) -> None:
    records.put("path", "ann", "1", {"a": 1})
    before = records.changed()
    with pytest.raises(Conflict):
        records.put("path", "ann", "1", {"b": 2}, expected=expected)
    with pytest.raises(Conflict):
        records.delete("path", "ann", "1", expected=expected)
    with pytest.raises(Conflict):
        records.put("path", "ann", "none", {}, expected=1)
    assert records.changed() == before


def test_a_deleted_record_is_gone_and_its_versions_are_not_used_again(records: Records) -> None:
    records.put("path", "ann", "1", {"a": 1})
    assert records.delete("path", "ann", "1", expected=1)
    assert not records.delete("path", "ann", "1")
    assert records.get("path", "ann", "1") is None
    assert records.list("path", "ann") == ((), "")
    again = records.put("path", "ann", "1", {"a": 2}, expected=0)
    assert again.version > 1


def test_records_are_listed_in_order_of_id_in_pages(records: Records) -> None:
    ids = ["b", "a", "e", "c", "d"]
    for id in ids:
        records.put("path", "ann", id, {"id": id})
    records.put("path", "bob", "x", {})
    records.put("name", "ann", "y", {})
    got, cursor = [], ""
    while True:
        page, cursor = records.list("path", "ann", cursor, 2)
        got += [record.id for record in page]
        if not cursor:
            break
    assert got == sorted(ids)


def test_changed_tells_every_write_and_deletion_since_a_cursor(records: Records) -> None:
    records.put("path", "ann", "1", {"a": 1})
    records.put("name", "bob", "2", {})
    first, cursor = records.changed()
    assert [r.id for r in first] == ["1", "2"]
    assert records.changed(cursor) == ((), cursor)
    records.put("path", "ann", "1", {"a": 2})
    records.delete("name", "bob", "2")
    then, _ = records.changed(cursor)
    assert [(r.id, r.deleted) for r in then] == [("1", False), ("2", True)]


def test_a_document_that_its_writer_changes_later_stays_as_it_was(records: Records) -> None:
    doc = {"tags": ["a"]}
    records.put("path", "ann", "1", doc)
    doc["tags"].append("b")
    found = records.get("path", "ann", "1")
    assert found is not None
    assert found.doc == {"tags": ["a"]}


def test_of_many_who_expect_the_same_version_one_wins(records: Records) -> None:
    records.put("path", "ann", "1", {"n": 0})
    won: list[int] = []

    def write(n: int) -> None:
        with contextlib.suppress(Conflict):
            won.append(records.put("path", "ann", "1", {"n": n}, expected=1).version)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert won == [2]


# What is SQLite's own
def test_records_on_sqlite_are_there_for_the_next_process(tmp_path: Path) -> None:
    with (
        contextlib.closing(SqliteRecords(tmp_path / "r")) as one,
        contextlib.closing(SqliteRecords(tmp_path / "r")) as two,
    ):
        one.put("path", "ann", "1", {"a": 1})
        assert two.get("path", "ann", "1") == one.get("path", "ann", "1")
        one.backup(tmp_path / "copy")
    with contextlib.closing(SqliteRecords(tmp_path / "copy")) as copy:
        assert copy.get("path", "ann", "1") is not None


def test_records_of_a_newer_schema_are_refused(tmp_path: Path) -> None:
    SqliteRecords(tmp_path / "r").close()
    with contextlib.closing(sqlite3.connect(tmp_path / "r")) as db, db:
        db.execute("UPDATE record_schema SET version = 9")
    with pytest.raises(WrongHome, match="newer rushes"):
        SqliteRecords(tmp_path / "r")


def test_a_store_that_is_locked_or_full_says_so_in_our_words(tmp_path: Path) -> None:
    with contextlib.closing(SqliteRecords(tmp_path / "r")) as records:
        records._file.db.execute("PRAGMA busy_timeout = 1")
        with contextlib.closing(sqlite3.connect(tmp_path / "r", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreAway):
                records.put("path", "ann", "1", {})
        records._file.db.execute("PRAGMA max_page_count = 1")
        with pytest.raises(NoRoom):
            records.put("path", "ann", "1", {"x": "y" * 100_000})
        assert records.get("path", "ann", "1") is None


def test_many_who_open_new_records_at_once_all_get_in(tmp_path: Path) -> None:
    errors: list[Exception] = []
    gate = threading.Barrier(8)

    def enter() -> None:
        gate.wait()
        try:
            SqliteRecords(tmp_path / "r").close()
        except StoreAway as e:
            errors.append(e)

    threads = [threading.Thread(target=enter) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_of_eight_who_create_a_record_at_once_one_does(records: Records) -> None:
    begin, won, lost = threading.Barrier(8), list[int](), list[int]()

    def create(n: int) -> None:
        begin.wait()
        try:
            records.put("setup", "ann", "first", {"by": n}, expected=0)
            won.append(n)
        except Conflict:
            lost.append(n)

    threads = [threading.Thread(target=create, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(won), len(lost)) == (1, 7)
    found = records.get("setup", "ann", "first")
    assert found
    assert found.doc == {"by": won[0]}
