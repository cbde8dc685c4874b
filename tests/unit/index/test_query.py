"""The grammar of search: what a text means, and that every text means something."""

from datetime import date

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rushes.index.grammar import BEFORE_US, FAR_US, MAX_WORDS, NEAR_US, parse
from rushes.index.query import Clause, Filter, Link, Query, Term
from rushes.index.tokenizer import words

TODAY = date(2026, 11, 18)  # a Wednesday
ODD = ['"', '"""', "a AND", "AND", "NEAR(", "NEAR(a b, 5)", "*", "**", "col:x", "-", "--", "- -", "OR", "OR OR", "|",
       "()", "a*b", "say:", "say:*", '-"', "{}", "^a", "a + b", "\0", "\ud800", "🎬", "x" * 10_000, "a " * 5_000,
       '"' * 9_999, "(" * 10_000, "-(" * 500 + "a b", "(a b) " * 400, "NOT NOT", "NOT OR a", "(a OR b) " * 40,
        ":", "::x", "'; DROP TABLE line; --", "-a -b"]  # fmt: skip


def _clause(must: str, *never: str) -> Clause:
    return Clause((tuple(Term((w,)) for w in must.split()),), never=tuple(Term((w,)) for w in never))


def _all(must: tuple[Term, ...], never: tuple[Term, ...] = ()) -> Clause:
    return Clause((must,), never=never)


@pytest.mark.parametrize(
    ("text", "clauses"),
    [
        ("ask not what", [_clause("ask not what")]),
        ("ask NOT what", [_clause("ask", "what")]),
        ("NOT what ask", [_clause("ask", "what")]),
        ("ask NOT", [_clause("ask not")]),
        ("(a OR b) c", [_clause("a c"), _clause("b c")]),
        ("c (a OR b)", [_clause("c a"), _clause("c b")]),
        ("(a (b OR c)) | d", [_clause("a b"), _clause("a c"), _clause("d")]),
        ("c -(a OR b)", [_clause("c", "a", "b")]),
        ("c NOT (a b)", [_clause("c", "a"), _clause("c", "b")]),
        ("a -(-b)", [_clause("a b")]),
        ("say:(a OR text:b)", [_all((Term(("a",), kinds=("speech",)),)), _all((Term(("b",), kinds=("text",)),))]),
        ("f(x)", [_all((Term(("f", "x")),))]),
        ("(f(x) OR b)", [_all((Term(("f", "x")),)), _clause("b")]),
        ('("a b" OR c)', [_all((Term(("a", "b")),)), _clause("c")]),
        ("object:cars", [_all((Term((w,), kinds=("object",)),)) for w in ("cars", "car")]),
        ("lorries", [_clause("lorries"), _all((Term(("truck",), kinds=("object",)),))]),
        ("country -city", [_clause("country", "city")]),
        ("a b OR c d", [_clause("a b"), _clause("c d")]),
        ("a | b", [_clause("a"), _clause("b")]),
        ("OR a OR OR b OR", [_clause("a"), _clause("b")]),
        ("a AND b", [_clause("a b")]),
        ("a or b", [_clause("a or b")]),
        ('"fellow Americans"', [_all((Term(("fellow", "americans")),))]),
        ("“typographic quotes”", [_all((Term(("typographic", "quotes")),))]),
        ('"never closed phrase', [_all((Term(("never", "closed", "phrase")),))]),
        ('a -"b c"', [_all((Term(("a",)),), (Term(("b", "c")),))]),
        ("wor*", [_all((Term(("wor",), prefix=True),))]),
        ('"new yor"*', [_all((Term(("new", "yor"), prefix=True),))]),
        ("don't well-known", [_all((Term(("don", "t")), Term(("well", "known"))))]),
        ("say:Été", [_all((Term(("ete",), kinds=("speech",)),))]),
        ('SAY:"two words" x', [_all((Term(("two", "words"), kinds=("speech",)), Term(("x",))))]),
        ("x -say:y*", [_all((Term(("x",)),), (Term(("y",), prefix=True, kinds=("speech",)),))]),
        ("日本", [_all((Term(("日", "本")),))]),
    ],
)
def test_a_query_means_what_people_expect(text: str, clauses: list[Clause]) -> None:
    assert parse(text) == Query(tuple(clauses))


