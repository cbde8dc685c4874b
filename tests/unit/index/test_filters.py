"""Filters of a search: which videos they mean, and which languages they let through."""

import pytest

from rushes.index.grammar import MAX_WORDS, parse
from rushes.index.port import CatalogEntry, Posting
from rushes.index.query import Filter, Link, Term
from rushes.index.search import _is_in, _matches_language
from rushes.index.search.hits import Order
from rushes.index.search.match import reach

FILM = CatalogEntry("vid_ab12", "Beach Day.mp4", "2024/summer/Beach Day.mp4", "2024-07-01")


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("vid_ab12", True),
        ("vid_ab", True),
        ("ab12", True),
        ("ab1", False),
        ("beach", True),
        ("beach d", True),
        ("each", False),
        ("summer", True),
        ("winter", False),
    ],
)
def test_a_video_is_meant_by_its_id_or_by_words_of_its_name_or_path(value: str, found: bool) -> None:
    assert _is_in(value, FILM) is found


@pytest.mark.parametrize(
    ("kind", "language", "words", "negated", "passes"),
    [
        ("speech", "en", ("sea",), False, True),
        ("speech", "EN-gb", ("sea",), False, True),
        ("speech", "english", ("sea",), False, False),
        ("speech", "de", ("sea",), False, False),
        ("speech", "de", ("sea",), True, True),
        ("speech", "", ("sea",), False, False),
        ("object", "", ("sea",), False, True),
        ("object", "", ("sea",), True, True),
        ("object", "", (), False, False),
        ("object", "de", ("sea",), False, False),
    ],
)
def test_what_has_no_language_passes_where_it_is_named(
    kind: str, language: str, words: tuple[str, ...], negated: bool, passes: bool
) -> None:
    posting = Posting(1, "vid_ab12", kind, 0, 1, 1, language, 0.9, "sea", "sea", "")
    assert _matches_language(Filter("lang", "en", negated), posting, Term(words)) is passes


def test_hits_are_ordered_by_when_their_film_was_shot() -> None:
    order = Order("time", {FILM.id: FILM})
    assert order.position(FILM.id, 7) == ("2024-07-01", FILM.id, 7)
    assert order.position("vid_other", 7) == ("", "vid_other", 7)


@pytest.mark.parametrize(
    ("name", "forward", "where"),
    [
        ("before", True, (20, 26)),
        ("before", False, (4, 10)),
        ("near", True, (4, 26)),
        ("near", False, (4, 26)),
        ("during", True, (10, 20)),
    ],
)
def test_what_is_linked_is_looked_for_as_far_as_it_can_be(name: str, forward: bool, where: tuple[int, int]) -> None:
    assert reach(Link(name, 5), (10, 20), forward=forward) == where


def test_a_query_that_is_cut_short_looks_for_no_beginnings() -> None:
    long = " ".join(f"word{n}" for n in range(MAX_WORDS - 1))
    (clause,) = parse(f'{long} "one two*"').clauses
    last = clause.groups[-1][-1]
    assert (last.words, last.prefix) == (("one",), False)


def test_a_term_that_is_cut_short_keeps_its_kind_and_one_of_which_nothing_is_left_has_none() -> None:
    long = " ".join(f"word{n}" for n in range(MAX_WORDS - 1))
    (clause,) = parse(f'{long} object:"one two" object:car').clauses
    assert clause.groups[-1][-1].words == ("one",)
    assert clause.groups[-1][-1].kinds == ("object",)
