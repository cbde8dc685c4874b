"""Passages: the searchable text made from a video's observations of one kind. Pure, the same for every backend.

What is said goes on into the next line until its sentence ends; what is seen in sample after sample is one passage.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice

from rushes.domain.observation import Observation
from rushes.domain.span import Span, to_us
from rushes.index.query import PICTURE
from rushes.index.tokenizer import Token, safe, tokens

VERSION = 2  # other passages for the same observations: the index is built again
VISUAL_KINDS = frozenset({"object", "place", "person"})  # one row for each sampled frame
SPEECH = "speech"

_PAUSE = Fraction(2)  # seconds: a longer one ends a line, and so a sentence
_SENTENCE = Fraction(30)  # seconds: without stops nothing says where a sentence ends
_AHEAD = 15  # words: longer phrases do not go on into the next line
_GAP = Fraction(3, 2)  # seconds: looks are one apart, and a thing may be overlooked in one
_STOP = re.compile(r"[.!?。！？…][\"'”’»)\]]*\s*$")  # noqa: RUF001 - other scripts
_Timed = tuple[int, int, int, int]  # a word's start and end in time, then in the text


@dataclass(frozen=True, slots=True)
class Passage:
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


def passages(lines: Sequence[Observation]) -> Iterator[Passage]:
    """The passages of a video's observations of one kind, given in order of time; what has no words is none."""
    if lines and lines[0].kind == PICTURE:
        yield from (_of_picture(line) for line in lines if "embedding" in line.extra)
        return
    for group in _groups([_safe(line) for line in lines if not is_unknown(line)]):
        found = [said for line in group if (said := _said(line)).own]
        for n, said in enumerate(found):
            yield _passage(said, _ahead(found, n), group[-1].span.end_us)


def _of_picture(line: Observation) -> Passage:
    """What a frame shows, as its embedding with the model that made it: it has no words."""
    text = f"{line.extra.get('model', '')} {line.extra['embedding']}"
    return _passage(_Said(replace(line, text=safe(text), words=()), (), ()), (), line.span.end_us)


def is_unknown(line: Observation) -> bool:
    """Whether it says that no place was recognised: nothing to find."""
    return line.kind == "place" and line.text == "unknown"


@dataclass(frozen=True, slots=True)
class _Said:
    """A line, its words, and start and end of each (none if they have no times)."""

    line: Observation
    own: Sequence[Token]
    ticks: Sequence[tuple[int, int]]


def _said(line: Observation) -> _Said:
    own = tokens(line.text)
    return _Said(line, own, _ticks(line, own))


def _ahead(found: Sequence[_Said], n: int) -> list[tuple[_Said, int]]:
    """The words after a line, each by its line and its position there."""
    later = (found[at] for at in range(n + 1, len(found)))
    return list(islice(((said, at) for said in later for at in range(len(said.own))), _AHEAD))


def _safe(line: Observation) -> Observation:
    """What can be kept and shown anywhere."""
    said = tuple((safe(text), start, end, sure) for text, start, end, sure in line.words)
    return replace(line, text=safe(line.text), words=said, language=safe(line.language))


def _groups(lines: Sequence[Observation]) -> Iterator[list[Observation]]:
    if lines and lines[0].kind in VISUAL_KINDS:
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
    """Whether a line goes on with a sentence: speech, no full stop, no pause, one language, up to a limit."""
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


def _passage(said: _Said, ahead: Sequence[tuple[_Said, int]], until: int) -> Passage:
    line, base = said.line, said.line.span.base
    ticks = [tick for pair in said.ticks for tick in pair]
    if ticks:
        ticks += [tick for other, at in ahead for tick in _rescaled(other, at, base)]
    head = [len(said.own), base.numerator, base.denominator, line.span.start, line.span.end]
    return Passage(
        kind=line.kind,
        start_us=line.span.start_us,
        end_us=line.span.end_us,
        until_us=max(until, line.span.end_us),
        language=line.language,
        confidence=line.confidence,
        text=line.text,
        words=" ".join([t.word for t in said.own] + [other.own[at].word for other, at in ahead]),
        times=json.dumps([*head, ticks], separators=(",", ":")),
    )


def _ticks(line: Observation, found: Sequence[Token]) -> list[tuple[int, int]]:
    """Start and end of each word, none if its words have no times; a word is timed by all it shares letters with."""
    timed = list(_timed(line))
    ends = [end for *_, end in timed]  # where each ends in the text, in order: none is looked at for every word
    return [_tick(line, token, timed, bisect_right(ends, token.start)) for token in found] if timed else []


def _tick(line: Observation, token: Token, timed: Sequence[_Timed], at: int) -> tuple[int, int]:
    spans: list[tuple[int, int]] = []
    while at < len(timed) and timed[at][2] < token.end:
        spans.append(timed[at][:2])
        at += 1
    start, end = (min(a for a, _ in spans), max(b for _, b in spans)) if spans else _ends(line)
    return (start, end) if start < end else _ends(line)


def _ends(line: Observation) -> tuple[int, int]:
    return line.span.start, line.span.end


def _rescaled(said: _Said, at: int, base: Fraction) -> list[int]:
    span = said.line.span
    ticks = said.ticks[at] if said.ticks else _ends(said.line)
    return [t if span.base == base else round(t * span.base / base) for t in ticks]


def _timed(line: Observation) -> Iterator[_Timed]:
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
    """The times of a passage's words."""

    own: int
    line: Span
    ticks: tuple[int, ...]

    @staticmethod
    def from_text(text: str) -> "Times":
        """The inverse of what a passage keeps."""
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
