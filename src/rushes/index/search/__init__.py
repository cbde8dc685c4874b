"""Search: what a query finds in any index, driven by its rarest term."""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rushes.domain.errors import EngineAway, ModelMissing
from rushes.index.dates import is_within
from rushes.index.grammar import parse
from rushes.index.port import NO_LIMIT, CatalogEntry, Hit, Index, Posting, SearchResult, SemanticIndex, Window
from rushes.index.query import Clause, Filter, Query, Term
from rushes.index.search.hits import Order, ScoredMatch, facets, hit_of, page, scored
from rushes.index.search.match import Occurrence, evaluate, grouped, occurrences, reach
from rushes.index.tokenizer import words

MAX_POSTINGS = 2_500  # passages read of the rarest term, so that no library is too large; what that leaves out is said
MAX_COUNTED = 2_000  # passages of a term that are counted: beyond, it is common
_FEW_POSTINGS = 500  # passages of a term that are read as a whole rather than looked for around others
_SLACK_US = 120_000_000  # words of a group can be so far apart
_PAGE = 1000
_SPOKEN = ("speech", "text", "entity")  # kinds that have a language


def search(
    index: Index,
    owner: str,
    query: str,
    limit: int = 20,
    cursor: str = "",
    video: str = "",
    order: str = "best",
    semantic: SemanticIndex | None = None,
) -> SearchResult:
    """Hits, best first, or in `order` "time" as they were shot. Any text is a query; none raises."""
    begun = time.perf_counter()
    asked = parse(query)
    if not asked.clauses:
        return SearchResult(note=asked.note, took_ms=_since(begun))
    found, note = _find(index, owner, asked, {video} if video else None, semantic)
    videos = {f.match.anchor.video for f in found}
    catalog = {entry.id: entry for entry in index.catalog(owner, videos)}
    sort = Order(order, catalog)
    shown, more = page(sorted(found, key=sort.key), sort, max(1, min(limit, _PAGE)), cursor)
    hits = tuple(hit_of(f, _name(catalog, f.match.anchor.video)) for f in shown)
    return SearchResult(hits, len(found), len(videos), more, note, _since(begun), facets(found, catalog))


def _find(
    index: Index, owner: str, asked: Query, only: Collection[str] | None, semantic: SemanticIndex | None
) -> tuple[list[ScoredMatch], str]:
    """What a query finds, and a note for the user; by its words alone where meaning cannot be compared."""
    if asked.is_semantic and semantic is None:
        asked = replace(asked.by_words(), note="~ searched only for the words: no model here compares meanings")
    clauses = [_ClauseSearch(index, owner, clause, only, semantic) for clause in asked.clauses]
    try:
        found = _merge_matches([clause.matches() for clause in clauses])
    except (ModelMissing, EngineAway) as e:
        plain = replace(asked.by_words(), note=f"~ searched only for the words: {e}. {e.hint}".strip())
        return _find(index, owner, plain, only, None)
    return found, "; ".join(dict.fromkeys(filter(None, [asked.note, *(clause.note for clause in clauses)])))


@dataclass
class _ClauseSearch:
    """One clause, looked for in an index."""

    index: Index
    owner: str
    clause: Clause
    only: Collection[str] | None
    semantic: SemanticIndex | None
    found: dict[Term, list[Occurrence]] = field(default_factory=dict)
    counts: dict[Term, int] = field(default_factory=dict)
    similar: dict[Term, dict[Posting, float]] = field(default_factory=dict)  # of terms that ask for meaning
    note: str = ""

    def matches(self) -> list[ScoredMatch]:
        """What the clause finds, once for each passage in which one begins."""
        videos = _matching_videos(self.clause.filters, lambda: self.index.catalog(self.owner), self.only)
        if videos is not None and not videos:
            return []
        self._count(videos)
        start = min(range(len(self.clause.groups)), key=lambda n: min(self.counts[t] for t in self.clause.groups[n]))
        self._group(start, self._drive(start, videos))
        for n in range(start - 1, -1, -1):
            self._next(n, n + 1)
        for n in range(start + 1, len(self.clause.groups)):
            self._next(n, n - 1)
        found = evaluate(self.clause, self.found)
        if self.clause.never and found:
            lines = _merged((m.anchor.video, m.anchor.start_us, m.anchor.end_us) for m in found)
            for term in self.clause.never:
                self.found[term] = occurrences(term, self._around(term, lines))
            found = evaluate(self.clause, self.found)
        return [scored(m, self.clause.terms, self.counts, self.similar) for m in found]

    def _count(self, videos: Collection[str] | None) -> None:
        for term in dict.fromkeys((*self.clause.terms, *self.clause.never)):
            if term.sentence and self.semantic:
                self.similar[term], self.note = self.semantic.find(self.index, self.owner, term, videos)
        for term in dict.fromkeys(self.clause.terms):
            known = self.similar.get(term)
            self.counts[term] = self.index.count(self.owner, term, MAX_COUNTED + 1) if known is None else len(known)

    def _drive(self, group: int, videos: Collection[str] | None) -> Term:
        """Read the rarest term of a group as a whole."""
        term = self._rarest(group)
        known = self.similar.get(term)
        postings = self.index.find(self.owner, term, MAX_POSTINGS + 1, videos) if known is None else tuple(known)
        if len(postings) > MAX_POSTINGS:
            self.note = f"only the first {MAX_POSTINGS} matches were checked: add more words"
        self._keep(term, postings[:MAX_POSTINGS])
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
        if term in self.similar:
            return self.similar[term]
        count = self.counts.get(term)
        if count is not None and count <= min(MAX_COUNTED, _FEW_POSTINGS + len(windows)):
            return self.index.find(self.owner, term, MAX_POSTINGS, {video for video, _, _ in windows})
        return self.index.find(self.owner, term, NO_LIMIT, windows=windows) if windows else ()

    def _keep(self, term: Term, postings: Iterable[Posting]) -> None:
        spoken = [f for f in self.clause.filters if f.name == "lang"]
        kept = [p for p in postings if all(_matches_language(f, p, term) for f in spoken)]
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


