"""Search: what a query finds in any index, driven by its rarest term. The one place where it is put together."""

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from rushes.domain.errors import ModelMissing
from rushes.index.filters import allowed, speaks
from rushes.index.hits import Order, Rated, facets, hit_of, page, rated
from rushes.index.match import Occurrence, evaluate, grouped, occurrences, reach
from rushes.index.port import Hit, Posting, Reader, SearchResult, Shelved, Window
from rushes.index.query import Clause, Query, Term, parse
from rushes.index.semantic import About, asks, spelled_out

MOST = 2_500  # moments read of the rarest term, so that no library is too large; what that leaves out is said
MANY = 2_000  # moments of a term that are counted: beyond, it is common
_FEW = 500  # moments of a term that are read as a whole rather than looked for around others
_SLACK_US = 120_000_000  # words of a group can be so far apart
_PAGE = 1000


class Primitives(Protocol):
    """What a search asks of a backend; see the port."""

    about: About | None

    def count(self, owner: str, term: Term, most: int) -> int:
        """See the port."""

    def find(self, owner: str, term: Term, most: int, videos: Collection[str] | None = None) -> tuple[Posting, ...]:
        """See the port."""

    def around(self, owner: str, term: Term, windows: Sequence[Window]) -> tuple[Posting, ...]:
        """See the port."""

    def shelf(self, owner: str, videos: Collection[str] | None = None) -> tuple[Shelved, ...]:
        """See the port."""


class Searching:
    """What every backend inherits: the search itself."""

    about: About | None = None  # compares what sentences mean, where somebody brought what that needs

    def search(
        self: Primitives,
        owner: str,
        query: str,
        limit: int = 20,
        cursor: str = "",
        video: str = "",
        order: str = "best",
    ) -> SearchResult:
        """As the port says."""
        begun = time.perf_counter()
        asked = parse(query)
        if not asked.clauses:
            return SearchResult(note=asked.note, took_ms=_since(begun))
        found, note = _found(self, owner, asked, {video} if video else None)
        videos = {f.met.anchor.video for f in found}
        shelf = {s.id: s for s in self.shelf(owner, videos)}
        sort = Order(order, shelf)
        shown, more = page(sorted(found, key=sort.key), sort, max(1, min(limit, _PAGE)), cursor)
        hits = tuple(hit_of(f, _name(shelf, f.met.anchor.video)) for f in shown)
        return SearchResult(hits, len(found), len(videos), more, note, _since(begun), facets(found, shelf))


def _found(index: Primitives, owner: str, asked: Query, only: Collection[str] | None) -> tuple[list[Rated], str]:
    """What a query finds, and what is to be said of it; by its words alone where meaning cannot be compared."""
    if asks(asked) and index.about is None:
        asked = replace(spelled_out(asked), note="~ looked for the words alone: nothing here compares meanings")
    looks = [_Look(index, owner, clause, only) for clause in asked.clauses]
    try:
        found = _best([look.hits() for look in looks])
    except ModelMissing as e:
        plain = replace(spelled_out(asked), note=f"~ looked for the words alone: {e}. {e.hint}".strip())
        return _found(index, owner, plain, only)
    return found, "; ".join(dict.fromkeys(filter(None, [asked.note, *(look.note for look in looks)])))


