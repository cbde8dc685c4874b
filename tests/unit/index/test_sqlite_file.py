"""The file under the index: thrown away, damaged, of another version or in use elsewhere, it is made right."""

import contextlib
import re
import sqlite3
import threading
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from rushes.domain.errors import StoreAway
from rushes.domain.observation import Observation
from rushes.domain.span import Span
from rushes.index.changes import IndexedResult, Reset, Run, RunUpdate, SelectionUpdate
from rushes.index.search import search
from rushes.index.sqlite import _SQL, SqliteIndex


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "index.sqlite"


@pytest.fixture
def index(path: Path) -> Iterator[SqliteIndex]:
    opened = SqliteIndex(path)
    yield opened
    opened.close()


def _fill(index: SqliteIndex, text: str = "word") -> None:
    run = Run("j", "anna", "v", "searchable", "completed", "2026", {"video": "v", "name": "a.mp4"})
    offer = IndexedResult("anna", "v", "j", "transcribe", 0, "speech", text, "sha")
    index.apply(RunUpdate(run, [offer]))
    index.apply(
        SelectionUpdate("anna", "v", [(offer, [Observation("speech", Span(0, 1, Fraction(1)), text, 1.0)])], ())
    )


def test_an_index_of_another_version_is_made_anew(path: Path, index: SqliteIndex) -> None:
    _fill(index)
    index.close()
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99999")
        db.execute("CREATE TABLE newer (x)")
    db.close()
    assert search(index, "anna", "word").total == 0
    _fill(index)
    assert search(index, "anna", "word").total == 1


@pytest.mark.parametrize("junk", [b"not a database at all" * 100, b"SQLite format 3\0" + b"\xff" * 5000, b""])
def test_a_damaged_file_is_thrown_away(path: Path, index: SqliteIndex, junk: bytes) -> None:
    path.write_bytes(junk)
    _fill(index)
    assert search(index, "anna", "word").total == 1


def test_damage_met_later_is_said_once_and_then_made_good(path: Path, index: SqliteIndex) -> None:
    for n in range(30):
        _fill(index, f"word{n} " + "filler " * 2000)
    index.close()
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(size // 4096 // 2 * 4096)
        file.write(b"\xff" * (size - size // 4096 // 2 * 4096))
    with pytest.raises(StoreAway):
        index.lines("anna", "v")
    _fill(index)
    assert search(index, "anna", "word").total == 1


def test_an_index_deleted_while_it_is_open_is_begun_again(path: Path, index: SqliteIndex) -> None:
    _fill(index)
    path.unlink()
    assert search(index, "anna", "word").total == 0
    _fill(index, "other")
    assert search(index, "anna", "other").total == 1
    with_leftovers = SqliteIndex(path)
    assert search(with_leftovers, "anna", "other").total == 1
    with_leftovers.close()


def test_two_readers_see_what_one_writes(path: Path, index: SqliteIndex) -> None:
    reader = SqliteIndex(path)
    assert search(reader, "anna", "word").total == 0
    _fill(index)
    assert search(reader, "anna", "word").total == 1
    index.apply(Reset())
    assert search(reader, "anna", "word").total == 0
    reader.close()


def test_only_one_writes_at_a_time(path: Path, index: SqliteIndex) -> None:
    other = SqliteIndex(path)
    with index.lock() as mine, other.lock(0) as theirs:
        assert (mine, theirs) == (True, False)
    with other.lock(0) as theirs:
        assert theirs


def test_threads_share_an_index(index: SqliteIndex) -> None:
    _fill(index)
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(search(index, "anna", "word").total)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [1] * 8


def test_a_place_where_no_index_can_be_is_said(tmp_path: Path) -> None:
    with pytest.raises(StoreAway):
        search(SqliteIndex(tmp_path / "nowhere" / "index.sqlite"), "anna", "word")


ASKED = [
    "find",
    "count",
    "find_any",
    "find_in_windows",
    "catalog",
    "catalog_by_id",
    "summary_labels",
    "lines",
    "newest_facts",
    "videos",
    "videos_by_id",
]


@pytest.mark.parametrize("name", ASKED)
def test_no_question_looks_at_every_row(path: Path, index: SqliteIndex, name: str) -> None:
    _fill(index)
    index.close()
    sql = _SQL[name]
    named = set(re.findall(r":(\w+)", sql))
    with contextlib.closing(sqlite3.connect(path)) as db:
        known = {
            "windows": '[["v", 0, 1]]',
            "kinds": '["speech"]',
            "videos": '["v"]',
            "ids": '["v"]',
            "limit": 9,
        }
        values = {n: known.get(n, "word") for n in named}
        plan = " | ".join(row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {sql}", values))
    assert not re.search(r"SCAN (line|run|video|passage|extent|renamed)\b", plan), plan
    if "MATCH" in sql:
        assert re.search(r"SCAN passage_text VIRTUAL TABLE.*SEARCH passage USING INTEGER PRIMARY KEY", plan), plan
