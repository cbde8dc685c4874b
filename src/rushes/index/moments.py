"""Moments: what is searched, made of a video's observations of one kind. Pure, so that every backend finds the same.

What is said goes on into the next line until its sentence ends; what is seen in look after look is one moment.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from rushes.domain.observation import Observation
from rushes.domain.span import Span, to_us
from rushes.index.words import Token, safe, tokens

VERSION = 1  # other moments for the same observations: the index is made anew
SEEN = frozenset({"object", "place", "person"})  # one row for each look
SPEECH = "speech"

_PAUSE = Fraction(2)  # seconds: a longer one ends a line, and so a sentence
_SENTENCE = Fraction(30)  # seconds: without stops nothing says where a sentence ends
_AHEAD = 15  # words: longer phrases do not go on into the next line
_GAP = Fraction(3, 2)  # seconds: looks are one apart, and a thing may be overlooked in one
_STOP = re.compile(r"[.!?。！？…][\"'”’»)\]]*\s*$")  # noqa: RUF001 - other scripts


@dataclass(frozen=True, slots=True)
class Moment:
    """A stretch of one kind with its words: its own, and those with which its sentence goes on.

    `times` is JSON: how many words are its own, the time base, its start and end, and the ticks of each word (or none).
    """

    kind: str
    start_us: int
    end_us: int
    until_us: int  # the end of its sentence
    language: str
    confidence: float
    text: str
    words: str
    times: str


def moments(lines: Sequence[Observation]) -> Iterator[Moment]:
    """The moments of a video's observations of one kind, given in order of time; what has no words is none."""
    for group in _groups([_safe(line) for line in lines]):
        found = [(line, tokens(line.text)) for line in group]
        for n, (line, own) in enumerate(found):
            if own:
                ahead = [(other, t) for other, some in found[n + 1 :] for t in some][:_AHEAD]
                yield _moment(line, own, ahead, group[-1].span.end_us)


def _safe(line: Observation) -> Observation:
    """What can be kept and shown anywhere."""
    said = tuple((safe(text), start, end, sure) for text, start, end, sure in line.words)
    return replace(line, text=safe(line.text), words=said, language=safe(line.language))


def _groups(lines: Sequence[Observation]) -> Iterator[list[Observation]]:
    if lines and lines[0].kind in SEEN:
        yield from ([run] for run in ranges(lines))
        return
    group: list[Observation] = []
    for line in lines:
        if group and not _goes_on(group, line):
            yield group
            group = []
        group.append(line)
    if group:
        yield group


def _goes_on(sentence: Sequence[Observation], line: Observation) -> bool:
    """Whether a line goes on with a sentence: speech, no stop, no pause, one language, not for ever."""
    last = sentence[-1]
    if line.kind != SPEECH or _STOP.search(last.text) or last.language != line.language:
        return False
    gap = line.span.start * line.span.base - last.span.end * last.span.base
    whole = line.span.end * line.span.base - sentence[0].span.start * sentence[0].span.base
    return 0 <= gap <= _PAUSE and whole <= _SENTENCE


def ranges(lines: Sequence[Observation]) -> list[Observation]:
    """Looks at the same thing, one after the other, as one; as sure as its surest look."""
    open_: dict[str, Observation] = {}
    made: list[Observation] = []
    for line in lines:
        last = open_.get(line.text)
        if last and line.span.base == last.span.base and (line.span.start - last.span.end) * line.span.base <= _GAP:
            span = Span(last.span.start, max(last.span.end, line.span.end), line.span.base)
            open_[line.text] = Observation(line.kind, span, line.text, max(last.confidence, line.confidence))
        else:
            made += [last] if last else []
            open_[line.text] = line
    return sorted([*made, *open_.values()], key=lambda o: (o.span.start_us, o.span.end_us, o.text))


def _moment(line: Observation, own: Sequence[Token], ahead: Sequence[tuple[Observation, Token]], until: int) -> Moment:
    base = line.span.base
    ticks = _ticks(line, own)
    if ticks and ahead:
        ticks += [
            t for other, token in ahead for t in _rescaled(_ticks(other, [token]) or [*_ends(other)], other, base)
        ]
    head = [len(own), base.numerator, base.denominator, line.span.start, line.span.end]
    return Moment(
        kind=line.kind,
        start_us=line.span.start_us,
        end_us=line.span.end_us,
        until_us=max(until, line.span.end_us),
        language=line.language,
        confidence=line.confidence,
        text=line.text,
        words=" ".join([t.word for t in own] + [t.word for _, t in ahead]),
        times=json.dumps([*head, ticks], separators=(",", ":")),
    )


def _ticks(line: Observation, found: Sequence[Token]) -> list[int]:
    """Start and end of each word, none if its words have no times; a word is timed by all it shares letters with."""
    timed = list(_timed(line))
    if not timed:
        return []
    out: list[int] = []
    for token in found:
        spans = [(a, b) for a, b, first, last in timed if first < token.end and token.start < last]
        start, end = (min(a for a, _ in spans), max(b for _, b in spans)) if spans else _ends(line)
        out += (start, end) if start < end else _ends(line)
    return out


def _ends(line: Observation) -> tuple[int, int]:
    return line.span.start, line.span.end


def _rescaled(ticks: Sequence[int], line: Observation, base: Fraction) -> list[int]:
    return [t if line.span.base == base else round(t * line.span.base / base) for t in ticks]


def _timed(line: Observation) -> Iterator[tuple[int, int, int, int]]:
    """Each word's times, and where it stands in the text: found one after the other, whatever lies between."""
    at = 0
    for word, start, end, _ in line.words:
        bare = word.strip()
        first = line.text.find(bare, at) if bare else -1
        if first >= 0:
            at = first + len(bare)
            yield start, end, first, at


@dataclass(frozen=True, slots=True)
class Times:
    """The times of a moment's words."""

    own: int
    line: Span
    ticks: tuple[int, ...]

    @staticmethod
    def from_text(text: str) -> "Times":
        """The inverse of what a moment keeps."""
        own, over, under, start, end, ticks = json.loads(text)
        return Times(own, Span(start, end, Fraction(over, under)), tuple(ticks))

    def of(self, first: int, last: int) -> Span:
        """From one word to another; the whole line where words have no times."""
        if not self.ticks:
            return self.line
        part = self.ticks[2 * first : 2 * last + 2]
        return Span(min(part[::2]), max(part[1::2]), self.line.base)


def in_us(span: Span) -> tuple[int, int]:
    """Start and end in microseconds, never empty."""
    start = to_us(span.start, span.base)
    return start, max(start + 1, to_us(span.end, span.base))
