"""The search grammar: words, "phrases", prefix*, -not, OR and fields; any text is a query, none is an error.

A query is clauses joined by OR; within a clause every term must be there. Fields narrow a term to kinds of observation.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from rushes.index.words import words

FIELDS = {"say": ("speech",)}
MOST_WORDS = 32
MOST_CHARACTERS = 20_000

_QUOTES = str.maketrans(dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb\uff02", '"'))
_PART = re.compile(
    r"(?P<head>-?(?:(?P<field>[A-Za-z]+):)?)"
    r'(?:"(?P<phrase>[^"]*)(?:"|\Z)|(?P<plain>[^\s"]+))(?P<star>\*?)'
)


@dataclass(frozen=True, slots=True)
class Term:
    """Words that follow each other; the last may be only a beginning. `kinds` empty means any kind."""

    words: tuple[str, ...]
    prefix: bool = False
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Clause:
    """Terms that must all be in a line, and terms that must not."""

    must: tuple[Term, ...]
    never: tuple[Term, ...] = ()


@dataclass(frozen=True, slots=True)
class Query:
    """What is looked for; no clause finds nothing, and the note says why."""

    clauses: tuple[Clause, ...]
    note: str = ""


Signed = tuple[Term | None, bool]  # a term and whether it is negated; None stands for OR


def parse(text: str) -> Query:
    """The query that a text means. Never raises."""
    found = list(_terms(text[:MOST_CHARACTERS]))
    kept = list(_within_limit(found))
    clauses = []
    for joined, part in groupby(kept, key=lambda pair: pair[0] is None):
        terms = [] if joined else [(term, negated) for term, negated in part if term]
        must = tuple(term for term, negated in terms if not negated)
        if must:
            clauses.append(Clause(must, tuple(term for term, negated in terms if negated)))
    cut = kept != found or len(text) > MOST_CHARACTERS
    return Query(tuple(clauses), _note(clauses, asked=any(term for term, _ in found), cut=cut))


def matches(query: Query, kind: str, line: Sequence[str]) -> tuple[int, ...] | None:
    """Which words of a line a query means, None if the line is no hit: what every backend must find."""
    hit: set[int] = set()
    found = False
    for clause in query.clauses:
        must = [_places(term, kind, line) for term in clause.must]
        if all(must) and not any(_places(term, kind, line) for term in clause.never):
            found = True
            hit.update(*must)
    return tuple(sorted(hit)) if found else None


def tightest(query: Query, kind: str, line: Sequence[str]) -> tuple[int, int] | None:
    """The shortest run of words (first, last) that holds all that one clause looks for; the earliest of equals."""
    best: tuple[int, int, int] | None = None
    for clause in query.clauses:
        if any(_runs(term, kind, line) for term in clause.never):
            continue
        runs = [_runs(term, kind, line) for term in clause.must]
        starts = sorted({first for found in runs for first, _ in found})
        for start in starts if all(runs) else ():
            ends = [min((last for first, last in found if first >= start), default=-1) for found in runs]
            if min(ends) >= 0:
                here = (max(ends) - start, start, max(ends))
                best = here if best is None else min(best, here)
    return best[1:] if best else None


def _places(term: Term, kind: str, line: Sequence[str]) -> set[int]:
    return {at for first, last in _runs(term, kind, line) for at in range(first, last + 1)}


def _runs(term: Term, kind: str, line: Sequence[str]) -> list[tuple[int, int]]:
    """Where a term stands: first and last word of each occurrence."""
    if term.kinds and kind not in term.kinds:
        return []
    size = len(term.words)
    return [(at, at + size - 1) for at in range(len(line) - size + 1) if _here(term, line[at : at + size])]


def _here(term: Term, part: Sequence[str]) -> bool:
    *first, last = term.words
    return list(part[:-1]) == first and (part[-1].startswith(last) if term.prefix else part[-1] == last)


def _within_limit(found: Sequence[Signed]) -> Iterator[Signed]:
    left = MOST_WORDS
    for term, negated in found:
        if term is None or len(term.words) <= left:
            yield term, negated
        elif left:
            yield Term(term.words[:left], kinds=term.kinds), negated
        left = left if term is None else max(0, left - len(term.words))


def _terms(text: str) -> Iterator[Signed]:
    for part in _PART.finditer(text.translate(_QUOTES)):
        if part["plain"] in {"OR", "|"} and not part["head"]:
            yield None, False
        elif part["head"] or part["plain"] != "AND":
            term = _term(part)
            if term.words:
                yield term, part["head"].startswith("-")


def _term(part: re.Match[str]) -> Term:
    field, body = (part["field"] or "").lower(), part["phrase"] if part["phrase"] is not None else part["plain"]
    kinds = FIELDS.get(field, ())
    said = tuple(words(body if kinds else f"{field} {body}"))
    prefix = bool(part["star"]) or (part["phrase"] is None and body.endswith("*"))
    return Term(said, prefix, kinds)


def _note(clauses: Sequence[Clause], *, asked: bool, cut: bool) -> str:
    if clauses:
        return f"only the first {MOST_WORDS} words were searched" if cut else ""
    return "say what to look for, not only what to leave out" if asked else "no words to look for"
