"""What a clause finds where a word is said again and again: no more is tried than is kept, and no line takes it all."""

import json
from typing import Any
from unittest.mock import Mock

import pytest

from rushes.index.grammar import parse
from rushes.index.port import Posting
from rushes.index.query import Term
from rushes.index.search import match
from rushes.index.search.match import Occurrence, evaluate, grouped, occurrences

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
    asked = Mock(wraps=getattr(match, question))
    monkeypatch.setattr(match, question, asked)
    monkeypatch.setattr(match, "MAX_COMBINATIONS", 50)
    assert _met(text, _line(1, 0, 40))
    assert asked.call_count <= 2 * match.MAX_COMBINATIONS


@pytest.mark.parametrize("text", ["no no no", "no near:0s no"])
def test_one_line_does_not_use_up_the_ways_of_a_video(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(match, "MAX_COMBINATIONS", 100)
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


def _seen(id: int, word: str, start: int, end: int, video: str = "vid") -> Posting:
    times = json.dumps([1, 1, 1000, start, end, []])
    return Posting(id, video, "object", start * 1000, end * 1000, end * 1000, "", 1.0, word, word, times)


def _found(text: str, postings: list[Posting]) -> list[int]:
    clause = parse(text).clauses[0]
    found = {term: occurrences(term, postings) for term in (*clause.terms, *clause.never)}
    return [m.anchor.id for m in evaluate(clause, found)]


def test_what_must_not_be_there_is_looked_for_in_its_own_video_and_at_its_own_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dogs = [_seen(n, "dog", n * 10, n * 10 + 5, f"vid{n % 20:02}") for n in range(200)]
    cats = [_seen(1000 + n, "cat", n * 10 + 4, n * 10 + 9, f"vid{n % 20:02}") for n in range(0, 200, 2)]
    asked = Mock(wraps=vars(Occurrence)["line"].fget)
    monkeypatch.setattr(Occurrence, "line", property(asked))
    assert sorted(_found("dog -cat", dogs + cats)) == list(range(1, 200, 2))
    assert asked.call_count <= len(cats)


class _Counted(match.Match):
    """Counts how often somebody asks when it is."""

    asked = 0

    def __getattribute__(self, name: str) -> Any:
        _Counted.asked += name == "us"
        return super().__getattribute__(name)


def test_many_hits_in_one_long_moment_are_not_each_held_against_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(match, "Match", _Counted)
    monkeypatch.setattr(_Counted, "asked", 0)
    day = _seen(0, "dog", 0, 10_000)
    cats = [_seen(n, "cat", n * 10, n * 10 + 5) for n in range(1, 301)]
    assert sorted(_found("dog cat", [day, *cats])) == list(range(1, 301))
    assert _Counted.asked <= 20 * len(cats)


def test_of_stretches_that_share_something_those_stay_that_hold_no_other() -> None:
    day, inner, outer, alike, apart = (
        _seen(id, word, start, end)
        for id, (word, start, end) in enumerate(
            [("dog", 0, 100), ("cat", 10, 15), ("cat", 8, 16), ("cat", 10, 15), ("cat", 12, 18)]
        )
    )
    assert sorted(_found("dog cat", [day, inner, outer, alike, apart])) == [1, 3, 4]
