"""Searching a home: hits over everything that is known by now, and all of them for other tools."""

from collections.abc import Callable, Iterator, Sequence

from rushes.annotations.sidecars import catch_up
from rushes.domain.errors import NotFound, Refused
from rushes.exports import hits as forms
from rushes.exports.hits import hit_doc
from rushes.home import Home
from rushes.index.port import Hit, Piece, SearchResult, Summary
from rushes.index.query import FIELDS, Clause, Filter, Term, parse
from rushes.index.search import SemanticIndex
from rushes.index.search import next_hit as find_next
from rushes.index.search import search as find_hits
from rushes.library.videos.export import footage_of

__all__ = ["FIELDS", "Clause", "Filter", "Hit", "Piece", "SearchResult", "Summary", "Term", "hit_doc", "parse"]
KINDS = ("csv", "jsonl", "edl")


def search(home: Home, query: str, limit: int, cursor: str, video: str, order: str) -> SearchResult:
    """Time-coded hits, best first or by `time`; no text is an error."""
    catch_up(home)
    return find_hits(home.index, home.settings.owner, query, limit, cursor, video, order, _semantic(home, query))


def next_hit(home: Home, query: str, video: str, at_us: int, *, back: bool) -> Hit | None:
    """The hit that follows a moment of a video across the library in shooting order, or the one before it."""
    catch_up(home)
    semantic = _semantic(home, query)
    return find_next(home.index, home.settings.owner, query, video, at_us, back=back, semantic=semantic)


def summary(home: Home) -> Summary:
    """What there is to find."""
    catch_up(home)
    return home.index.summary(home.settings.owner)


def export_hits(home: Home, query: str, kind: str, search: Callable[[str], SearchResult]) -> bytes:
    """Everything that a search finds, page after page by its cursor.

    Raises:
        Refused: there is no such kind, or an EDL would be wrong.
        NotFound: there is no hit, or a film of one is not known here.
    """
    if kind not in KINDS:
        raise Refused(f"unknown export {kind!r} for hits", f"Choose from: {', '.join(KINDS)}")
    found = list(_every(search))
    if not found:
        raise NotFound(f"no hits for {query[:80]!r}", "See what can be found: rushes search")
    if kind == "edl":
        return _edl(home, query, found)
    return forms.as_csv(found) if kind == "csv" else forms.as_json_lines(found)


def _every(search: Callable[[str], SearchResult]) -> Iterator[Hit]:
    cursor, more = "", True
    while more:
        page = search(cursor)
        yield from page.hits
        cursor, more = page.cursor, bool(page.cursor)


def _edl(home: Home, query: str, found: Sequence[Hit]) -> bytes:
    videos = home.index.videos(home.settings.owner, ids={hit.video for hit in found})[0]
    films = {video.id: footage_of(home, video) for video in videos}
    return forms.as_edl(query, [(films[hit.video], hit) for hit in found if hit.video in films])


def _semantic(home: Home, query: str) -> SemanticIndex | None:
    """An engine of this machine, if the query asks for what means alike (`~about this`)."""
    return home.semantic if "~" in query else None
