"""Line breaking of subtitles, by width and by syntax."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

MAX_COLUMNS = 42  # of a line; a wide character takes two

_SENTENCE = re.compile(r"[.!?。！？…][\"'”’»)\]]*$")  # noqa: RUF001 - other scripts
_COMMA = re.compile(r"[,;:、，；：—–][\"'”’»)\]]*$")  # noqa: RUF001 - other scripts
# Articles, prepositions and the like: no break after them
_PROCLITICS = frozenset(
    re.findall(
        r"\w+",
        """a an the of to in on at by for from with into onto over under about as than my your his her its
        our their this that these those no not very der die das den dem des ein eine einen einem einer
        eines zu im am vom zum zur von mit für auf aus bei nach über unter um kein keine le la les un une
        du de à au aux en dans pour par sur ce cette mon ma son sa el los las una del al con por para su
        lo gli il i di da nel nella della dei che se o os uma do na het een van op mr mrs ms dr prof st""",
    )
)
_CONJUNCTIONS = frozenset(
    re.findall(r"\w+", "and but or because that which who when while if und aber oder weil dass et mais y")
)


@dataclass(frozen=True, slots=True)
class TimedWord:
    """A word, whether a space precedes it, and when it is spoken, in ms."""

    text: str
    space: bool
    start: int
    end: int


def columns(text: str) -> int:
    """Columns of a text; a wide character takes two."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def join_words(words: Sequence[TimedWord]) -> str:
    """Words as one line."""
    return "".join((" " if t.space and n else "") + t.text for n, t in enumerate(words))


def break_lines(words: Sequence[TimedWord]) -> tuple[str, ...] | None:
    """One line, or two balanced ones; None if they do not fit."""
    whole = join_words(words)
    if columns(whole) <= MAX_COLUMNS:
        return (whole,)
    pairs = [(join_words(words[:n]), join_words(words[n:]), n) for n in range(1, len(words))]
    fitting = [p for p in pairs if columns(p[0]) <= MAX_COLUMNS and columns(p[1]) <= MAX_COLUMNS]
    if not fitting:
        return None
    above, below, _ = min(
        fitting, key=lambda p: abs(columns(p[0]) - columns(p[1])) / MAX_COLUMNS + break_cost(words, p[2])
    )
    return above, below


def break_cost(words: Sequence[TimedWord], at: int) -> float:
    """The cost of a break before word `at`; negative where a break is welcome."""
    before, after = words[at - 1].text, words[at].text
    if _SENTENCE.search(before):
        return -0.8
    if _COMMA.search(before):
        return -0.5
    if before.casefold().strip(".'\"“‘") in _PROCLITICS:  # noqa: RUF001 - quotation marks
        return 0.5
    return -0.2 if after.casefold() in _CONJUNCTIONS else 0.0
