"""From a line that matched to a hit: the exact range of its words, and pieces of text that are safe to show."""

from collections.abc import Iterator, Sequence

from rushes.domain.observation import Observation
from rushes.domain.span import Span
from rushes.index.port import Hit, Piece
from rushes.index.query import Query, matches, tightest
from rushes.index.words import Token, safe, tokens


def hit(query: Query, line: Observation, video: str, name: str, score: float) -> Hit:
    """The hit of a query in a line that matches it."""
    found = tokens(line.text)
    words = [token.word for token in found]
    places = matches(query, line.kind, words) or ()
    near = tightest(query, line.kind, words)
    return Hit(
        video=video,
        name=name,
        kind=line.kind,
        span=_range(line, found[near[0] : near[1] + 1] if near else ()),
        line=line.span,
        pieces=tuple(_pieces(line.text, found, places)),
        score=score,
        language=line.language,
        confidence=line.confidence,
    )


def _range(line: Observation, matched: Sequence[Token]) -> Span:
    """From the first to the last of these words; the whole line where words have no times of their own."""
    spans = [
        (start, end)
        for start, end, first, last in _timed(line)
        if any(first < token.end and token.start < last for token in matched)
    ]
    if not spans:
        return line.span
    start, end = min(s for s, _ in spans), max(e for _, e in spans)
    return Span(start, end, line.span.base) if start < end else line.span


def _timed(line: Observation) -> Iterator[tuple[int, int, int, int]]:
    """Each word's times, and where it stands in the text: found one after the other, whatever lies between."""
    at = 0
    for word, start, end, _ in line.words:
        bare = word.strip()
        first = line.text.find(bare, at) if bare else -1
        if first >= 0:
            at = first + len(bare)
            yield start, end, first, at


def _pieces(text: str, found: Sequence[Token], places: Sequence[int]) -> Iterator[Piece]:
    at = 0
    for first, last in _stretches(places):
        start, end = found[first].start, found[last].end
        if at < start:
            yield safe(text[at:start]), False
        if at < end:
            yield safe(text[max(at, start) : end]), True
        at = max(at, end)
    if at < len(text) or not text:
        yield safe(text[at:]), False


def _stretches(places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Neighbours are one stretch."""
    first = last = None
    for place in places:
        if last is None or place > last + 1:
            if first is not None and last is not None:
                yield first, last
            first = place
        last = place
    if first is not None and last is not None:
        yield first, last
