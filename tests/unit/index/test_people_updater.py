"""People in the index: whose are to be grouped again, and what cannot be read is passed over."""

import json
import logging
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from rushes.domain.observation import Observation
from rushes.domain.span import Span
from rushes.index.changes import IndexedResult
from rushes.index.people import PERSON
from rushes.index.people.updater import PeopleUpdater
from rushes.index.sqlite import SqliteIndex
from rushes.records.sqlite import SqliteRecords
from tests.memory_blobs import MemoryBlobs


@pytest.fixture
def people(tmp_path: Path) -> Iterator[PeopleUpdater]:
    index = SqliteIndex(tmp_path / "index.sqlite")
    yield PeopleUpdater(SqliteRecords(tmp_path / "records.sqlite"), MemoryBlobs(), index)
    index.close()


def stale(people: PeopleUpdater) -> list[str]:
    return list(json.loads(people.index.cursor("people") or "[]"))


def test_owners_whose_faces_changed_are_kept_until_they_are_grouped(people: PeopleUpdater) -> None:
    for owner in ("bob", "ann", "bob"):
        people.mark_stale(owner)
    assert stale(people) == ["ann", "bob"]
    people.update()
    assert stale(people) == []


def test_a_face_record_that_says_nothing_is_passed_over(people: PeopleUpdater) -> None:
    people.records.put(PERSON, "ann", "one", {"video": "vid_a"})
    assert people.people("ann") == []


def test_faces_whose_embeddings_are_gone_are_told_and_grouped_with_nobody(
    people: PeopleUpdater, caplog: pytest.LogCaptureFixture
) -> None:
    result = IndexedResult("ann", "vid_a", "job_a", "ab-faces", None, "faces", "ab-faces", "")
    face = Observation("face", Span(0, 1, Fraction(1)), "", 0.9, box=(0.4, 0.2, 0.1, 0.2))
    with caplog.at_level(logging.WARNING):
        people.replace_faces("ann", "vid_a", [(result, [face])])
    assert "cannot group the faces of result ab-faces" in caplog.text
    assert not people.index.tracks("ann")
