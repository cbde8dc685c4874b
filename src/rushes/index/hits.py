"""From what was met to hits: range, pieces of text that are safe to show, score, order, pages and facets. Pure."""

import contextlib
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rushes.domain.keys import JSON
from rushes.index.near import Met, exact, occurrences
from rushes.index.places import cursor_of, place_of
from rushes.index.port import Hit, Matched, Piece, Shelved
from rushes.index.query import Term
from rushes.index.words import Token, safe, tokens

_LIBRARY = 1e6  # moments: how rare a word is does not depend on how many there are
_LINE = 12.0  # words of a usual line
_SATURATION, _LENGTH = 1.2, 0.75  # as in BM25
_MOST_FACETS = 20


def hit_of(met: Met, name: str, terms: Sequence[Term], counts: Mapping[Term, int]) -> Hit:
    """The hit that begins in a moment."""
    anchor = met.anchor
    parts = sorted(met.all, key=lambda o: (o.us, o.posting.kind, o.posting.id))
    places = {n for term in terms for o in occurrences(term, [anchor]) for n in range(o.first, o.last + 1)}
    return Hit(
        video=anchor.video,
        name=name,
        kind=anchor.kind,
        span=exact(met),
        line=next(o.times.line for o in met.all if o.posting is anchor),
        pieces=tuple(pieces(anchor.text, tokens(anchor.text), sorted(places))),
        score=_score(met, terms, counts),
        language=anchor.language,
        confidence=anchor.confidence,
        matched=tuple(dict.fromkeys(Matched(o.posting.kind, o.span, safe(o.posting.text)) for o in parts)),
    )


def joined(a: Hit, b: Hit) -> Hit:
    """Two clauses that begin in the same moment: the shorter range, all that is marked, the better score."""
    short, other = sorted((a, b), key=lambda h: (h.end_us - h.start_us, h.start_us, -h.score))
    return replace(short, score=max(a.score, b.score), pieces=tuple(_both(short.pieces, other.pieces)))


def _score(met: Met, terms: Sequence[Term], counts: Mapping[Term, int]) -> float:
    """Rare words count more, more often counts more, in a short line too."""
    total = 0.0
    for term, posting in dict.fromkeys((t, o.posting) for t, o in zip(terms, met.all, strict=True)):
        said = max(1, len(occurrences(term, [posting])))
        length = 1 - _LENGTH + _LENGTH * len(posting.words.split(" ")) / _LINE
        rare = math.log(1 + _LIBRARY / (counts.get(term, 0) + 0.5))
        total += rare * said * (_SATURATION + 1) / (said + _SATURATION * length)
    return round(total, 9)


def pieces(text: str, found: Sequence[Token], places: Sequence[int]) -> Iterator[Piece]:
    """A text in pieces, those of the words at these places marked."""
    at = 0
    for first, last in _stretches([p for p in places if p < len(found)]):
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


def _both(a: Sequence[Piece], b: Sequence[Piece]) -> Iterator[Piece]:
    """One text cut into pieces twice: marked where either is."""
    marks = [x or y for x, y in zip(_marks(a), _marks(b), strict=True)]
    text = "".join(part for part, _ in a)
    start = 0
    for at in range(1, len(marks) + 1):
        if at == len(marks) or marks[at] != marks[start]:
            yield text[start:at], marks[start]
            start = at


def _marks(parts: Sequence[Piece]) -> list[bool]:
    return [marked for text, marked in parts for _ in text]


@dataclass(frozen=True, slots=True)
class Order:
    """Best first, or as it was shot."""

    name: str
    shelf: Mapping[str, Shelved]

    def key(self, hit: Hit) -> tuple[JSON, ...]:
        """What hits are sorted by."""
        return (0.0 if self.name == "time" else -hit.score, *spot(hit, self.shelf))


def spot(hit: Hit, shelf: Mapping[str, Shelved]) -> tuple[JSON, ...]:
    """Where a hit lies in the library, in shooting order."""
    shot = shelf[hit.video].shot_at if hit.video in shelf else ""
    return shot, hit.video, hit.start_us, hit.end_us, hit.line.start_us, hit.line.end_us, hit.kind, hit.text


def page(hits: Sequence[Hit], order: Order, limit: int, cursor: str) -> tuple[Sequence[Hit], str]:
    """Up to `limit` sorted hits after a cursor, and the next cursor."""
    place = place_of(cursor, 9)
    with contextlib.suppress(TypeError):  # a cursor that is not ours begins at the beginning
        hits = [h for h in hits if place is None or order.key(h) > place]
    more = cursor_of(order.key(hits[limit - 1])) if len(hits) > limit else ""
    return hits[:limit], more


def facets(hits: Sequence[Hit], shelf: Mapping[str, Shelved]) -> dict[str, dict[str, int]]:
    """How many hits there are by kind, video, language and month, most first."""
    counted: dict[str, Counter[str]] = {"kind": Counter(), "video": Counter(), "language": Counter(), "date": Counter()}
    for hit in hits:
        counted["kind"][hit.kind] += 1
        counted["video"][hit.video] += 1
        counted["language"][hit.language] += bool(hit.language)
        counted["date"][shelf[hit.video].shot_at[:7] if hit.video in shelf else ""] += 1
    return {name: _most(some) for name, some in counted.items()}


def _most(some: Counter[str]) -> dict[str, int]:
    ordered = sorted(((k, n) for k, n in some.items() if k and n), key=lambda pair: (-pair[1], pair[0]))
    return dict(ordered[:_MOST_FACETS])