@dataclass
class _Look:
    """One clause, looked for in an index."""

    index: Primitives
    owner: str
    clause: Clause
    only: Collection[str] | None
    found: dict[Term, list[Occurrence]] = field(default_factory=dict)
    counts: dict[Term, int] = field(default_factory=dict)
    alike: dict[Term, dict[Posting, float]] = field(default_factory=dict)  # of terms that ask for meaning
    note: str = ""

    def hits(self) -> list[Rated]:
        """What the clause finds, once for each moment in which something begins."""
        videos = allowed(self.clause.filters, lambda: self.index.shelf(self.owner), self.only)
        if videos is not None and not videos:
            return []
        self._count(videos)
        start = min(range(len(self.clause.groups)), key=lambda n: min(self.counts[t] for t in self.clause.groups[n]))
        self._group(start, self._drive(start, videos))
        for n in range(start - 1, -1, -1):
            self._next(n, n + 1)
        for n in range(start + 1, len(self.clause.groups)):
            self._next(n, n - 1)
        met = evaluate(self.clause, self.found)
        if self.clause.never and met:
            lines = _merged((m.anchor.video, m.anchor.start_us, m.anchor.end_us) for m in met)
            for term in self.clause.never:
                self.found[term] = occurrences(term, self._around(term, lines))
            met = evaluate(self.clause, self.found)
        return [rated(m, self.clause.terms, self.counts, self.alike) for m in met]

    def _count(self, videos: Collection[str] | None) -> None:
        for term in dict.fromkeys((*self.clause.terms, *self.clause.never)):
            if term.about and self.index.about:
                self.alike[term], self.note = self.index.about.find(self.index, self.owner, term, videos)
        for term in dict.fromkeys(self.clause.terms):
            known = self.alike.get(term)
            self.counts[term] = self.index.count(self.owner, term, MANY + 1) if known is None else len(known)

    def _drive(self, group: int, videos: Collection[str] | None) -> Term:
        """Read the rarest term of a group as a whole."""
        term = self._rarest(group)
        known = self.alike.get(term)
        postings = self.index.find(self.owner, term, MOST + 1, videos) if known is None else tuple(known)
        if len(postings) > MOST:
            self.note = f"only the first {MOST} of what was found were looked at: say more"
        self._keep(term, postings[:MOST])
        return term

    def _rarest(self, group: int) -> Term:
        return min(self.clause.groups[group], key=lambda term: self.counts[term])

    def _group(self, group: int, driver: Term) -> None:
        """Look for the other terms of a group where one of them is."""
        units = _merged((o.posting.video, *o.unit) for o in self.found[driver])
        for term in self.clause.groups[group]:
            if term not in self.found:
                self._keep(term, self._around(term, units))

    def _next(self, group: int, known: int) -> None:
        """Look for a group where a link from its neighbour, which is known, can reach."""
        forward = group > known
        link = self.clause.links[known if forward else group]
        slack = _SLACK_US if len(self.clause.groups[group]) > 1 else 0
        windows = [
            (chain.all[0].posting.video, start - slack, end + slack)
            for here in _by_video([self.found[term] for term in self.clause.groups[known]])
            for chain in grouped(here)
            for start, end in [reach(link, chain.us, forward=forward)]
        ]
        term = self._rarest(group)
        self._keep(term, self._around(term, _merged(windows)))
        self._group(group, term)

    def _around(self, term: Term, windows: Sequence[Window]) -> Iterable[Posting]:
        if term in self.alike:
            return self.alike[term]
        count = self.counts.get(term)
        if count is not None and count <= min(MANY, _FEW + len(windows)):
            return self.index.find(self.owner, term, MOST, {video for video, _, _ in windows})
        return self.index.around(self.owner, term, windows) if windows else ()

    def _keep(self, term: Term, postings: Iterable[Posting]) -> None:
        spoken = [f for f in self.clause.filters if f.name == "lang"]
        kept = [p for p in postings if all(speaks(f, p, term) for f in spoken)]
        self.found[term] = [*self.found.get(term, ()), *occurrences(term, kept)]


def _by_video(terms: Sequence[Sequence[Occurrence]]) -> Iterable[list[list[Occurrence]]]:
    films: dict[str, list[list[Occurrence]]] = {}
    for n, some in enumerate(terms):
        for o in some:
            films.setdefault(o.posting.video, [[] for _ in terms])[n].append(o)
    return [here for _, here in sorted(films.items()) if all(here)]


def _merged(windows: Iterable[Window]) -> list[Window]:
    """The same time in fewer windows."""
    out: list[Window] = []
    for video, start, end in sorted(windows):
        if out and out[-1][0] == video and start <= out[-1][2]:
            out[-1] = (video, out[-1][1], max(end, out[-1][2]))
        else:
            out.append((video, start, max(end, start + 1)))
    return out


def _best(looks: Iterable[Sequence[Rated]]) -> list[Rated]:
    """What begins in the same moment is one."""
    best: dict[int, Rated] = {}
    for found in (f for look in looks for f in look):
        other = best.get(found.met.anchor.id)
        best[found.met.anchor.id] = other.joined(found) if other else found
    return list(best.values())


def _name(shelf: Mapping[str, Shelved], video: str) -> str:
    return shelf[video].name if video in shelf else ""


def _since(begun: float) -> float:
    return (time.perf_counter() - begun) * 1000


def next_hit(index: Reader, owner: str, query: str, video: str, at_us: int, *, back: bool = False) -> Hit | None:
    """The first hit after a moment of a video in shooting order, or the last before it; a hit there is passed over."""
    shelf = {s.id: s for s in index.shelf(owner)}
    order = Order("time", shelf)
    here = order.place(video, at_us)
    cursor, first, before = "", True, None
    while cursor or first:
        page, first = index.search(owner, query, _PAGE, cursor, order="time"), False
        for hit in page.hits:
            place = order.place(hit.video, hit.start_us)
            if not back and place > here:
                return hit
            before = hit if place < here else before
        cursor = page.cursor
    return before if back else None
