"""Words of the library: completions of a typed word, and similar words for one that is not found."""

import difflib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from rushes.index.tokenizer import words

VIDEOS = 20  # the newest, whose words are read
SIMILAR = 0.75  # how similar two words must be, of 1
_WORD = re.compile(r"[^\W\d_]{3,}")

Vocabulary = Mapping[
    str, int
]  # words of at least three letters, folded as search folds them, with how often each occurs


def vocabulary(texts: Iterable[str]) -> Vocabulary:
    """The words of some lines."""
    return Counter(word for text in texts for word in words(text) if len(word) > 2 and not word.isdigit())


def completions(begun: str, known: Vocabulary, limit: int) -> list[str]:
    """Words that begin like this one, most frequent first."""
    (*_, start) = words(begun) or [""]
    found = [word for word in known if word.startswith(start) and word != start] if start else []
    return sorted(found, key=lambda word: (-known[word], word))[:limit]


def similar_query(query: str, known: Vocabulary, finds: Callable[[str], bool]) -> str:
    """The query with words that do not occur replaced by similar ones that do, if that finds something, else ""."""
    like = {word: _closest(word, known) for word in _WORD.findall(query)}
    if not any(like.values()):
        return ""
    replaced = _WORD.sub(lambda found: like[found[0]] or found[0], query)
    return replaced if finds(replaced) else ""


def _closest(word: str, known: Vocabulary) -> str:
    folded = "".join(words(word))
    if folded in known:
        return ""
    near = [w for w in known if abs(len(w) - len(folded)) < 3]
    return next(iter(difflib.get_close_matches(folded, near, 1, SIMILAR)), "")
