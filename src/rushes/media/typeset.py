"""Typesetting of subtitles: which words share a line, by width and by sense."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

WIDTH = 42  # columns of a line; a character of a wide script takes two

_SENTENCE = re.compile(r"[.!?。！？…][\"'”’»)\]]*$")  # noqa: RUF001 - other scripts
_COMMA = re.compile(r"[,;:、，；：—–][\"'”’»)\]]*$")  # noqa: RUF001 - other scripts
# Articles, prepositions and the like belong to the word that follows
_CLINGS = frozenset(
    re.findall(
        r"\w+",
        """a an the of to in on at by for from with into onto over under about as than my your his her its
        our their this that these those no not very der die das den dem des ein eine einen einem einer
        eines zu im am vom zum zur von mit für auf aus bei nach über unter um kein keine le la les un une
        du de à au aux en dans pour par sur ce cette mon ma son sa el los las una del al con por para su
        lo gli il i di da nel nella della dei che se o os uma do na het een van op mr mrs ms dr prof st""",
    )
)
_BEGINS = frozenset(
    re.findall(r"\w+", "and but or because that which who when while if und aber oder weil dass et mais y")
)


@dataclass(frozen=True, slots=True)
class Token:
    """A word as it is set: its text, whether a space stands before it, and when it is said (ms)."""

    text: str
    space: bool
    start: int
    end: int


def width(text: str) -> int:
    """Columns that a text takes."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def joined(tokens: Sequence[Token]) -> str:
    """The text of tokens on one line."""
    return "".join((" " if t.space and n else "") + t.text for n, t in enumerate(tokens))


def layout(tokens: Sequence[Token]) -> tuple[str, ...] | None:
    """One line, or two that are well balanced; None if they do not fit."""
    whole = joined(tokens)
    if width(whole) <= WIDTH:
        return (whole,)
    pairs = [(joined(tokens[:n]), joined(tokens[n:]), n) for n in range(1, len(tokens))]
    fitting = [p for p in pairs if width(p[0]) <= WIDTH and width(p[1]) <= WIDTH]
    if not fitting:
        return None
    above, below, _ = min(fitting, key=lambda p: abs(width(p[0]) - width(p[1])) / WIDTH + strain(tokens, p[2]))
    return above, below


def strain(tokens: Sequence[Token], at: int) -> float:
    """How much a break before token `at` hurts the sense; below zero where it helps."""
    before, after = tokens[at - 1].text, tokens[at].text
    if _SENTENCE.search(before):
        return -0.8
    if _COMMA.search(before):
        return -0.5
    if before.casefold().strip(".'\"“‘") in _CLINGS:  # noqa: RUF001 - quotation marks
        return 0.5
    return -0.2 if after.casefold() in _BEGINS else 0.0
