"""Searching a home: hits over everything that is known by now, and all of them for other tools."""

from collections.abc import Callable, Sequence

from rushes.domain.errors import NotFound, Refused
from rushes.exports import hits as forms
from rushes.exports.hits import hit_doc
from rushes.exports.timelines import TimelineMedia
from rushes.home import Home
from rushes.index.grammar import parse
from rushes.index.port import Hit, Piece, SearchResult, Summary
from rushes.index.query import FIELDS, Clause, Filter, Term
from rushes.index.tokenizer import words
from rushes.ledger.pages import every
from rushes.ledger.port import Page
from rushes.library.videos.export import footage_of

__all__ = ["FIELDS", "Clause", "Filter", "Hit", "Piece", "SearchResult", "Summary", "Term", "hit_doc", "parse", "words"]
Form = Callable[[str, Sequence[tuple[TimelineMedia, Hit]]], bytes]
KINDS = ("csv", "jsonl", "edl", "otio")


def export_hits(home: Home, query: str, kind: str, search: Callable[[str], SearchResult]) -> bytes:
    """Everything that a search finds, page after page by its cursor.

    Raises:
        Refused: there is no such kind, or an EDL would be wrong.
        NotFound: there is no hit, or a film of one is not known here.
    """
    if kind not in KINDS:
        raise Refused(f"unknown export {kind!r} for hits", f"Choose from: {', '.join(KINDS)}")
    found = list(every(lambda cursor: _page(search(cursor))))
    if not found:
        raise NotFound(f"no hits for {query[:80]!r}", "See what can be found: rushes search")
    if kind in ("edl", "otio"):
        return _timeline(home, query, found, forms.as_edl if kind == "edl" else forms.as_otio)
    return forms.as_csv(found) if kind == "csv" else forms.as_json_lines(found)


def _page(found: SearchResult) -> Page[Hit]:
    return Page(found.hits, found.cursor)


def _timeline(home: Home, query: str, found: Sequence[Hit], form: Form) -> bytes:
    videos = home.index.videos(home.owner, ids={hit.video for hit in found})[0]
    films = {video.id: footage_of(home, video) for video in videos}
    return form(query, [(films[hit.video], hit) for hit in found if hit.video in films])
