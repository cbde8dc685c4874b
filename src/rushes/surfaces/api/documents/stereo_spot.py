"""stereo-spot: a job that waits for its upload, its events, its film in 3D; pages of the same name are for people."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse, Response
from pydantic import BaseModel, Field, ValidationError

from rushes.domain.errors import NotFound
from rushes.domain.job import FINAL, Job
from rushes.library import JobRequest, Library
from rushes.library.jobs import chunks_of, video_of
from rushes.library.videos.stereo import StereoOptions, film_of, mode_of
from rushes.surfaces.api import events, media
from rushes.surfaces.http.deps import ActiveDep, Id, LibraryDep, caller_of
from rushes.surfaces.http.openapi import JsonRoute
from rushes.surfaces.http.schemas import FILES, Cursor, JobShape, Limit, Page, page, unseal
from rushes.surfaces.words import ActiveJobs

router = APIRouter()
for_programs = APIRouter(route_class=JsonRoute)
router.include_router(events.router)
UPLOADS = "/api/v1/uploads/"
JOBS = "all jobs"  # the list that its cursors belong to


@dataclass(frozen=True, slots=True)
class JobItem(JobShape):
    """A job in the document's words beside ours."""

    job_id: str = ""
    mode: str = ""
    status: str = ""
    completed_at: str | None = None
    total_segments: int | None = None
    upload_url: str = ""  # while its film is awaited

    @staticmethod
    def of(job: Job, active: ActiveJobs, upload_url: str = "") -> "JobItem":
        """From the ledger's row."""
        shape = JobShape.of(job, active)
        ours = {name: getattr(shape, name) for name in JobShape.__slots__}
        at = job.finished_at if job.state in FINAL else None
        return JobItem(**ours, job_id=job.id, mode=mode_of(job), status=job.state.value, completed_at=at,
                       total_segments=chunks_of(job), upload_url=upload_url)  # fmt: skip


@for_programs.get("/jobs")
def list_all_jobs(
    request: Request, library: LibraryDep, active: ActiveDep, cursor: Cursor = "", limit: Limit = 50
) -> Page[JobItem]:
    """Jobs in progress, the newest first; then the others, the last to finish first."""
    found = library.jobs.all_page(unseal(request, cursor, JOBS), limit)
    return page(request, [JobItem.of(job, active) for job in found.rows], found.cursor, JOBS)


@for_programs.get("/jobs/{job_id}")
def get_job_item(request: Request, library: LibraryDep, active: ActiveDep, job_id: Id) -> JobItem:
    """One job."""
    job = library.jobs.get(job_id)
    return JobItem.of(job, active, upload_url(request, library, job))


class CreateJob(BaseModel):
    """What is asked of a new job."""

    mode: str = Field("", max_length=40)
    filename: str = Field("source.mp4", max_length=200)
    size: int = Field(0, ge=0, le=2**53)


async def _create_job(request: Request) -> CreateJob:
    """The request as a form or as JSON."""
    try:
        if _is_json(request):
            return CreateJob.model_validate_json(await request.body())
        return CreateJob.model_validate(dict(await request.form()))
    except ValidationError as e:
        raise RequestValidationError([{**error, "loc": ("body", *error["loc"])} for error in e.errors()]) from e


def _is_json(request: Request) -> bool:
    """Whether a request is written in JSON."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"


@router.post("/jobs")
def begin_job(request: Request, library: LibraryDep, asked: Annotated[CreateJob, Depends(_create_job)]) -> Response:
    """A job that waits for its upload: its page for people, its id and where to send the film for programs."""
    wanted = StereoOptions(asked.mode).wanted(segments=True) if asked.mode else JobRequest()
    name, size, caller = asked.filename, asked.size, caller_of(request).name
    upload = library.uploads.begin(name, size, wanted, direct=True, whole=True, caller=caller)
    if "application/json" not in request.headers.get("accept", "") and not _is_json(request):
        return RedirectResponse(f"/jobs/{upload.job}", 303)
    said = {"job_id": upload.job, "upload_url": upload_url(request, library, library.jobs.get(upload.job))}
    return JSONResponse(said, 201, {"Location": UPLOADS + upload.id})


@router.get("/jobs/{job_id}/play")
def play_job(library: LibraryDep, job_id: Id) -> Response:
    """Where the finished film is played: in the bucket, if it lies there."""
    job = library.jobs.get(job_id)
    if film := film_of(library.home, job):
        return RedirectResponse(library.videos.signed_address(film.name) or FILES + film.name, 307)
    video = video_of(job)
    proxy = library.videos.get(video).proxy if video else ""
    if not proxy:
        raise NotFound("nothing to play yet", "See the job: GET /api/v1/jobs/{id}")
    return RedirectResponse(FILES + proxy, 307)


@router.get("/jobs/{job_id}/download")
def download_job(request: Request, library: LibraryDep, job_id: Id) -> Response:
    """The finished film in 3D as a file with a name."""
    film = film_of(library.home, library.jobs.get(job_id))
    if film is None:
        raise NotFound("nothing to download yet", "See the job: GET /api/v1/jobs/{id}")
    named = media.content_disposition(film.file)
    address = library.videos.signed_address(film.name, named)
    return RedirectResponse(address, 307) if address else media.published(request, library, film.name, named)


def upload_url(request: Request, library: Library, job: Job) -> str:
    """Where the film of a job is PUT to as a whole, "" if it is not awaited."""
    upload = library.uploads.of_job(job) if not job.facts else None
    if upload is None or upload.state != "open":
        return ""
    return library.puts.address(upload) or f"{request.base_url}{UPLOADS.removeprefix('/')}{upload.id}"
