"""stereo-spot: a job that waits for its upload, its events, its film; pages of the same name are for people."""

from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import JSONResponse, RedirectResponse, Response

from rushes.domain.errors import NotFound, Refused
from rushes.library import JobRequest
from rushes.library.jobs import video_of
from rushes.library.videos.stereo import StereoOptions
from rushes.surfaces.api import events, jobs
from rushes.surfaces.http.deps import Id, LibraryDep, caller_of
from rushes.surfaces.http.openapi import JsonRoute
from rushes.surfaces.http.schemas import FILES

router = APIRouter()
for_programs = APIRouter(route_class=JsonRoute)
router.include_router(events.router)
for_programs.add_api_route("/jobs", jobs.list_jobs)
for_programs.add_api_route("/jobs/{job_id}", jobs.get_job)


@router.post("/jobs")
def begin_job(
    request: Request,
    library: LibraryDep,
    mode: Annotated[str, Form(max_length=40)] = "",
    filename: Annotated[str, Form(max_length=200)] = "upload.mp4",
    size: Annotated[int, Form(ge=0, le=2**53)] = 0,
) -> Response:
    """A job that waits for its upload: its page for people, its id and where to send the film for programs."""
    if not size:
        raise Refused("size is required", "Send size=BYTES with the form; then upload the file to upload_url.")
    wanted, caller = StereoOptions(mode).wanted() if mode else JobRequest(), caller_of(request).name
    upload = library.uploads.begin(filename, size, wanted, caller=caller)
    if "application/json" in request.headers.get("accept", ""):
        place = f"/api/v1/uploads/{upload.id}"
        return JSONResponse({"job_id": upload.job, "upload_url": place}, 201, {"Location": place})
    return RedirectResponse(f"/jobs/{upload.job}", 303)


@router.get("/jobs/{job_id}/play")
def play_job(library: LibraryDep, job_id: Id) -> Response:
    """Where the finished film is played."""
    video = video_of(library.jobs.get(job_id))
    proxy = library.videos.get(video).proxy if video else ""
    if not proxy:
        raise NotFound("nothing to play yet", "See the job: GET /api/v1/jobs/{id}")
    return RedirectResponse(FILES + proxy, 307)
