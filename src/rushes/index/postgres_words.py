"""Words and queries in the language of PostgreSQL's text search; every word is quoted, so that none can be syntax."""

from collections.abc import Iterator
from dataclasses import dataclass

from rushes.index.query import Clause, Query, Term

_FARTHEST = 16_383  # positions beyond are not kept apart by PostgreSQL


@dataclass(frozen=True, slots=True)
class Sought:
    """One term of a query, to be counted in lines."""

    said: tuple[str, ...]
    prefix: bool
    query: str


def vector(kind: str, words: list[str]) -> str:
    """A line's words with their places, and its kind as a word that nobody can say."""
    places: dict[str, list[str]] = {}
    for place, word in enumerate(words, 1):
        places.setdefault(word, []).append(str(min(place, _FARTHEST)))
    said = (f"{_quoted(word)}:{','.join(at)}" for word, at in places.items())
    return " ".join([_quoted(f"={kind}"), *said])


def expression(query: Query) -> str:
    """The query as a whole."""
    return " | ".join(_clause(clause) for clause in query.clauses)


def sought(query: Query) -> Iterator[Sought]:
    """Its terms, one by one."""
    for clause in query.clauses:
        for term in (*clause.must, *clause.never):
            yield Sought(term.words, term.prefix, _said(term))


def _clause(clause: Clause) -> str:
    must = " & ".join(_term(term) for term in clause.must)
    never = "".join(f" & !{_term(term)}" for term in clause.never)
    return f"({must}{never})"


def _term(term: Term) -> str:
    kinds = " | ".join(_quoted(f"={kind}") for kind in term.kinds)
    return f"(({kinds}) & ({_said(term)}))" if kinds else f"({_said(term)})"


def _said(term: Term) -> str:
    return " <-> ".join(map(_quoted, term.words)) + (":*" if term.prefix else "")


def _quoted(word: str) -> str:
    return "'" + word.replace("\\", "\\\\").replace("'", "''") + "'"