@pytest.mark.parametrize("text", ODD)
def test_odd_input_is_plain_words(text: str) -> None:
    query = parse(text)
    assert query.clauses or query.note


@pytest.mark.parametrize("text", ["", "  ", "*", '"', "OR", "🎬"])
def test_nothing_to_look_for_is_said(text: str) -> None:
    assert parse(text) == Query((), "no words to search for")


@pytest.mark.parametrize("text", ["-a", "-a -b", '-"a b"', "-a OR -b"])
def test_only_negations_find_nothing_and_say_so(text: str) -> None:
    query = parse(text)
    assert not query.clauses
    assert "excludes words" in query.note


def test_a_clause_of_negations_does_not_spoil_the_others() -> None:
    assert parse("-a OR b").clauses == (_clause("b"),)


def test_too_many_words_are_cut_and_it_is_said() -> None:
    query = parse(" ".join(f"w{n}" for n in range(100)))
    assert sum(len(t.words) for c in query.clauses for t in c.terms) == MAX_WORDS
    assert "first 32 words" in query.note
    phrase = parse('"' + " ".join(f"w{n}" for n in range(100)) + '"')
    assert len(phrase.clauses[0].terms[0].words) == MAX_WORDS


@settings(deadline=None)
@given(st.text(max_size=80))
@example("\ud800 a")
def test_every_text_is_a_query(text: str) -> None:
    query = parse(text)
    assert query.clauses or query.note
    for clause in query.clauses:
        assert all(clause.groups)
        assert len(clause.links) == len(clause.groups) - 1


@pytest.mark.parametrize(
    ("text", "groups", "links"),
    [
        ("say:a before object:b", [["a"], ["b"]], [Link("before", BEFORE_US)]),
        ("say:a during text:b", [["a"], ["b"]], [Link("during")]),
        ("a near:5s b", [["a"], ["b"]], [Link("near", 5_000_000)]),
        ("a near:1.5 b", [["a"], ["b"]], [Link("near", 1_500_000)]),
        ("a near:500ms b NEAR c", [["a"], ["b"], ["c"]], [Link("near", 500_000), Link("near", NEAR_US)]),
        ("a near:2m say:b person:c", [["a"], ["b", "c"]], [Link("near", 120_000_000)]),
        ("a BEFORE b", [["a"], ["b"]], [Link("before", BEFORE_US)]),
        ("a before:10s b", [["a"], ["b"]], [Link("before", 10_000_000)]),
        ("a -x near:5s in:film b", [["a"], ["b"]], [Link("near", 5_000_000)]),
        ("the day before midnight", [["the", "day", "before", "midnight"]], []),
        ("say:the before midnight", [["the", "before", "midnight"]], []),
        ("near the river", [["near", "the", "river"]], []),
        ("near:5s", [["near", "5s"]], []),
        ("a near:5s", [["a", "near", "5s"]], []),
        ("a OR near:5s b", [["a"]], []),
        ("a near:999h b", [["a"], ["b"]], [Link("near", FAR_US)]),
    ],
)
def test_time_is_said_between_terms_and_nowhere_else(text: str, groups: list[list[str]], links: list[Link]) -> None:
    clause = parse(text).clauses[0]
    assert [[w for term in group for w in term.words] for group in clause.groups] == groups
    assert list(clause.links) == links


