"""Completions and similar words."""

import pytest

from rushes.library.spelling import completions, similar_query, vocabulary

KNOWN = vocabulary(["The country and the city", "Our country, été", "12 countries"])


def test_completions_are_words_that_occur_most_frequent_first() -> None:
    assert completions("cou", KNOWN, 5) == ["country", "countries"]
    assert completions("Été"[:2], KNOWN, 5) == ["ete"]
    assert completions("", KNOWN, 5) == completions("xyz", KNOWN, 5) == []


@pytest.mark.parametrize(
    ("query", "similar"),
    [("contry", "country"), ("say:cuontry city", "say:country city"), ("country", ""), ("zzzzz", ""), ("", "")],
)
def test_a_word_that_does_not_occur_is_replaced_by_a_similar_one(query: str, similar: str) -> None:
    assert similar_query(query, KNOWN, lambda text: "country" in text) == similar


def test_only_a_query_that_finds_something_is_suggested() -> None:
    assert not similar_query("contry", KNOWN, lambda text: False)
