"""What a query means, by brute force: every way to put its terms together is tried, with nothing but definitions."""

import json
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations, product
from typing import NamedTuple

from rushes.domain.observation import Observation
from rushes.domain.span import to_us
from rushes.index.passages import Passage, passages
from rushes.index.query import Clause, Link, Query, Term

Seen = tuple[str, str, int, str, int, int]  # video, kind, start of the line, its text, start and end of the hit
Range = tuple[int, int]


class Spot(NamedTuple):
    """A term in a moment of a video."""

    video: str
    moment: Passage
    at: Range

    @property
    def unit(self) -> Range:
        return self.moment.start_us, max(self.moment.until_us, self.moment.start_us + 1)

    @property
    def line(self) -> Range:
        return self.moment.start_us, max(self.moment.end_us, self.moment.start_us + 1)


def look(videos: Mapping[str, Sequence[Observation]], query: Query) -> set[Seen]:
    """Every hit of a query in some films."""
    best: dict[tuple[str, Passage], Range] = {}
    for video, lines in videos.items():
        for clause in query.clauses:
            for moment, at in _clause(clause, list(_moments(lines)), video).items():
                old = best.get((video, moment))
                best[video, moment] = min(filter(None, [old, at]))
    return {(v, m.kind, m.start_us, m.text, *at) for (v, m), at in best.items()}


def _moments(lines: Sequence[Observation]) -> Iterator[Passage]:
    for kind in {line.kind for line in lines}:
        yield from passages(
            sorted((o for o in lines if o.kind == kind), key=lambda o: (o.span.start_us, o.span.end_us))
        )


def _clause(clause: Clause, there: list[Passage], video: str) -> dict[Passage, Range]:
    ways: list[tuple[tuple[Spot, ...], Range]] = []
    for way in product(*(list(_spots(term, there, video)) for term in clause.terms)):
        rest, ranges = list(way), []
        for group in clause.groups:
            part, rest = rest[: len(group)], rest[len(group) :]
            if any(not _together(a, b) for a, b in combinations(part, 2)):
                break
            ranges.append(_range([s.at for s in part]))
        else:
            if all(_holds(link, a, b) for link, (a, b) in zip(clause.links, _pairs(clause, ranges), strict=True)):
                ways.append((way, _range(_told(clause, ranges))))
    best: dict[Passage, tuple[tuple[Spot, ...], Range]] = {}
    for way, at in ways:
        first_group = [s.moment for s in way[: len(clause.groups[0])]]
        anchor = max(first_group, key=lambda m: (m.start_us, -m.end_us, m.kind, m.text))
        if anchor not in best or _rank(clause, way, at) < _rank(clause, *best[anchor]):
            best[anchor] = way, at
    kept = {
        anchor: at
        for anchor, (way, at) in best.items()
        if len(clause.terms) == 1 or not any(_holds_shorter(way, at, *other) for other in best.values())
    }
    never = [s.line for term in clause.never for s in _spots(term, there, video)]
    return {
        a: at for a, at in kept.items() if not any(_both(n, (a.start_us, max(a.end_us, a.start_us + 1))) for n in never)
    }


def _pairs(clause: Clause, ranges: Sequence[Range]) -> Iterator[tuple[Range, Range]]:
    """The two sides of each link: the left is the last group that is told."""
    left = ranges[0]
    for link, right in zip(clause.links, ranges[1:], strict=True):
        yield left, right
        left = left if link.name == "with" else right


def _told(clause: Clause, ranges: Sequence[Range]) -> list[Range]:
    """A `with` B is A alone."""
    return [ranges[0], *(at for link, at in zip(clause.links, ranges[1:], strict=True) if link.name != "with")]


def _rank(clause: Clause, way: tuple[Spot, ...], at: Range) -> tuple[object, ...]:
    """Which of two ways in one passage is told: of a single term the first, else the shortest."""
    return at if len(clause.terms) == 1 else _first(way, at)


def _first(way: tuple[Spot, ...], at: Range) -> tuple[Range, int, list[tuple[int, int, str, str]]]:
    """The shortest range, then the earliest, then that of the fewest moments, then of the earliest ones."""
    made_of = {(m.start_us, m.end_us, m.kind, m.text) for m in (s.moment for s in way)}
    return _shorter(at), len(made_of), sorted(made_of)


def _holds_shorter(way: tuple[Spot, ...], at: Range, other: tuple[Spot, ...], shorter: Range) -> bool:
    shared = {s.moment for s in way} & {s.moment for s in other}
    return bool(shared) and at[0] <= shorter[0] and shorter[1] <= at[1] and at != shorter


def _spots(term: Term, there: list[Passage], video: str) -> Iterator[Spot]:
    for moment in there:
        own, over, under, start, end, ticks = json.loads(moment.times)
        said = moment.words.split(" ")
        for at in range(own if term.of(moment.kind) else 0):
            part = said[at : at + len(term.words)]
            whole = [*part[:-1], part[-1][: len(term.words[-1])]] if term.prefix and part else part
            if whole != list(term.words) or (not term.words and at):
                continue
            times = ticks[2 * at : 2 * (at + len(term.words))] or [start, end]
            first, last = (to_us(t, Fraction(over, under)) for t in (min(times), max(times)))
            yield Spot(video, moment, (first, max(last, first + 1)))


def _together(a: Spot, b: Spot) -> bool:
    spoken = a.moment.kind == b.moment.kind == "speech"
    return _both(a.unit, b.unit) and (not spoken or a.moment.until_us == b.moment.until_us)


def _holds(link: Link, a: Range, b: Range) -> bool:
    if link.name == "with":
        return _both(a, b)
    if link.name == "during":
        return b[0] <= a[0] and a[1] <= b[1]
    if link.name == "before":
        return 0 <= b[0] - a[1] <= link.within_us
    return max(a[0] - b[1], b[0] - a[1]) <= link.within_us


def _range(parts: Sequence[Range]) -> Range:
    start, end = max(s for s, _ in parts), min(e for _, e in parts)
    return (start, end) if start < end else (min(s for s, _ in parts), max(e for _, e in parts))


def _both(a: Range, b: Range) -> bool:
    return a[0] < b[1] and b[0] < a[1]


def _shorter(at: Range) -> Range:
    return at[1] - at[0], at[0]
