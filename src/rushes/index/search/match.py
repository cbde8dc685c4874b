"""Matching a clause against passages: terms that occur together, near, before or during each other. Pure.

Two terms are there at one time if their passages overlap; a passage lasts until its sentence ends. All spans are end
exclusive, in microseconds. A hit is told in the passage that starts last in its first group; of hits that share a
passage the shorter stay. A hit of one term begins where it first stands in a passage.
"""

from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from itertools import dropwhile, islice
from math import lcm
from operator import is_, is_not, itemgetter
from typing import Generic, TypeVar

from rushes.domain.span import Span
from rushes.index.passages import SPEECH, Times, in_us
from rushes.index.port import Posting
from rushes.index.query import Clause, Link, Term

T = TypeVar("T")

MAX_REPEATS = 5  # of one word said again: the edges of what is common and of the whole, and where a hit begins
MAX_COMBINATIONS = 50_000  # ways to put a clause together in one video; beyond, some are not told


@dataclass(frozen=True)
class Occurrence:
    """A term where it stands: a passage, and its first and last word there."""

    posting: Posting
    times: Times
    first: int
    last: int

    @cached_property
    def span(self) -> Span:
        """When exactly."""
        return self.times.of(self.first, self.last) if self.last >= 0 else self.times.line

    @cached_property
    def us(self) -> tuple[int, int]:
        """When, in microseconds."""
        return in_us(self.span)

    @property
    def unit(self) -> tuple[int, int]:
        """From its line to the end of its sentence."""
        return self.posting.start_us, max(self.posting.until_us, self.posting.start_us + 1)

    @property
    def line(self) -> tuple[int, int]:
        """Its line."""
        return _line(self.posting)


@dataclass(frozen=True, slots=True)
class Match:
    """Occurrences that belong together, and when; the first of them are of the group that stands first."""

    all: tuple[Occurrence, ...]
    us: tuple[int, int]
    first: int

    @property
    def anchor(self) -> Posting:
        """The passage of the first group that begins last; of equals the shortest."""
        postings = (o.posting for o in self.all[: self.first])
        return max(postings, key=lambda p: (p.start_us, -p.end_us, p.kind, p.text, -p.id))

    @property
    def rank(self) -> tuple[int, int]:
        """The shortest first, then the earliest."""
        return self.us[1] - self.us[0], self.us[0]

    @property
    def made_of(self) -> tuple[int, list[tuple[int, int, str, str]]]:
        """Of the same range, that which is made of fewer passages comes first, then of earlier ones."""
        passages = {(p.start_us, p.end_us, p.kind, p.text) for p in (o.posting for o in self.all)}
        return len(passages), sorted(passages)

    def is_better(self, other: "Match") -> bool:
        """Whether it stands for both."""
        return self.rank < other.rank or (self.rank == other.rank and self.made_of < other.made_of)


def occurrences(term: Term, postings: Iterable[Posting]) -> list[Occurrence]:
    """Where a term stands in passages that may hold it: it begins in their own words and may go on behind them."""
    return [o for posting in postings if term.of(posting.kind) for o in _in(term, posting)]


def _in(term: Term, posting: Posting) -> Iterator[Occurrence]:
    if term.sentence or not term.words:
        yield Occurrence(posting, Times.from_text(posting.times), 0, -1)
        return
    positions = _positions(term, posting)
    times = Times.from_text(posting.times) if positions else None
    for first in positions:
        if times and first < times.own:
            yield Occurrence(posting, times, first, first + len(term.words) - 1)


def term_frequency(term: Term, posting: Posting) -> int:
    """How often a passage holds a term."""
    return len(_positions(term, posting)) if term.words and not term.sentence else 1


def _positions(term: Term, posting: Posting) -> list[int]:
    if term.words[0] not in posting.words:
        return []
    said = posting.words.split(" ")
    if len(term.words) == 1 and not term.prefix:  # most terms: 3 times as fast
        return [at for at, word in enumerate(said) if word == term.words[0]]
    return [at for at in range(len(said) - len(term.words) + 1) if _here(term, said, at)]


def _here(term: Term, said: Sequence[str], at: int) -> bool:
    *first, last = term.words
    end = at + len(first)
    if not (said[end].startswith(last) if term.prefix else said[end] == last):
        return False
    return not first or said[at:end] == first


