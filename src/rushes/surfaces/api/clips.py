"""Clips: a span cut out on request; asked for here, cut by a worker."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from rushes.domain.errors import NotFound
from rushes.domain.job import Job, JobState
from rushes.jobs.maintenance.video_removal import CLIP
from rushes.library.clips import ask, result_of
from rushes.library.desk import Desk
from rushes.records.port import Record
from rushes.surfaces.api.videos import stem
from rushes.surfaces.http.deps import ADesk, Id, Key, Name, accepted, once
from rushes.surfaces.http.pagination import Cursor, Limit, Page, page, unseal
from rushes.surfaces.http.schemas import FILES

router = APIRouter(tags=["clips"])
STATUS = {JobState.COMPLETED: "done", JobState.FAILED: "failed", JobState.CANCELLED: "cancelled"}
Subtitles = Literal["", "track", "burnt"]
Seconds = Annotated[float, Field(ge=0, le=10_000_000, allow_inf_nan=False)]


class ClipIn(BaseModel):
    """From and to in seconds of film time; from the proxy or the original; what is said beside or in the picture."""

    video_id: Name
    t_start: Seconds
    t_end: Seconds
    padding_ms: int = Field(default=2000, ge=0, le=60_000)
    proxy: bool = False
    subtitles: Subtitles = ""


@dataclass(frozen=True, slots=True)
class ClipShape:
    """A clip and how far it is."""

    clip_id: str
    status: str  # queued, processing, done, failed, cancelled, cleared (ask for it again)
    video_id: str
    t_start: float
    t_end: float
    job: str
    url: str | None
    name: str  # what a download of it is called
    error: str | None = None


@router.post("/clips", status_code=202, response_model=ClipShape)
def make_clip(request: Request, desk: ADesk, body: ClipIn, key: Key = "") -> JSONResponse:
    """Ask for a clip; the same span again is the same clip."""

    def make() -> JSONResponse:
        video = desk.video(body.video_id)
        start, end = (round(t * 1_000_000) for t in (body.t_start, body.t_end))
        job, id, _created = ask(
            desk.home, video, start, end, body.padding_ms, proxy=body.proxy, subtitles=body.subtitles
        )
        doc = {"job": job, "video": video.id, "t_start": body.t_start, "t_end": body.t_end, "name": stem(video)}
        record = desk.home.records.put(CLIP, desk.owner, id, doc | {"result": result_of(desk.home, job)})
        return accepted(asdict(_shapes(desk, [record])[0]), f"/api/v1/clips/{id}")

    return once(desk.home, key, request, body.model_dump(), make)


@router.get("/clips")
def list_clips(request: Request, desk: ADesk, cursor: Cursor = "", limit: Limit = 50) -> Page[ClipShape]:
    """Clips that were asked for."""
    rows, more = desk.home.records.list(CLIP, desk.owner, unseal(cursor, CLIP), limit)
    return page(request, _shapes(desk, rows), more, CLIP)


@router.get("/clips/{clip_id}")
def get_clip(desk: ADesk, clip_id: Id) -> ClipShape:
    """One clip; `url` is there when it is cut."""
    record = desk.home.records.get(CLIP, desk.owner, clip_id) if clip_id.isascii() else None
    if record is None:
        raise NotFound(f"there is no clip {clip_id[:60]!r}", "Ask for one: POST /api/v1/clips")
    desk.job(record.doc["job"])
    return _shapes(desk, [record])[0]


def _shapes(desk: Desk, records: Sequence[Record]) -> list[ClipShape]:
    """Those whose job is there; done is only what still is: gc clears clips after a while."""
    ids, ledger = [r.doc["job"] for r in records], desk.home.ledger
    jobs = {job.id: job for job in ledger.jobs(desk.owner, ids=ids).rows} if ids else {}
    over = [r for r in records if r.doc["job"] in jobs and jobs[r.doc["job"]].state is JobState.COMPLETED]
    keys = {r.id: r.doc.get("result") or result_of(desk.home, r.doc["job"]) for r in over}
    known = ledger.known(desk.owner, tuple(keys.values())) if keys else {}
    cleared = {id for id, key in keys.items() if key not in known}
    return [_shape(desk, r, jobs[r.doc["job"]], r.id in cleared) for r in records if r.doc["job"] in jobs]


def _shape(desk: Desk, record: Record, job: Job, cleared: bool) -> ClipShape:
    doc = record.doc
    status = "cleared" if cleared else STATUS.get(job.state, "processing" if job.started_at else "queued")
    url = f"{FILES}videos/clips/{doc['video']}/{record.id}.mp4" if status == "done" else None
    dead = next((s.error for s in desk.steps(job.id) if s.error), None) if status == "failed" else None
    start, end = doc["t_start"], doc["t_end"]
    return ClipShape(record.id, status, doc["video"], start, end, job.id, url, _name(doc), dead)


def _name(doc: Mapping[str, Any]) -> str:
    """`interview 1m03.500-1m07.000.mp4`: no sign in it that a file system refuses."""
    start, end = (f"{int(t // 60)}m{t % 60:06.3f}" for t in (doc["t_start"], doc["t_end"]))
    return f"{doc.get('name', 'clip')} {start}-{end}.mp4"
