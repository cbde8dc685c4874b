"""The grammar of search: what a text means, and that every text means something."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rushes.index.query import MOST_WORDS, Clause, Query, Term, matches, parse, tightest
from rushes.index.words import words

ODD = ['"', '"""', "a AND", "AND", "NEAR(", "NEAR(a b, 5)", "*", "**", "col:x", "-", "--", "- -", "OR", "OR OR", "|",
       "()", "a*b", "say:", "say:*", '-"', "{}", "^a", "a + b", "\0", "\ud800", "🎬", "x" * 10_000, "a " * 5_000,
       '"' * 9_999, ":", "::x", "'; DROP TABLE line; --", "-a -b"]  # fmt: skip


def _clause(must: str, *never: str) -> Clause:
    return Clause(tuple(Term((w,)) for w in must.split()), tuple(Term((w,)) for w in never))


@pytest.mark.parametrize(
    ("text", "clauses"),
    [
        ("ask NOT what", [_clause("ask not what")]),
        ("country -city", [_clause("country", "city")]),
        ("a b OR c d", [_clause("a b"), _clause("c d")]),
        ("a | b", [_clause("a"), _clause("b")]),
        ("OR a OR OR b OR", [_clause("a"), _clause("b")]),
        ("a AND b", [_clause("a b")]),
        ("a or b", [_clause("a or b")]),
        ('"fellow Americans"', [Clause((Term(("fellow", "americans")),))]),
        ("“typographic quotes”", [Clause((Term(("typographic", "quotes")),))]),
        ('"never closed phrase', [Clause((Term(("never", "closed", "phrase")),))]),
        ('a -"b c"', [Clause((Term(("a",)),), (Term(("b", "c")),))]),
        ("wor*", [Clause((Term(("wor",), prefix=True),))]),
        ('"new yor"*', [Clause((Term(("new", "yor"), prefix=True),))]),
        ("don't well-known", [Clause((Term(("don", "t")), Term(("well", "known"))))]),
        ("say:Été", [Clause((Term(("ete",), kinds=("speech",)),))]),
        ('SAY:"two words" x', [Clause((Term(("two", "words"), kinds=("speech",)), Term(("x",))))]),
        ("x -say:y*", [Clause((Term(("x",)),), (Term(("y",), prefix=True, kinds=("speech",)),))]),
        ("unknown:field", [Clause((Term(("unknown", "field")),))]),
        ("日本", [Clause((Term(("日", "本")),))]),
    ],
)
def test_a_query_means_what_people_expect(text: str, clauses: list[Clause]) -> None:
    assert parse(text) == Query(tuple(clauses))


@pytest.mark.parametrize("text", ODD)
def test_odd_input_is_plain_words(text: str) -> None:
    query = parse(text)
    assert query.clauses or query.note
    matches(query, "speech", ["a", "b", "x"])


@pytest.mark.parametrize("text", ["", "  ", "*", '"', "OR", "🎬"])
def test_nothing_to_look_for_is_said(text: str) -> None:
    assert parse(text) == Query((), "no words to look for")


@pytest.mark.parametrize("text", ["-a", "-a -b", '-"a b"', "-a OR -b"])
def test_only_negations_find_nothing_and_say_so(text: str) -> None:
    query = parse(text)
    assert not query.clauses
    assert "leave out" in query.note


def test_a_clause_of_negations_does_not_spoil_the_others() -> None:
    assert parse("-a OR b").clauses == (_clause("b"),)


def test_too_many_words_are_cut_and_it_is_said() -> None:
    query = parse(" ".join(f"w{n}" for n in range(100)))
    assert sum(len(t.words) for c in query.clauses for t in c.must) == MOST_WORDS
    assert "first 32 words" in query.note
    phrase = parse('"' + " ".join(f"w{n}" for n in range(100)) + '"')
    assert len(phrase.clauses[0].must[0].words) == MOST_WORDS


@settings(deadline=None)
@given(st.text(max_size=80))
@example("\ud800 a")
def test_every_text_is_a_query(text: str) -> None:
    query = parse(text)
    assert query.clauses or query.note
    for clause in query.clauses:
        assert clause.must
        assert all(term.words for term in (*clause.must, *clause.never))


@settings(deadline=None)
@given(st.lists(st.sampled_from(["ask", "not", "what", "Été", "1,000"]), min_size=1, max_size=5))
def test_a_line_is_found_by_its_own_words_in_any_order(said: list[str]) -> None:
    line = words(" ".join(said))
    assert matches(parse(" ".join(reversed(said))), "speech", line) is not None
    assert matches(parse(f'"{" ".join(said)}"'), "speech", line) == tuple(range(len(line)))


@pytest.mark.parametrize(
    ("query", "line", "places"),
    [
        ("b", "a b c b", (1, 3)),
        ("a c", "a b c", (0, 2)),
        ('"a c"', "a b c", None),
        ('"b c"', "a b c b", (1, 2)),
        ("a -c", "a b c", None),
        ("a -d", "a b c", (0,)),
        ("b*", "a bc bd", (1, 2)),
        ('"a b"*', "a bc", (0, 1)),
        ("x OR c", "a b c", (2,)),
        ("a OR c", "a b c", (0, 2)),
        ("say:a", "a b", (0,)),
        ('"a a"', "a a a", (0, 1, 2)),
    ],
)
def test_the_words_that_matched_are_known(query: str, line: str, places: tuple[int, ...] | None) -> None:
    assert matches(parse(query), "speech", line.split()) == places


def test_a_field_narrows_to_its_kind_also_when_negated() -> None:
    assert matches(parse("say:a"), "text", ["a"]) is None
    assert matches(parse("b -say:a"), "text", ["a", "b"]) == (1,)
    assert matches(parse("b -say:a"), "speech", ["a", "b"]) is None


@pytest.mark.parametrize(
    ("query", "line", "run"),
    [
        ("b", "a b c b", (1, 1)),
        ("a c", "a x x c a c", (3, 4)),
        ('"a b" c', "c x a b x a b c", (5, 7)),
        ("z OR b", "a b", (1, 1)),
        ("b -a", "a b", None),
        ("z", "a b", None),
    ],
)
def test_the_tightest_run_holds_all_that_is_looked_for(query: str, line: str, run: tuple[int, int] | None) -> None:
    assert tightest(parse(query), "speech", line.split()) == run