def evaluate(clause: Clause, found: Mapping[Term, Sequence[Occurrence]]) -> list[Match]:
    """What a clause finds among the occurrences of its terms, one for each passage in which something begins."""
    hits: list[Match] = []
    by_video: dict[str, dict[Term, list[Occurrence]]] = defaultdict(lambda: defaultdict(list))
    for term in dict.fromkeys(clause.terms):
        for occurrence in found.get(term, ()):
            by_video[occurrence.posting.video][term].append(occurrence)
    never: dict[str, list[Occurrence]] = defaultdict(list)
    for occurrence in (o for term in clause.never for o in found.get(term, ())):
        never[occurrence.posting.video].append(occurrence)
    for video, here in sorted(by_video.items()):
        if all(here.get(term) for term in clause.terms):
            hits += _in_video(clause, here, never[video])
    return hits


def _in_video(clause: Clause, here: Mapping[Term, Sequence[Occurrence]], never: Sequence[Occurrence]) -> list[Match]:
    chains = grouped([here[term] for term in clause.groups[0]])
    for link, group in zip(clause.links, clause.groups[1:], strict=True):
        chains = _linked(chains, link, grouped([here[term] for term in group]))
    best: dict[int, Match] = {}
    several = len(clause.terms) > 1
    for m in (Match(chain.all, _range(chain.parts), len(clause.groups[0])) for chain in chains):
        other = best.get(m.anchor.id)
        if other is None or (m.is_better(other) if several else m.us < other.us):
            best[m.anchor.id] = m
    shortest = list(_shortest(best.values())) if several else list(best.values())
    unwanted = _ByTime([(o.line, o) for o in never])
    return [m for m in shortest if not any(unwanted.within(*_line(m.anchor)))]


@dataclass(frozen=True, slots=True)
class _Chain:
    """Linked groups so far: everything in them, and when each of them is."""

    all: tuple[Occurrence, ...]
    parts: tuple[tuple[int, int], ...]

    @property
    def us(self) -> tuple[int, int]:
        """When the last group is."""
        return self.parts[-1]


_Way = tuple[tuple[Occurrence, ...], tuple[int, int]]  # what was put together so far, and while all of it is there


def grouped(terms: Sequence[Sequence[Occurrence]]) -> list[_Chain]:
    """Every way in which all terms of a group are there at one time."""
    ways: list[_Way] = [((o,), o.unit) for o in _distinct(terms[0])]
    for n, others in enumerate(terms[1:], 1):
        near = _ByTime([(o.unit, o) for o in _distinct(others)])
        same = [m for m in range(n) if _is_same(terms[m], others)]
        if len(same) >= MAX_REPEATS:
            ways = [((*some, some[same[-1]]), us) for some, us in ways]
            continue
        firsts: dict[int, list[_Way]] = defaultdict(list)
        for way in ways:
            firsts[id(way[0][0])].append(way)
        ways = list(islice(_in_turn(_longer(some, near, same[-1:]) for some in firsts.values()), MAX_COMBINATIONS))
    return [_Chain(all, (_range([o.us for o in all]),)) for all, _ in ways]


def _longer(ways: Iterable[_Way], near: "_ByTime[Occurrence]", same: Sequence[int]) -> Iterator[_Way]:
    """Each way with one occurrence more; of a term that is said again, none that stands before its last."""
    for some, us in ways:
        there = near.within(*us)
        if same:
            there = dropwhile(partial(is_not, some[same[0]]), there)
        for o in there:
            if _joins(some, o):
                yield (*some, o), _common((us, o.unit))


def _is_same(some: Sequence[Occurrence], others: Sequence[Occurrence]) -> bool:
    return len(some) == len(others) and all(map(is_, some, others))


def _distinct(some: Iterable[Occurrence]) -> Iterator[Occurrence]:
    """One of those that stand in one passage at one time: a word said again in a line whose words have no times."""
    seen: set[tuple[int, int, int]] = set()
    for o in some:
        id = (o.posting.id, o.span.start, o.span.end)
        if id not in seen:
            seen.add(id)
            yield o


def _in_turn(some: Iterable[Iterator[T]]) -> Iterator[T]:
    """One of each after the other, so that none uses up what all may have."""
    left = deque(some)
    while left:
        first = left.popleft()
        for one in islice(first, 1):
            yield one
            left.append(first)


