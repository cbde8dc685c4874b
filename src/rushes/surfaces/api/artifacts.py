"""Artifacts: observations in envelopes with their provenance, and the choice of the run that readers see."""

from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, Field

from rushes.domain.errors import Refused
from rushes.library.videos import EVERY
from rushes.library.videos.payloads import TYPES
from rushes.library.videos.runs import Envelope
from rushes.library.watching.paths import Record
from rushes.surfaces.api.artifact_schemas import check_payload
from rushes.surfaces.http.deps import LibraryDep, Name
from rushes.surfaces.http.schemas import Cursor, Limit, Page, RecordShape, page, unseal

router = APIRouter(tags=["artifacts"])
AssetId = Annotated[str, Path(pattern=r"^(\*|[A-Za-z0-9_.-]{1,200})$")]
OURS = {word: kind for kind, word in TYPES.items()} | {kind: kind for kind in TYPES}


class SelectionIn(BaseModel):
    """Which run of an artifact type readers see: the newest, a pinned one, or the newest of a profile."""

    artifact_type: Name
    policy: Literal["", "latest", "pinned", "profile"] = Field(
        default="", description="default: follows from the other fields"
    )
    run_id: Name = ""
    model_profile: Name = ""

    def policy_run(self) -> tuple[str, str]:
        """The selected run and profile; "" means any.

        Raises:
            Refused: the policy lacks what it names, or is another.
        """
        named = "pinned" if self.run_id else "profile" if self.model_profile else "latest"
        if (self.run_id and self.model_profile) or self.policy not in ("", named):
            hint = "Use latest alone, pinned with run_id, or profile with model_profile."
            raise Refused(f"policy {self.policy or named} does not match run_id and model_profile", hint)
        return self.run_id, self.model_profile


@dataclass(frozen=True, slots=True)
class SelectionShape(RecordShape):
    """The policy chosen for a video (`*`: all videos) and an artifact type, with its record."""

    asset_id: str
    artifact_type: str
    policy: str
    run_id: str
    model_profile: str

    @staticmethod
    def of(record: Record) -> "SelectionShape":
        """From the records."""
        kind, run, profile = (str(record.doc.get(name) or "") for name in ("kind", "run", "profile"))
        policy = "pinned" if run else "profile" if profile else "latest"
        chosen = (record.doc["video"], TYPES.get(kind, kind), policy, run, profile)
        return SelectionShape(record.id, record.version, record.doc, *chosen)


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
    """List observations of a video: those of the given run, else of the run that readers see (pinned or newest)."""
    kind = _kind(artifact_type) if artifact_type else ""
    video = library.videos.get(asset_id)
    run = library.jobs.get(run_id).id if run_id else ""
    of = f"artifacts {video.id} {kind} {run}"
    at, n = map(int, (unseal(request, cursor, of) or "0:0").split(":"))
    some = list(islice(library.videos.envelopes(video, kind, run, (at, n)), limit + 1))
    more = "{}:{}".format(*some[limit - 1][0]) if len(some) > limit else ""
    for _, envelope in some:
        check_payload(envelope.artifact_type, envelope.schema_version, envelope.payload_json)
    return page(request, [envelope for _, envelope in some[:limit]], more, of)


@router.get("/selection")
def list_selections(library: LibraryDep, asset_id: Annotated[str, Query(max_length=100)]) -> list[SelectionShape]:
    """List the selections for a video, or the defaults for all videos (`*`)."""
    video = None if asset_id == EVERY else library.videos.get(asset_id)
    return [SelectionShape.of(r) for r in library.videos.selected_runs(video)]


@router.put("/selection/{asset_id}")
def select_run(library: LibraryDep, asset_id: AssetId, body: SelectionIn) -> SelectionShape:
    """Choose which run of an artifact type readers see, for a video or for all videos (`*`)."""
    video = None if asset_id == EVERY else library.videos.get(asset_id)
    return SelectionShape.of(library.videos.select_run(video, _kind(body.artifact_type), *body.policy_run()))


def _kind(word: str) -> str:
    if word not in OURS:
        raise Refused(f"unknown type {word[:60]!r}", f"Choose from: {', '.join(TYPES.values())}")
    return OURS[word]
