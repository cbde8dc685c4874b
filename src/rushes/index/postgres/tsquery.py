"""Words and queries in the language of PostgreSQL's text search; every word is quoted, so that none can be syntax."""

from rushes.index.query import Term

_FARTHEST = 16_383  # positions beyond are not kept apart by PostgreSQL


def tsvector(kind: str, words: list[str]) -> str:
    """A line's words with their positions, and its kind as a word that nobody can say."""
    positions: dict[str, list[str]] = {}
    for position, word in enumerate(words, 1):
        positions.setdefault(word, []).append(str(min(position, _FARTHEST)))
    said = (f"{_quoted(word)}:{','.join(at)}" for word, at in positions.items())
    return " ".join([_quoted(f"={kind}"), *said])


def tsquery(term: Term) -> str:
    """A term, among the kinds that it looks at."""
    kinds = " | ".join(_quoted(f"={kind}") for kind in term.kinds)
    return f"(({kinds}) & ({_followed(term)}))" if kinds else f"({_followed(term)})"


def _followed(term: Term) -> str:
    return " <-> ".join(map(_quoted, term.words)) + (":*" if term.prefix else "")


def _quoted(word: str) -> str:
    return "'" + word.replace("\\", "\\\\").replace("'", "''") + "'"
