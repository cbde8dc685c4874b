"""One tokenizer for text and query: folds case and accents, splits sensibly, never fails."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rushes.index.tokenizer import MAX_WORD_LENGTH, safe, tokens, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("And so, my fellow Americans", "and so my fellow americans"),
        ("Don't — it's John's", "don t it s john s"),
        ("L'été à Zürich", "l ete a zurich"),
        ("Straße STRASSE straße", "strasse strasse strasse"),
        ("Łódź smørrebrød æther", "lodz smorrebrod aether"),
        ("1,000 or 1\u2019000\u2019000 but 3.14 and 1,00", "1000 or 1000000 but 3 14 and 1 00"),
        ("snake_case well-known e-mail@x.org", "snake case well known e mail x org"),
        ("日本語 テスト", "日 本 語 テ ス ト"),
        ("が is not か", "が is not か"),
        ("한국어 검색", "한국어 검색"),
        ("हिन्दी में", "हिन्दी में"),
        ("İstanbul ISTANBUL", "istanbul istanbul"),
        ("ﬁne ½ Ⅷ ٣٤", "fine 1 2 viii 34"),
        ("cafe\u0301 café", "cafe cafe"),
        ("Ёлка ёлка", "елка елка"),
        ("🎬 * ( \" ' - \0", ""),
        ("", ""),
    ],
)
def test_words_are_folded_and_split(text: str, expected: str) -> None:
    assert words(text) == expected.split()


@settings(deadline=None)
@given(st.text("01a,'. ", max_size=20))
@example("1'000")
@example("1234,567")
@example("a1,000,000")
@example("1,0000")
def test_a_number_is_the_same_word_in_plain_text_and_in_any_other(text: str) -> None:
    assert tokens(text) == tokens(f"{text} é")[:-1]


@settings(deadline=None)
@given(st.text(max_size=60))
def test_every_word_stands_where_its_token_says(text: str) -> None:
    found = tokens(text)
    assert all(0 <= t.start < t.end <= len(text) for t in found)
    assert [t.start for t in found] == sorted(t.start for t in found)
    for token in found:
        assert token.word in words(text[token.start : token.end])


@settings(deadline=None)
@given(st.text(max_size=60))
@example("\u0e33")
def test_folding_twice_changes_nothing(text: str) -> None:
    once = words(text)
    assert words(" ".join(once)) == once


@settings(deadline=None)
@given(st.text(max_size=60))
def test_words_hold_nothing_that_a_query_language_could_read(text: str) -> None:
    for word in words(text):
        assert not set(word) & set("\"'*():^-+{}\0 \t\n\\")
        word.encode()


@settings(deadline=None)
@given(st.text(max_size=40))
def test_case_does_not_matter(text: str) -> None:
    assert words(text.casefold()) == words(text.casefold().casefold())
    assert words(text.upper().casefold()) == words(text.upper())


def test_endless_words_are_cut() -> None:
    assert words("x" * 10_000) == ["x" * MAX_WORD_LENGTH]
    assert words("é" * 10_000) == ["e" * MAX_WORD_LENGTH]


def test_shown_text_can_do_nothing() -> None:
    assert safe("plain é 🎬") == "plain é 🎬"
    assert safe("\x1b[31mred\x07\r\n") == " [31mred   "
    assert safe("a\u202eb\u2066c\ud800") == "abc\ufffd"
