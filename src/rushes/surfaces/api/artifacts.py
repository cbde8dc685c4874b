"""Observations as envelopes with their provenance, and which run of them counts."""

from itertools import islice
from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel

from rushes.domain.errors import Refused
from rushes.library.videos.runs import KINDS, Envelope
from rushes.surfaces.http.deps import Id, LibraryDep, Name
from rushes.surfaces.http.schemas import Cursor, Limit, Page, RecordShape, page, unseal

router = APIRouter(tags=["artifacts"])
OURS = {word: kind for kind, word in KINDS.items()} | {kind: kind for kind in KINDS}


class SelectionIn(BaseModel):
    """Which run counts for a type of artifacts: one that is named, or "" for the newest."""

    artifact_type: Name
    run_id: Name = ""


@router.get("/artifacts")
def list_artifacts(
    request: Request,
    library: LibraryDep,
    asset_id: Annotated[str, Query(max_length=100, description="the video")],
    artifact_type: Annotated[str, Query(max_length=100)] = "",
    run_id: Annotated[str, Query(max_length=100)] = "",
    cursor: Cursor = "",
    limit: Limit = 100,
) -> Page[Envelope]:
    """Observations of a video: of the run that is named, else of the one that readers see: pinned, or the newest."""
    kind = _kind(artifact_type) if artifact_type else ""
    video = library.videos.get(asset_id)
    run = library.jobs.get(run_id).id if run_id else ""
    of = f"artifacts {video.id} {kind} {run}"
    at, n = map(int, (unseal(request, cursor, of) or "0:0").split(":"))
    some = list(islice(library.videos.envelopes(video, kind, run, (at, n)), limit + 1))
    more = "{}:{}".format(*some[limit - 1][0]) if len(some) > limit else ""
    return page(request, [envelope for _, envelope in some[:limit]], more, of)


@router.get("/selection")
def list_selections(library: LibraryDep, asset_id: Annotated[str, Query(max_length=100)]) -> list[RecordShape]:
    """The runs that were pinned for a video."""
    return [RecordShape.of(r) for r in library.videos.selected_runs(library.videos.get(asset_id))]


@router.put("/selection/{asset_id}")
def select_run(library: LibraryDep, asset_id: Id, body: SelectionIn) -> RecordShape:
    """Pin a run for a type of artifacts."""
    video = library.videos.get(asset_id)
    return RecordShape.of(library.videos.select_run(video, _kind(body.artifact_type), body.run_id))


def _kind(word: str) -> str:
    if word not in OURS:
        raise Refused(f"unknown type {word[:60]!r}", f"Choose from: {', '.join(KINDS.values())}")
    return OURS[word]
