"""What a clause finds where a word is said again and again: no more is tried than is kept, and no line takes it all."""

import json
from unittest.mock import Mock

import pytest

from rushes.index import near
from rushes.index.near import Occurrence, evaluate, grouped, occurrences
from rushes.index.port import Posting
from rushes.index.query import Term, parse

NO = Term(("no",))


def _line(id: int, second: int, words: int, *, timed: bool = True) -> Posting:
    """Somebody says no so many times, ten times a second."""
    start, end = second * 10, second * 10 + words
    ticks = [t for n in range(start, end) for t in (n, n + 1)] if timed else []
    times = json.dumps([words, 1, 10, start, end, ticks])
    said = " ".join(["no"] * words)
    return Posting(id, "vid", "speech", start * 100_000, end * 100_000, end * 100_000, "en", 1.0, said, said, times)


def _met(text: str, *lines: Posting) -> list[tuple[int, tuple[int, int]]]:
    return [(m.anchor.id, m.us) for m in evaluate(parse(text).clauses[0], {NO: occurrences(NO, lines)})]


@pytest.mark.parametrize(("text", "question"), [("no no no", "_joins"), ("no NEAR no", "holds")])
def test_no_more_ways_are_tried_than_are_kept(monkeypatch: pytest.MonkeyPatch, text: str, question: str) -> None:
    asked = Mock(wraps=getattr(near, question))
    monkeypatch.setattr(near, question, asked)
    monkeypatch.setattr(near, "MOST", 50)
    assert _met(text, _line(1, 0, 40))
    assert asked.call_count <= 2 * near.MOST


@pytest.mark.parametrize("text", ["no no no", "no near:0s no"])
def test_one_line_does_not_use_up_the_ways_of_a_video(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(near, "MOST", 100)
    assert {id for id, _ in _met(text, _line(1, 0, 40), _line(2, 60, 1), _line(3, 70, 2))} == {1, 2, 3}


def test_a_word_that_is_asked_for_again_may_be_the_same_one() -> None:
    assert _met("no no no", _line(1, 0, 4)) == [(1, (0, 100_000))]


def test_a_word_said_again_in_a_line_without_times_is_put_together_once() -> None:
    found = occurrences(NO, [_line(1, 0, 300, timed=False)])
    assert [chain.all for chain in grouped([found, found, found])] == [(found[0],) * 3]


def test_a_word_that_is_asked_for_ever_again_makes_no_more_ways() -> None:
    found = occurrences(NO, [_line(1, 0, 4)])
    assert len(grouped([found] * 32)) == len(grouped([found] * 5)) == 56


def test_the_same_words_in_another_order_are_the_same_way() -> None:
    found: list[Occurrence] = occurrences(NO, [_line(1, 0, 3)])
    assert len(grouped([found, found])) == 6
