"""Moments: sentences go on into the next line, looks are joined, corrections stand wherever lines are cut."""

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rushes import index
from rushes.domain.observation import Observation
from rushes.domain.span import Span
from rushes.index.changes import Correction
from rushes.index.corrections import corrected
from rushes.index.passages import passages
from rushes.index.tokenizer import Token, tokens

MS = Fraction(1, 1000)


def _line(text: str, start: int, end: int, kind: str = "speech", language: str = "en") -> Observation:
    step = (end - start) // max(1, len(text.split()))
    words = tuple((w, start + n * step, start + (n + 1) * step, 0.9) for n, w in enumerate(text.split()))
    return Observation(kind, Span(start, end, MS), text, 0.9, language, words if kind == "speech" else ())


@pytest.mark.parametrize(
    ("second", "language", "first", "joined"),
    [
        (1000, "en", "what your", True),
        (2900, "en", "what your", True),
        (3100, "en", "what your", False),
        (1000, "en", "what your.", False),
        (1000, "en", 'what your!"', False),
        (1000, "de", "what your", False),
    ],
    ids=["at once", "after a breath", "after a pause", "after a stop", "after a quote", "in another language"],
)
def test_a_sentence_goes_on_unless_it_has_ended(second: int, language: str, first: str, joined: bool) -> None:
    lines = [_line(first, 0, 1000), _line("country can", second, second + 800, language=language)]
    made = list(passages(lines))
    assert made[0].words == ("what your country can" if joined else "what your")
    assert made[0].until_us == ((second + 800) * 1000 if joined else 1_000_000)
    assert made[1].words == "country can"


@dataclass
class _Word:
    """A token that counts how often somebody asks where it ends."""

    token: Token
    asked: Counter[str]

    def __getattr__(self, name: str) -> Any:
        self.asked[name] += 1
        return getattr(self.token, name)


@pytest.mark.parametrize("lines", [1, 40], ids=["in one line", "in one sentence"])
def test_however_many_words_there_are_each_is_timed_by_its_neighbours_alone(
    monkeypatch: pytest.MonkeyPatch, lines: int
) -> None:
    asked, each = Counter[str](), 400 // lines
    monkeypatch.setattr(index.passages, "tokens", lambda text: [_Word(token, asked) for token in tokens(text)])
    said = [" ".join(f"word{n}" for n in range(each))] * lines
    list(passages([_line(text, n * 100, n * 100 + 100) for n, text in enumerate(said)]))
    assert asked["end"] <= 3 * 400


def test_what_is_written_does_not_go_on() -> None:
    made = list(passages([_line("what your", 0, 1000, "text"), _line("country", 1000, 2000, "text")]))
    assert [m.words for m in made] == ["what your", "country"]


def test_looks_at_the_same_thing_are_one_moment() -> None:
    looks = [("dog", 0), ("cat", 0), ("dog", 1000), ("dog", 3000), ("cat", 9000)]
    made = list(passages([_line(text, at, at + 1000, "object") for text, at in looks]))
    assert [(m.text, m.start_us // 1000, m.end_us // 1000) for m in made] == [
        ("cat", 0, 1000), ("dog", 0, 4000), ("cat", 9000, 10000)]  # fmt: skip


def test_a_correction_takes_the_place_of_the_words_that_it_covers() -> None:
    lines = [_line("one two three four", 0, 4000), _line("five six", 4000, 6000)]
    said = Correction("c", "v", "speech", 2_000_000, 5_000_000, "III IV V")
    assert [(o.text, o.span.start_us // 1000) for o in corrected(lines, [said])] == [
        ("one two", 0), ("III IV V", 2000), ("six", 5000)]  # fmt: skip
    nothing = Correction("c", "v", "speech", 0, 4_000_000, "")
    assert [o.text for o in corrected(lines, [nothing])] == ["five six"]


@given(cuts=st.lists(st.integers(1, 19), unique=True, max_size=5), at=st.integers(0, 16), length=st.integers(1, 4))
def test_however_lines_are_cut_the_same_words_are_left_beside_a_correction(
    cuts: list[int], at: int, length: int
) -> None:
    edges = [0, *sorted(cuts), 20]
    lines = [_line(" ".join(f"w{n}" for n in range(a, b)), a * 100, b * 100) for a, b in pairwise(edges)]
    said = Correction("c", "v", "speech", at * 100_000, (at + length) * 100_000, "said so")
    left = " ".join(o.text for o in corrected(lines, [said])).split()
    before, after = [f"w{n}" for n in range(at)], [f"w{n}" for n in range(at + length, 20)]
    assert left == [*before, "said", "so", *after]
