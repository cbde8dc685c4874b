"""Observations as envelopes with their provenance, and which run of them counts."""

from itertools import islice
from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel

from rushes.annotations import of_video, select
from rushes.domain.errors import Refused
from rushes.index.follower import SELECTION
from rushes.library.envelopes import KINDS, Envelope, envelopes
from rushes.surfaces.http.deps import ADesk, Id, Name
from rushes.surfaces.http.pagination import Cursor, Limit, Page, page, unseal
from rushes.surfaces.http.schemas import RecordShape

router = APIRouter(tags=["artifacts"])
OURS = {word: kind for kind, word in KINDS.items()} | {kind: kind for kind in KINDS}


class SelectionIn(BaseModel):
    """Which run counts for a type of artifacts: one that is named, or "" for the newest."""

    artifact_type: Name
    run_id: Name = ""


@router.get("/artifacts")
def list_artifacts(
    request: Request,
    desk: ADesk,
    asset_id: Annotated[str, Query(max_length=100, description="the video")],
    artifact_type: Annotated[str, Query(max_length=100)] = "",
    run_id: Annotated[str, Query(max_length=100)] = "",
    cursor: Cursor = "",
    limit: Limit = 100,
) -> Page[Envelope]:
    """Observations of a video: of the run that is named, else of the one that readers see: pinned, or the newest."""
    kind = _kind(artifact_type) if artifact_type else ""
    video = desk.video(asset_id)
    run = desk.job(run_id).id if run_id else ""
    of = f"artifacts {video.id} {kind} {run}"
    at, n = map(int, (unseal(cursor, of) or "0:0").split(":"))
    some = list(islice(envelopes(desk.home, video.id, kind, run, (at, n)), limit + 1))
    more = "{}:{}".format(*some[limit - 1][0]) if len(some) > limit else ""
    return page(request, [envelope for _, envelope in some[:limit]], more, of)


@router.get("/selection")
def list_selections(desk: ADesk, asset_id: Annotated[str, Query(max_length=100)]) -> list[RecordShape]:
    """The runs that were pinned for a video."""
    return [RecordShape.of(r) for r in of_video(desk.home, SELECTION, desk.video(asset_id).id)]


@router.put("/selection/{asset_id}")
def select_run(desk: ADesk, asset_id: Id, body: SelectionIn) -> RecordShape:
    """Pin a run for a type of artifacts."""
    video = desk.video(asset_id)
    if body.run_id and body.run_id not in video.jobs:
        raise Refused(f"{body.run_id!r} is no run of this video", "List them: GET /api/v1/videos/{id}/runs")
    return RecordShape.of(select(desk.home, video.id, _kind(body.artifact_type), body.run_id))


def _kind(word: str) -> str:
    if word not in OURS:
        raise Refused(f"there is no type {word[:60]!r}", f"Choose one of: {', '.join(KINDS.values())}")
    return OURS[word]
