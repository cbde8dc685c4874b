"""Search: one query over everything that is known so far."""

from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from rushes.surfaces.http.deps import MOST, LibraryDep
from rushes.surfaces.http.schemas import Cursor, HitShape, Limit, seal, unseal

router = APIRouter(tags=["search"])
TYPES = {"csv": "text/csv", "jsonl": "application/x-ndjson", "edl": "text/plain", "otio": "application/json"}


@dataclass(frozen=True, slots=True)
class FoundShape:
    """Hits, how many there are in how many videos, and the cursor of the next page."""

    hits: list[HitShape]
    total: int
    videos: int
    cursor: str
    note: str
    took_ms: float


@router.get("/search")
def search(
    request: Request,
    library: LibraryDep,
    q: Annotated[str, Query(max_length=1000, description='words, "phrases", -without, OR, kind:word')] = "",
    video: Annotated[str, Query(max_length=100)] = "",
    order: Literal["best", "time"] = "best",
    cursor: Cursor = "",
    limit: Limit = 20,
) -> FoundShape:
    """Find time-coded hits, best first or in the order of recording; any text is a valid query."""
    of = f"search {order} {video} {q}"
    found = library.search(q, limit, unseal(request, cursor, of), video, order)
    hits = [HitShape.of(h) for h in found.hits]
    more = seal(request, found.cursor, of)
    return FoundShape(hits, found.total, found.videos, more, found.note, found.took_ms)


@router.get("/search/next")
def search_next(
    library: LibraryDep,
    q: Annotated[str, Query(max_length=1000)],
    video: Annotated[str, Query(max_length=100)],
    at_us: Annotated[int, Query(ge=0, le=MOST)] = 0,
    back: bool = False,
) -> HitShape | None:
    """Get the hit after (or before) a time in a video, across the library; null at the end."""
    hit = library.next_hit(q, video, at_us, back=back)
    return HitShape.of(hit) if hit else None


@router.get("/search/export/{kind}", response_class=Response)
def export_search(
    library: LibraryDep,
    kind: Literal["csv", "jsonl", "edl", "otio"],
    q: Annotated[str, Query(max_length=1000)],
    video: Annotated[str, Query(max_length=100)] = "",
    order: Literal["best", "time"] = "time",
) -> Response:
    """Export all hits as CSV, JSON lines, or a timeline for editors."""
    data = library.export_hits(q, kind, video, order)
    name = {"Content-Disposition": f'attachment; filename="hits.{kind}"'}
    return Response(data, media_type=TYPES[kind], headers=name)
