"""What means alike is found by what it means, with every other part of the grammar, and kept for the next time."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from rushes.domain.errors import ModelMissing
from rushes.domain.observation import Observation
from rushes.domain.span import Span
from rushes.engines.stub import StubEngine
from rushes.index.changes import IndexedResult, Run, RunUpdate, SelectionUpdate
from rushes.index.search import search
from rushes.index.search.semantic import SemanticSearch
from rushes.index.sqlite import SqliteIndex

LINES = ["it costs far too much money", "we went to the beach", "the dog is asleep", "money is what it costs"]


class Counting:
    """The stub, which knows how many sentences it was asked about."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def embed(self, model: str, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked += texts
        return StubEngine().embed(model, texts)


class Away:
    """An engine without weights."""

    def embed(self, _model: str, _texts: Sequence[str]) -> NDArray[np.float32]:
        raise ModelMissing("the model is not here", "rushes models pull minilm-l6")


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SqliteIndex]:
    opened = SqliteIndex(tmp_path / "index.sqlite")
    run = Run("j", "anna", "v", "searchable", "completed", "2026", {"video": "v", "name": "a.mp4"})
    offer = IndexedResult("anna", "v", "j", "transcribe", 0, "speech", "k", "sha")
    opened.apply(RunUpdate(run, [offer]))
    spans = [Span(n * 10, n * 10 + 5, Fraction(1)) for n in range(len(LINES))]
    opened.apply(
        SelectionUpdate(
            "anna", "v", [(offer, [Observation("speech", s, t, 1.0) for s, t in zip(spans, LINES, strict=True)])], ()
        )
    )
    yield opened
    opened.close()


def test_the_nearest_come_first_and_what_is_far_does_not_come(index: SqliteIndex, tmp_path: Path) -> None:
    semantic = SemanticSearch(Counting(), "m", tmp_path / "embeddings")
    assert [h.text for h in search(index, "anna", "~what it costs in money", semantic=semantic).hits] == [
        LINES[3],
        LINES[0],
    ]
    near = search(index, "anna", "~what it costs in money near:6s dog", semantic=semantic).hits
    assert [(h.start_us // 10**6, h.end_us // 10**6) for h in near] == [(20, 35)]
    assert [h.text for h in search(index, "anna", '-"too much" ~"what it costs in money"', semantic=semantic).hits] == [
        LINES[3]
    ]


def test_sentences_are_read_once_and_a_torn_file_is_mended(index: SqliteIndex, tmp_path: Path) -> None:
    path = tmp_path / "embeddings"
    first = Counting()
    semantic = SemanticSearch(first, "m", path)
    search(index, "anna", "~dog", semantic=semantic)
    assert sorted(first.asked) == sorted(["dog", *LINES])
    whole = path.read_bytes()
    path.write_bytes(whole[:-10])
    again = Counting()
    semantic = SemanticSearch(again, "m", path)
    assert search(index, "anna", "~dog", semantic=semantic).hits[0].text == LINES[2]
    assert len(again.asked) == 2
    assert path.read_bytes() == whole
    third = Counting()
    semantic = SemanticSearch(third, "m", path)
    search(index, "anna", "~dog", semantic=semantic)
    assert third.asked == ["dog"]


def test_without_weights_the_words_are_looked_for_and_it_is_said(index: SqliteIndex, tmp_path: Path) -> None:
    semantic = SemanticSearch(Away(), "m", tmp_path / "embeddings")
    found = search(index, "anna", "~costs money", semantic=semantic)
    assert [h.text for h in found.hits] == [LINES[3], LINES[0]]
    assert "rushes models pull" in found.note
    assert "only for the words" in search(index, "anna", "~costs money").note
