"""Clips: time ranges cut out of videos on request; a worker cuts them."""

from dataclasses import asdict, dataclass
from typing import Annotated, Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from rushes.library.clips import ClipStatus
from rushes.surfaces.http.deps import Id, Key, LibraryDep, Name, accepted, once
from rushes.surfaces.http.schemas import FILES, Cursor, Limit, Page, page, unseal

router = APIRouter(tags=["clips"])
Subtitles = Literal["", "track", "burnt"]
Seconds = Annotated[float, Field(ge=0, le=10_000_000, allow_inf_nan=False)]


class ClipIn(BaseModel):
    """Start and end in seconds of video time; cut from the proxy or the original; subtitles as a track or burnt in."""

    video_id: Name
    t_start: Seconds
    t_end: Seconds
    padding_ms: int = Field(default=2000, ge=0, le=60_000)
    proxy: bool = False
    subtitles: Subtitles = ""


@dataclass(frozen=True, slots=True)
class ClipShape:
    """A clip and its status."""

    clip_id: str
    status: str  # queued, processing, done, failed, cancelled, cleared (ask for it again)
    video_id: str
    t_start: float
    t_end: float
    job: str
    url: str | None
    name: str  # what a download of it is called
    error: str | None = None
    created_at: str = ""
    expires_at: str = ""  # it may be deleted from then on; "" until it is done

    @staticmethod
    def of(clip: ClipStatus) -> "ClipShape":
        """From the library."""
        url = FILES + clip.published if clip.published else None
        name, span = _file_name(clip), (clip.start, clip.end)
        times = (clip.created_at, clip.expires_at)
        return ClipShape(clip.id, clip.status, clip.video, *span, clip.job, url, name, clip.error, *times)


@router.post("/clips", status_code=202, response_model=ClipShape)
def make_clip(request: Request, library: LibraryDep, body: ClipIn, key: Key = "") -> JSONResponse:
    """Request a clip; the same range again returns the same clip."""

    def make() -> JSONResponse:
        video, proxy, subtitles = library.videos.get(body.video_id), body.proxy, body.subtitles
        clip = library.clips.order(video, body.t_start, body.t_end, body.padding_ms, proxy=proxy, subtitles=subtitles)
        return accepted(asdict(ClipShape.of(clip)), f"/api/v1/clips/{clip.id}")

    return once(library, key, request, body.model_dump(), make)


@router.get("/clips")
def list_clips(request: Request, library: LibraryDep, cursor: Cursor = "", limit: Limit = 50) -> Page[ClipShape]:
    """List the requested clips."""
    rows, more = library.clips.page(unseal(request, cursor, "clip"), limit)
    return page(request, [ClipShape.of(clip) for clip in rows], more, "clip")


@router.get("/clips/{clip_id}")
def get_clip(library: LibraryDep, clip_id: Id) -> ClipShape:
    """Get a clip; `url` is set when it is cut."""
    return ClipShape.of(library.clips.get(clip_id))


@router.delete("/clips/{clip_id}", status_code=204)
def delete_clip(library: LibraryDep, clip_id: Id) -> Response:
    """Delete a clip and its file."""
    library.clips.delete(clip_id)
    return Response(status_code=204)


def _file_name(clip: ClipStatus) -> str:
    """`interview 1m03.500-1m07.000.mp4`: only characters that every file system accepts."""
    start, end = (f"{int(t // 60)}m{t % 60:06.3f}" for t in (clip.start, clip.end))
    return f"{clip.title} {start}-{end}.mp4"
