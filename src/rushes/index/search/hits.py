"""From matches to hits: range, safe text pieces, score, order, pages and facets. Pure."""

import contextlib
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from rushes.domain.keys import JSON
from rushes.domain.span import Span
from rushes.index.cursors import decode_cursor, encode_cursor
from rushes.index.port import CatalogEntry, Hit, MatchPart, Piece, Posting
from rushes.index.query import PICTURE, Term
from rushes.index.search.match import Match, exact, occurrences, term_frequency
from rushes.index.tokenizer import Token, safe, tokens

_DOCUMENTS = 1e6  # a constant: how rare a word is does not depend on how many passages there are
_AVERAGE_LENGTH = 12.0  # words of a usual passage
_K1, _B = 1.2, 0.75  # of BM25
_MOST_FACETS = 20
_SEMANTIC_WEIGHT = 20.0  # what the same sentence counts: about as much as one rare word


@dataclass(frozen=True, slots=True)
class ScoredMatch:
    """A match, how well it answers, and the terms to be marked in it; a hit is made of it when it is shown."""

    match: Match
    score: float
    terms: tuple[Term, ...]
    single: tuple[Term, ...]  # terms that are a clause by themselves: each occurrence of one is a moment to visit

    def joined(self, other: "ScoredMatch") -> "ScoredMatch":
        """Two clauses that begin in the same passage: the earlier range, all that is marked, the better score."""
        early = min(self, other, key=lambda r: (r.match.us, -r.score))
        terms, single = (*self.terms, *other.terms), (*self.single, *other.single)
        return ScoredMatch(early.match, max(self.score, other.score), terms, single)


def scored(
    match: Match, terms: tuple[Term, ...], counts: Mapping[Term, int], similar: Mapping[Term, Mapping[Posting, float]]
) -> ScoredMatch:
    """BM25 for words; what means alike counts by how much."""
    total = 0.0
    for term, posting in dict.fromkeys((t, o.posting) for t, o in zip(terms, match.all, strict=True)):
        if term.sentence:
            total += _SEMANTIC_WEIGHT * similar[term][posting]
            continue
        frequency = max(1, term_frequency(term, posting))
        length = 1 - _B + _B * (posting.words.count(" ") + 1) / _AVERAGE_LENGTH
        idf = math.log(1 + _DOCUMENTS / (counts.get(term, 0) + 0.5))
        total += idf * frequency * (_K1 + 1) / (frequency + _K1 * length)
    return ScoredMatch(match, round(total, 9), terms, terms if len(terms) == 1 else ())


def hit_of(found: ScoredMatch, name: str) -> Hit:
    """The hit that begins in a passage."""
    match, anchor = found.match, found.match.anchor
    parts = sorted(match.all, key=lambda o: (o.us, o.posting.kind, o.posting.id))
    positions = {n for term in found.terms for o in occurrences(term, [anchor]) for n in range(o.first, o.last + 1)}
    return Hit(
        video=anchor.video,
        name=name,
        kind=anchor.kind,
        span=exact(match),
        line=next(o.times.line for o in match.all if o.posting is anchor),
        pieces=tuple(pieces(_text(anchor), tokens(_text(anchor)), sorted(positions))),
        score=found.score,
        language=anchor.language,
        confidence=anchor.confidence,
        times=_times(found),
        matched=tuple(dict.fromkeys(MatchPart(o.posting.kind, o.span, safe(_text(o.posting))) for o in parts)),
    )


def _text(posting: Posting) -> str:
    """What is shown of a passage: a picture has no words."""
    return PICTURE if posting.kind == PICTURE else posting.text


def _times(found: ScoredMatch) -> tuple[Span, ...]:
    """The range of the hit, and every other occurrence in its line of a word that is a hit by itself, in order."""
    others = (o for term in found.single for o in occurrences(term, [found.match.anchor]))
    times = {o.us: o.span for o in others} | {found.match.us: exact(found.match)}
    return tuple(span for _, span in sorted(times.items()))


def pieces(text: str, found: Sequence[Token], positions: Sequence[int]) -> Iterator[Piece]:
    """A text in pieces, those of the words at these positions marked."""
    at = 0
    for first, last in _stretches([p for p in positions if p < len(found)]):
        start, end = found[first].start, found[last].end
        if at < start:
            yield safe(text[at:start]), False
        if at < end:
            yield safe(text[max(at, start) : end]), True
        at = max(at, end)
    if at < len(text) or not text:
        yield safe(text[at:]), False


def _stretches(positions: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Neighbours are one stretch: what they are ahead of their rank by is the same."""
    for _, run in groupby(enumerate(positions), key=lambda pair: pair[1] - pair[0]):
        some = [position for _, position in run]
        yield some[0], some[-1]


@dataclass(frozen=True, slots=True)
class Order:
    """Best first, or as it was shot."""

    name: str
    catalog: Mapping[str, CatalogEntry]

    def key(self, found: ScoredMatch) -> tuple[JSON, ...]:
        """What is sorted by: also where two would be equal, so that pages are the same every time."""
        anchor = found.match.anchor
        more = (found.match.us[1], anchor.start_us, anchor.end_us, anchor.kind, anchor.text)
        return (0.0 if self.name == "time" else -found.score, *self.position(anchor.video, found.match.us[0]), *more)

    def position(self, video: str, at_us: int) -> tuple[str, str, int]:
        """Where a moment lies in the library, in shooting order."""
        return self.catalog[video].shot_at if video in self.catalog else "", video, at_us


def page(found: Sequence[ScoredMatch], order: Order, limit: int, cursor: str) -> tuple[Sequence[ScoredMatch], str]:
    """Up to `limit` of what is sorted after a cursor, and the next cursor."""
    position = decode_cursor(cursor, 9)
    with contextlib.suppress(TypeError):  # a cursor that is not ours begins at the beginning
        found = [f for f in found if position is None or order.key(f) > position]
    more = encode_cursor(order.key(found[limit - 1])) if len(found) > limit else ""
    return found[:limit], more


def facets(found: Sequence[ScoredMatch], catalog: Mapping[str, CatalogEntry]) -> dict[str, dict[str, int]]:
    """How many hits there are by kind, video, language and month, most first."""
    counted: dict[str, Counter[str]] = {"kind": Counter(), "video": Counter(), "language": Counter(), "date": Counter()}
    for hit in (f.match.anchor for f in found):
        counted["kind"][hit.kind] += 1
        counted["video"][hit.video] += 1
        counted["language"][hit.language] += bool(hit.language)
        counted["date"][catalog[hit.video].shot_at[:7] if hit.video in catalog else ""] += 1
    return {name: _most(some) for name, some in counted.items()}


def _most(some: Counter[str]) -> dict[str, int]:
    ordered = sorted(((k, n) for k, n in some.items() if k and n), key=lambda pair: (-pair[1], pair[0]))
    return dict(ordered[:_MOST_FACETS])
