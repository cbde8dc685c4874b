"""The documents' own routes, as thin aliases of `/api/v1`; pages of the same name belong to the web surface."""

from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import JSONResponse, RedirectResponse, Response

from rushes.domain.errors import NotFound
from rushes.library import Wish
from rushes.library.desk import video_of
from rushes.surfaces.api import artifacts, clips, events, paths, tasks, videos
from rushes.surfaces.api.reach import ADesk, Id
from rushes.surfaces.api.shapes import FILES
from rushes.surfaces.api.uploads import uploads_of

router = APIRouter(include_in_schema=False)
for _one in (artifacts.router, clips.router, events.router, paths.router, tasks.router, tasks.steps):
    router.include_router(_one)


router.add_api_route("/videos", videos.list_videos)


@router.post("/jobs")
def begin_job(
    request: Request,
    mode: Annotated[str, Form(max_length=40)] = "",
    filename: Annotated[str, Form(max_length=200)] = "upload.mp4",
    size: Annotated[int, Form(ge=1, le=2**53)] = 1,
) -> Response:
    """A job that waits for its upload: its page for people, its id and where to send the film for programs."""
    upload = uploads_of(request).begin(filename, size, Wish(recipe="3d" if mode else ""))
    if "application/json" in request.headers.get("accept", ""):
        place = f"/api/v1/uploads/{upload.id}"
        return JSONResponse({"job_id": upload.job, "upload_url": place}, 201, {"Location": place})
    return RedirectResponse(f"/jobs/{upload.job}", 303)


@router.get("/jobs/{job_id}/play")
def play_job(desk: ADesk, job_id: Id) -> Response:
    """Where the finished film is played."""
    video = video_of(desk.job(job_id))
    proxy = desk.video(video).proxy if video else ""
    if not proxy:
        raise NotFound("there is nothing to play yet", "Watch the job: GET /api/v1/jobs/{id}")
    return RedirectResponse(FILES + proxy, 307)
