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
from rushes.engines.stub import FLAG, StubEngine
from rushes.index.port import Offer, Run
from rushes.index.semantic import About
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
    monkeypatch.setenv(FLAG, "1")
    opened = SqliteIndex(tmp_path / "index.sqlite")
    run = Run("j", "anna", "v", "searchable", "completed", "2026", {"video": "v", "name": "a.mp4"})
    offer = Offer("anna", "v", "j", "transcribe", 0, "speech", "k", "sha")
    opened.take_in(run, [offer], {}, ())
    spans = [Span(n * 10, n * 10 + 5, Fraction(1)) for n in range(len(LINES))]
    opened.show(
        "anna", "v", [(offer, [Observation("speech", s, t, 1.0) for s, t in zip(spans, LINES, strict=True)])], ()
    )
    yield opened
    opened.close()


def test_the_nearest_come_first_and_what_is_far_does_not_come(index: SqliteIndex, tmp_path: Path) -> None:
    index.about = About(Counting(), "m", tmp_path / "directions")
    assert [h.text for h in index.search("anna", "~what it costs in money").hits] == [LINES[3], LINES[0]]
    near = index.search("anna", "~what it costs in money near:6s dog").hits
    assert [(h.start_us // 10**6, h.end_us // 10**6) for h in near] == [(20, 35)]
    assert [h.text for h in index.search("anna", '-"too much" ~"what it costs in money"').hits] == [LINES[3]]


def test_sentences_are_read_once_and_a_torn_file_is_mended(index: SqliteIndex, tmp_path: Path) -> None:
    path = tmp_path / "directions"
    first = Counting()
    index.about = About(first, "m", path)
    index.search("anna", "~dog")
    assert sorted(first.asked) == sorted(["dog", *LINES])
    path.write_bytes(path.read_bytes()[:-10])
    again = Counting()
    index.about = About(again, "m", path)
    assert index.search("anna", "~dog").hits[0].text == LINES[2]
    assert len(again.asked) == 2
    third = Counting()
    index.about = About(third, "m", path)
    index.search("anna", "~dog")
    assert third.asked == ["dog"]


def test_without_weights_the_words_are_looked_for_and_it_is_said(index: SqliteIndex, tmp_path: Path) -> None:
    index.about = About(Away(), "m", tmp_path / "directions")
    found = index.search("anna", "~costs money")
    assert [h.text for h in found.hits] == [LINES[3], LINES[0]]
    assert "rushes models pull" in found.note
    index.about = None
    assert "words alone" in index.search("anna", "~costs money").note