def _merge_matches(clauses: Iterable[Sequence[ScoredMatch]]) -> list[ScoredMatch]:
    """Matches of several clauses that begin in the same passage are one."""
    best: dict[int, ScoredMatch] = {}
    for found in (f for clause in clauses for f in clause):
        other = best.get(found.match.anchor.id)
        best[found.match.anchor.id] = other.joined(found) if other else found
    return list(best.values())


def _name(catalog: Mapping[str, CatalogEntry], video: str) -> str:
    return catalog[video].name if video in catalog else ""


def _since(begun: float) -> float:
    return (time.perf_counter() - begun) * 1000


def next_hit(
    index: Index,
    owner: str,
    query: str,
    video: str,
    at_us: int,
    *,
    back: bool = False,
    semantic: SemanticIndex | None = None,
) -> Hit | None:
    """The next occurrence of a hit after a moment of a video in shooting order, or the last before it."""
    order = Order("time", {entry.id: entry for entry in index.catalog(owner)})
    here = order.position(video, at_us)
    best: tuple[tuple[str, str, int], Hit] | None = None
    for hit in _in_order(index, owner, query, semantic):
        if best and not back and order.position(hit.video, hit.start_us) > best[0]:
            break
        for span in hit.times:
            at = order.position(hit.video, span.start_us)
            if at < here and back and (best is None or at >= best[0]):
                best = at, replace(hit, span=span)
            if at > here and not back and (best is None or at < best[0]):
                best = at, replace(hit, span=span)
    return best[1] if best else None


def _in_order(index: Index, owner: str, query: str, semantic: SemanticIndex | None) -> Iterator[Hit]:
    """Every hit, in shooting order."""
    cursor, first = "", True
    while cursor or first:
        found, first = search(index, owner, query, _PAGE, cursor, order="time", semantic=semantic), False
        yield from found.hits
        cursor = found.cursor


# Filters
def _matching_videos(
    filters: Sequence[Filter], catalog: Callable[[], Iterable[CatalogEntry]], only: Collection[str] | None
) -> Collection[str] | None:
    """The videos that a clause looks at; None for all. The catalog is read only where a filter asks for it."""
    asked = [f for f in filters if f.name in {"in", "date"}]
    if not asked:
        return only
    there = [s for s in catalog() if only is None or s.id in only]
    return {s.id for s in there if all(_holds(f, s) != f.negated for f in asked)}


def _matches_language(asked: Filter, posting: Posting, term: Term) -> bool:
    """Whether a language filter lets a passage through; what has no language passes where it is named by its words."""
    if not posting.language and posting.kind not in _SPOKEN and term.words:
        return True
    spoken = posting.language.lower()
    return (spoken == asked.value or spoken.startswith(f"{asked.value}-")) != asked.negated


def _holds(asked: Filter, video: CatalogEntry) -> bool:
    return _is_in(asked.value, video) if asked.name == "in" else is_within(asked.value, video.shot_at)


def _is_in(value: str, video: CatalogEntry) -> bool:
    """By id or the beginning of it, or by words of its name or path, the last of which may be a beginning."""
    if video.id.startswith(value) or video.id == f"vid_{value}":
        return True
    wanted = words(value)
    return any(_within(wanted, words(text)) for text in (video.name, video.path))


def _within(wanted: Sequence[str], said: Sequence[str]) -> bool:
    *first, last = wanted
    size = len(wanted)
    return any(
        said[at : at + size - 1] == first and said[at + size - 1].startswith(last) for at in range(len(said) - size + 1)
    )
