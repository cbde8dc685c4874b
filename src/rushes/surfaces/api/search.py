"""Search: one box over everything that is known by now."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query

from rushes.surfaces.api.pages import Cursor, Limit, seal, unseal
from rushes.surfaces.api.reach import ALibrary
from rushes.surfaces.api.shapes import HitShape

router = APIRouter(tags=["search"])


@dataclass(frozen=True, slots=True)
class FoundShape:
    """Some hits, how many there are in how many videos, and where the next ones begin."""

    hits: list[HitShape]
    total: int
    videos: int
    cursor: str
    note: str
    took_ms: float


@router.get("/search")
def search(
    library: ALibrary,
    q: Annotated[str, Query(max_length=1000, description='words, "phrases", -without, OR, kind:word')] = "",
    video: Annotated[str, Query(max_length=100)] = "",
    cursor: Cursor = "",
    limit: Limit = 20,
) -> FoundShape:
    """Time-coded hits, best first; any text is a query."""
    found = library.search(q, limit, unseal(cursor), video)
    hits = [HitShape.of(h) for h in found.hits]
    more = seal(found.cursor) if found.cursor else ""
    return FoundShape(hits, found.total, found.videos, more, found.note, found.took_ms)