@pytest.mark.parametrize(
    ("text", "filters"),
    [
        ("a in:holiday", [Filter("in", "holiday")]),
        ('a in:"summer trip"', [Filter("in", "summer trip")]),
        ("a -lang:DE", [Filter("lang", "de", negated=True)]),
        ("a date:2024-05-07", [Filter("date", "2024-05-07..2024-05-07")]),
        ("a date:2024-02", [Filter("date", "2024-02-01..2024-02-29")]),
        ("a date:2024-01", [Filter("date", "2024-01-01..2024-01-31")]),
        ("a date:2024-12", [Filter("date", "2024-12-01..2024-12-31")]),
        ("a date:0001-01", [Filter("date", "0001-01-01..0001-01-31")]),
        ("a date:9999", [Filter("date", "9999-01-01..9999-12-31")]),
        ("a date:2024..2025-03", [Filter("date", "2024-01-01..2025-03-31")]),
        ("a date:..2025", [Filter("date", "..2025-12-31")]),
        ("a date:>2020", [Filter("date", "2021-01-01..")]),
        ("a date:>=2020-05", [Filter("date", "2020-05-01..")]),
        ("a date:<2020-03-01", [Filter("date", "..2020-02-29")]),
        ("a date:<=2020", [Filter("date", "..2020-12-31")]),
        ("a date:today", [Filter("date", "2026-11-18..2026-11-18")]),
        ("a date:yesterday..today", [Filter("date", "2026-11-17..2026-11-18")]),
        ('a date:"last week"', [Filter("date", "2026-11-09..2026-11-15")]),
        ("a date:last-month", [Filter("date", "2026-10-01..2026-10-31")]),
        ("a date:May-2024", [Filter("date", "2024-05-01..2024-05-31")]),
    ],
)
def test_filters_narrow_a_clause(text: str, filters: list[Filter]) -> None:
    (clause,) = parse(text, TODAY).clauses
    assert [t.words for t in clause.terms] == [("a",)]
    assert list(clause.filters) == filters


UNKNOWN = [
    "date:soon",
    "date:..",
    "date:2024-13",
    "date:2024-00",
    "date:0000",
    "date:>x",
    "lang:12",
    "kind:thing",
    "in:!",
    "date:20245",
    "foo:bar",
]


@pytest.mark.parametrize("text", UNKNOWN)
def test_what_is_not_understood_is_named_and_looked_for_as_words(text: str) -> None:
    query = parse(f"a {text}")
    assert text.split(":", maxsplit=1)[0] + ":" in query.note
    assert not query.clauses[0].filters
    assert [w for t in query.clauses[0].terms for w in t.words] == words(f"a {text}")


def test_a_kind_narrows_the_terms_that_have_none() -> None:
    (clause,) = parse("kind:text a say:b").clauses
    assert [t.kinds for t in clause.terms] == [("text",), ("speech",)]
    (clause,) = parse("-kind:text a").clauses
    assert not clause.terms[0].of("text")
    assert clause.terms[0].of("speech")


def test_entities_are_found_only_where_they_are_asked_for() -> None:
    assert not parse("a").clauses[0].terms[0].of("entity")
    assert parse("entity:a").clauses[0].terms[0].of("entity")
    assert parse("kind:entity a").clauses[0].terms[0].of("entity")


@pytest.mark.parametrize("text", ["object:*", "kind:object", "in:film", "lang:en"])
def test_a_filter_alone_means_everything_it_lets_through(text: str) -> None:
    (clause,) = parse(text).clauses
    assert [t.words for t in clause.terms] == [()]


@pytest.mark.parametrize("text", ["~what it costs", '~"what it costs"', "~what it costs OR x", "x in:y ~what it costs"])
def test_a_tilde_asks_for_what_means_alike(text: str) -> None:
    (term,) = (t for c in parse(text).clauses for t in c.terms if t.sentence)
    assert term.sentence == "what it costs"


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("(a b", "parenthesis is not closed"),
        ("objct:car", "Did you mean object:?"),
        ("say:a near: text:b", "near:5s"),
        ("near:soon b", "near:5s"),
        ("lang:english a", "lang:en"),
        ("date:whenever a", "yesterday"),
        ("kind:thing a", "speech"),
        ("(a OR b) " * 10, "first 32 ways"),
    ],
)
def test_the_note_says_what_would_be_understood(text: str, note: str) -> None:
    assert note in parse(text).note


@pytest.mark.parametrize("text", ["http://example.org/x", "12:30", "budget (draft)", "a :) b", "f(x)"])
def test_plain_text_that_looks_like_grammar_is_no_mistake(text: str) -> None:
    assert not parse(text).note


def test_shots_with_something_are_hits_of_the_shot() -> None:
    (clause,) = parse("kind:shot person:anna").clauses
    assert clause.groups == ((Term((), kinds=("shot",)),), (Term(("anna",), kinds=("person",)),))
    assert clause.links == (Link("with"),)
    assert not parse("anything").clauses[0].terms[0].of("shot")
