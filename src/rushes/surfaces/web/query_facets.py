"""A query read back as a sentence, and its filters as facets that are put in and taken out of the box."""

from collections.abc import Iterator

from rushes.library.search import Clause, Filter, Term, parse

VERBS = {"speech": "said", "text": "written", "object": "seen", "person": "in the picture", "place": "filmed at",
         "entity": "mentioned"}  # fmt: skip
LINKS = {"near": "within {0:g} s of", "before": "at most {0:g} s before", "during": "while"}
FILTERS = {"in": "in videos called", "lang": "in the language", "date": "shot"}


def read_back(query: str) -> str:
    """What is looked for, in words."""
    return "; or ".join(_clause(clause) for clause in parse(query).clauses)


def words_of(query: str) -> str:
    """Only the words, each for itself: what is looked for when nothing else is found."""
    terms = [term for clause in parse(query).clauses for term in clause.terms]
    return " ".join(dict.fromkeys(word for term in terms for word in (term.sentence.split() or term.words)))


def toggle(query: str, token: str) -> str:
    """The query with a filter put in, or taken out if it is there."""
    parts = query.split()
    return " ".join([p for p in parts if p != token] if token in parts else [*parts, token])


def _clause(clause: Clause) -> str:
    parts = [" and ".join(_term(t) for t in group) for group in clause.groups]
    for n, link in enumerate(clause.links):
        parts[n] += " " + LINKS[link.name].format(link.within_us / 1e6)
    return " ".join([" ".join(parts), *_asides(clause)])


def _asides(clause: Clause) -> Iterator[str]:
    for term in clause.never:
        yield f"without {_term(term)}"
    for narrow in clause.filters:
        yield _filter(narrow)


def _filter(narrow: Filter) -> str:
    return f"{'not ' if narrow.negated else ''}{FILTERS.get(narrow.name, narrow.name)} {narrow.value}"


def _term(term: Term) -> str:
    words = f"\u201c{' '.join(term.words)}\u201d"
    text = f"anything similar to \u201c{term.sentence}\u201d" if term.sentence else words
    text = "anything" if not term.words and not term.sentence else text + ("\u2026" if term.prefix else "")
    verbs = " or ".join(VERBS[kind] for kind in term.kinds if kind in VERBS)
    return f"{text} {verbs}" if verbs else text
