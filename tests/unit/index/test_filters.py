"""Filters of a search: which videos they mean, and which languages they let through."""

import pytest

from rushes.index.port import CatalogEntry, Posting
from rushes.index.query import Filter, Term
from rushes.index.search import _is_in, _matches_language

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
