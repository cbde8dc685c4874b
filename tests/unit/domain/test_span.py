"""Spans are moved exactly, whatever their time base."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from rushes.domain.observation import Observation
from rushes.domain.span import Span

TIMES = st.fractions(min_value=-1000, max_value=100_000, max_denominator=90_000)
BASES = st.sampled_from([Fraction(1, 16000), Fraction(1, 90000), Fraction(1, 1000), Fraction(1001, 24000)])


@given(st.integers(-(10**9), 10**9), st.integers(0, 10**6), BASES, TIMES)
def test_a_moved_span_begins_and_ends_exactly_that_much_later(
    start: int, length: int, base: Fraction, by: Fraction
) -> None:
    span = Span(start, start + length, base)
    moved = span.moved(by)
    assert moved.start * moved.base == start * base + by
    assert moved.seconds == span.seconds
    assert moved.moved(-by).start_us == span.start_us


def test_a_span_that_is_not_moved_stays_as_it_is() -> None:
    assert Span(7, 9, Fraction(1, 16000)).moved(Fraction(0)) == Span(7, 9, Fraction(1, 16000))


def test_words_move_with_their_line() -> None:
    line = Observation(
        "speech", Span(0, 32, Fraction(1, 16)), "ask not", 0.9, "en", (("ask", 0, 16, 1.0), ("not", 16, 32, 1.0))
    )
    moved = line.moved(Fraction(1, 3))
    assert moved.span.base == Fraction(1, 48)
    assert [(w, a * moved.span.base, b * moved.span.base) for w, a, b, _ in moved.words] == [
        ("ask", Fraction(1, 3), Fraction(4, 3)),
        ("not", Fraction(4, 3), Fraction(7, 3)),
    ]
