"""From what was met to hits: range, pieces of text that are safe to show, score, order, pages and facets. Pure."""

import contextlib
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rushes.domain.keys import JSON
from rushes.index.cursors import cursor_of, place_of
from rushes.index.match import Met, exact, occurrences, times_said
from rushes.index.port import Hit, Matched, Piece, Posting, Shelved
from rushes.index.query import Term
from rushes.index.tokenizer import Token, safe, tokens

_LIBRARY = 1e6  # moments: how rare a word is does not depend on how many there are
_LINE = 12.0  # words of a usual line
_SATURATION, _LENGTH = 1.2, 0.75  # as in BM25
_MOST_FACETS = 20
_MEANING = 20.0  # what the same sentence counts: about as much as one rare word


@dataclass(frozen=True, slots=True)
class Rated:
    """What was met, how well it answers, and the terms to be marked in it; a hit is made of it when it is shown."""

    met: Met
    score: float
    terms: tuple[Term, ...]

    def joined(self, other: "Rated") -> "Rated":
        """Two clauses that begin in the same moment: the shorter range, all that is marked, the better score."""
        short = min(self, other, key=lambda r: (r.met.rank, -r.score))
        return Rated(short.met, max(self.score, other.score), (*self.terms, *other.terms))


def rated(
    met: Met, terms: tuple[Term, ...], counts: Mapping[Term, int], alike: Mapping[Term, Mapping[Posting, float]]
) -> Rated:
    """Rare words count more, more often counts more, in a short line too; what means alike counts by how much."""
    total = 0.0
    for term, posting in dict.fromkeys((t, o.posting) for t, o in zip(terms, met.all, strict=True)):
        if term.about:
            total += _MEANING * alike[term][posting]
            continue
        said = max(1, times_said(term, posting))
        length = 1 - _LENGTH + _LENGTH * (posting.words.count(" ") + 1) / _LINE
        rare = math.log(1 + _LIBRARY / (counts.get(term, 0) + 0.5))
        total += rare * said * (_SATURATION + 1) / (said + _SATURATION * length)
    return Rated(met, round(total, 9), terms)


def hit_of(found: Rated, name: str) -> Hit:
    """The hit that begins in a moment."""
    met, anchor = found.met, found.met.anchor
    parts = sorted(met.all, key=lambda o: (o.us, o.posting.kind, o.posting.id))
    places = {n for term in found.terms for o in occurrences(term, [anchor]) for n in range(o.first, o.last + 1)}
    return Hit(
        video=anchor.video,
        name=name,
        kind=anchor.kind,
        span=exact(met),
        line=next(o.times.line for o in met.all if o.posting is anchor),
        pieces=tuple(pieces(anchor.text, tokens(anchor.text), sorted(places))),
        score=found.score,
        language=anchor.language,
        confidence=anchor.confidence,
        matched=tuple(dict.fromkeys(Matched(o.posting.kind, o.span, safe(o.posting.text)) for o in parts)),
    )


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


@dataclass(frozen=True, slots=True)
class Order:
    """Best first, or as it was shot."""

    name: str
    shelf: Mapping[str, Shelved]

    def key(self, found: Rated) -> tuple[JSON, ...]:
        """What is sorted by: also where two would be equal, so that pages are the same every time."""
        anchor = found.met.anchor
        more = (found.met.us[1], anchor.start_us, anchor.end_us, anchor.kind, anchor.text)
        return (0.0 if self.name == "time" else -found.score, *self.place(anchor.video, found.met.us[0]), *more)

    def place(self, video: str, at_us: int) -> tuple[str, str, int]:
        """Where a moment lies in the library, in shooting order."""
        return self.shelf[video].shot_at if video in self.shelf else "", video, at_us


def page(found: Sequence[Rated], order: Order, limit: int, cursor: str) -> tuple[Sequence[Rated], str]:
    """Up to `limit` of what is sorted after a cursor, and the next cursor."""
    place = place_of(cursor, 9)
    with contextlib.suppress(TypeError):  # a cursor that is not ours begins at the beginning
        found = [f for f in found if place is None or order.key(f) > place]
    more = cursor_of(order.key(found[limit - 1])) if len(found) > limit else ""
    return found[:limit], more


def facets(found: Sequence[Rated], shelf: Mapping[str, Shelved]) -> dict[str, dict[str, int]]:
    """How many hits there are by kind, video, language and month, most first."""
    counted: dict[str, Counter[str]] = {"kind": Counter(), "video": Counter(), "language": Counter(), "date": Counter()}
    for hit in (f.met.anchor for f in found):
        counted["kind"][hit.kind] += 1
        counted["video"][hit.video] += 1
        counted["language"][hit.language] += bool(hit.language)
        counted["date"][shelf[hit.video].shot_at[:7] if hit.video in shelf else ""] += 1
    return {name: _most(some) for name, some in counted.items()}


def _most(some: Counter[str]) -> dict[str, int]:
    ordered = sorted(((k, n) for k, n in some.items() if k and n), key=lambda pair: (-pair[1], pair[0]))
    return dict(ordered[:_MOST_FACETS])
