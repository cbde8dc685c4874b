"""All hits of a search, for other tools."""

from collections.abc import Callable, Iterator, Sequence

from rushes.domain.errors import NotFound, Refused
from rushes.exports import hits as forms
from rushes.home import Home
from rushes.index.port import Hit, SearchResult
from rushes.library.export import footage_of

KINDS = ("csv", "jsonl", "edl")


def export_hits(home: Home, query: str, kind: str, search: Callable[[str], SearchResult]) -> bytes:
    """Everything that a search finds, page after page by its cursor.

    Raises:
        Refused: there is no such kind, or an EDL would be wrong.
        NotFound: there is no hit, or a film of one is not known here.
    """
    if kind not in KINDS:
        raise Refused(f"there is no export {kind!r} of hits", f"Choose one of: {', '.join(KINDS)}")
    found = list(_every(search))
    if not found:
        raise NotFound(f"nothing is found for {query[:80]!r}", "An empty search says what there is to find.")
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
