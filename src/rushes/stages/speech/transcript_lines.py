"""Transcript lines: words split at sentences and pauses, one observation each, in ticks of 1/16000 s."""

import re
from collections.abc import Iterable, Sequence
from fractions import Fraction

from rushes.domain.observation import Observation
from rushes.domain.span import Span
from rushes.engines.port import RATE, Word

BASE = Fraction(1, RATE)
MAX_PAUSE = 2 * RATE  # speakers pause inside a sentence, and search finds phrases within a line
MAX_CHARACTERS = 160

_SENTENCE_END = re.compile(r"[.!?。！？…]+[\"'”’»)\]]*$")  # noqa: RUF001 - other scripts
_COMMA = re.compile(r"[,;:、，；：—–-]+[\"'”’»)\]]*$")  # noqa: RUF001 - other scripts
_ABBREVIATION = re.compile(
    r"^[\"'“‘«(\[]*(?:mr|mrs|ms|dr|prof|st|jr|sr|vs|etc|no|nr|bzw|ca|approx|fig|vol|[a-z]|(?:[a-z]\.)+[a-z])\.$",  # noqa: RUF001
    re.IGNORECASE,
)


def split_lines(words: Sequence[Word], language: str, *, doubtful: bool = False) -> list[Observation]:
    """Split words at sentence ends and pauses, and again above 160 characters."""
    return [_line(part, language, doubtful) for unit in _sentences(words) for part in _split_long(unit)]


def monotonic_words(words: Iterable[Word], start: int, end: int) -> list[Word]:
    """Words with increasing times inside a range, each at least 20 ms long where that is possible."""
    out: list[Word] = []
    at = start
    for word in words:
        first = min(max(word.start, at), end)
        at = min(max(word.end, first + RATE // 50), end)
        out.append(Word(word.text, first, at, word.confidence))
    return out


def _sentences(words: Sequence[Word]) -> list[list[Word]]:
    units: list[list[Word]] = []
    for n, word in enumerate(words):
        before = words[n - 1] if n else None
        if before is None or word.start - before.end > MAX_PAUSE or _ends_sentence(before.text, word.text):
            units.append([])
        units[-1].append(word)
    return units


def _ends_sentence(text: str, following: str) -> bool:
    """Whether a sentence ends with this word: a full stop, not of an abbreviation, and no lower case after it."""
    text, following = text.strip(), following.strip()
    return bool(_SENTENCE_END.search(text)) and not _ABBREVIATION.match(text) and not following[:1].islower()


def _split_long(words: list[Word]) -> list[list[Word]]:
    if len(_text(words)) <= MAX_CHARACTERS or len(words) == 1:
        return [words]
    at = min(range(1, len(words)), key=lambda n: _split_cost(words, n))
    return [*_split_long(words[:at]), *_split_long(words[at:])]


def _split_cost(words: Sequence[Word], at: int) -> float:
    """Cost of a split before word `at`: uneven halves cost, a comma or a pause is a bonus."""
    before, after = len(_text(words[:at])), len(_text(words[at:]))
    pause = (words[at].start - words[at - 1].end) / RATE
    comma = bool(_COMMA.search(words[at - 1].text))
    return abs(before - after) / (before + after) - 0.4 * comma - min(0.4, pause)


def _line(words: Sequence[Word], language: str, doubtful: bool) -> Observation:
    said = tuple((w.text.strip(), w.start, w.end, round(w.confidence, 3)) for w in words)
    return Observation(
        kind="speech",
        span=Span(words[0].start, words[-1].end, BASE),
        text=_text(words),
        confidence=round(sum(w.confidence for w in words) / len(words), 3),
        language=language,
        words=said,
        extra={"doubtful": True} if doubtful else {},
    )


def _text(words: Sequence[Word]) -> str:
    return re.sub(r"\s+", " ", "".join(w.text for w in words)).strip()