def _joins(some: Sequence[Occurrence], new: Occurrence) -> bool:
    """Two who speak at once say two sentences: what is said is together only in one, which ends at one time."""
    return new.posting.kind != SPEECH or all(
        o.posting.kind != SPEECH or o.posting.until_us == new.posting.until_us for o in some
    )


def _linked(left: Sequence[_Chain], link: Link, right: Sequence[_Chain]) -> list[_Chain]:
    near = _ByTime([(r.us, r) for r in right])
    return list(islice(_in_turn(_longer_chains(a, link, near) for a in left), MAX_COMBINATIONS))


def _longer_chains(a: _Chain, link: Link, near: "_ByTime[_Chain]") -> Iterator[_Chain]:
    for b in near.within(*reach(link, a.us, forward=True)):
        if holds(link, a.us, b.us):
            yield _Chain((*a.all, *b.all), a.parts if link.name == "with" else (*a.parts, b.us))


def reach(link: Link, us: tuple[int, int], *, forward: bool) -> tuple[int, int]:
    """Where the other side of a link can be."""
    start, end = us
    if link.name in {"during", "with"}:
        return us
    if link.name == "before":
        return (end, end + link.within_us + 1) if forward else (start - link.within_us - 1, start)
    return start - link.within_us - 1, end + link.within_us + 1


def holds(link: Link, a: tuple[int, int], b: tuple[int, int]) -> bool:
    """Whether two stretches lie as a link says."""
    match link.name:
        case "during":
            return b[0] <= a[0] and a[1] <= b[1]
        case "with":
            return a[0] < b[1] and b[0] < a[1]
        case "before":
            return a[1] <= b[0] <= a[1] + link.within_us
        case _:
            return max(a[0], b[0]) - min(a[1], b[1]) <= link.within_us


def _range(parts: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """While all are there; if they never are at once, from the first to the last."""
    both = _common(parts)
    return both if both[0] < both[1] else (min(s for s, _ in parts), max(e for _, e in parts))


def _common(parts: Sequence[tuple[int, int]]) -> tuple[int, int]:
    return max(s for s, _ in parts), min(e for _, e in parts)


def _shortest(hits: Iterable[Match]) -> Iterator[Match]:
    """Without those that hold a shorter one with which they share something."""
    shorter: dict[Posting, _Innermost] = defaultdict(_Innermost)
    for m in sorted(hits, key=lambda m: m.rank):
        holds = [shorter[p].add(*m.us) for p in {o.posting for o in m.all}]
        if not any(holds):
            yield m


class _Innermost:
    """Stretches of which none holds another, so that their ends are in the order of their starts."""

    def __init__(self) -> None:
        self._all: list[tuple[int, int]] = []

    def add(self, start: int, end: int) -> bool:
        """One that is as long as those before, or longer; answers whether it holds one of them."""
        at = bisect_left(self._all, start, key=itemgetter(0))
        first = self._all[at] if at < len(self._all) else None
        if first is None or first[1] > end:
            self._all.insert(at, (start, end))
            return False
        return first != (start, end)


def _line(posting: Posting) -> tuple[int, int]:
    return posting.start_us, max(posting.end_us, posting.start_us + 1)


class _ByTime(Generic[T]):
    """Things in order of time: which are there in a stretch."""

    def __init__(self, items: Sequence[tuple[tuple[int, int], T]]) -> None:
        self._items = sorted(items, key=lambda item: item[0])
        self._starts = [us[0] for us, _ in self._items]
        self._longest = max((end - start for (start, end), _ in self._items), default=0)

    def within(self, start: int, end: int) -> Iterator[T]:
        """Those that overlap it."""
        for at in range(bisect_left(self._starts, start - self._longest), bisect_left(self._starts, end)):
            us, item = self._items[at]
            if us[1] > start:
                yield item


def exact(match: Match) -> Span:
    """The range of a hit to the tick: each edge is one of an occurrence."""
    first = next(o.span for o in match.all if o.us[0] == match.us[0])
    last = next(o.span for o in match.all if o.us[1] == match.us[1])
    if first.base == last.base:
        return Span(first.start, last.end, first.base)
    base = Fraction(1, lcm(first.base.denominator, last.base.denominator))
    return Span(int(first.start * first.base / base), int(last.end * last.base / base), base)
