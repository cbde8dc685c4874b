"""Jobs in queues of one's own: put in, and what they have made; somebody's workers take them over gRPC."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Response
from fastapi.responses import JSONResponse, RedirectResponse
from pydantic import BaseModel, Field

from rushes.domain.errors import NotFound
from rushes.surfaces.http.deps import ActiveDep, Id, LibraryDep, accepted
from rushes.surfaces.http.schemas import JobShape

router = APIRouter(tags=["queues"])
Queue = Annotated[str, Path(max_length=100)]
ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}},
    307: {"description": "It is large and in a bucket: read it there by GET, within an hour."},
}


class QueuedJobIn(BaseModel):
    """A job for somebody's worker; the same `request_id` again answers the job there is."""

    request_id: str = Field(max_length=200)
    params: str = Field(default="", max_length=900_000, description="what its worker gets, as UTF-8")
    priority: int = Field(default=0, ge=-1000, le=1000)


@router.post("/queues/{queue}/jobs", status_code=202, response_model=JobShape)
def enqueue_job(library: LibraryDep, active: ActiveDep, queue: Queue, body: QueuedJobIn) -> JSONResponse:
    """Put a job into a custom queue."""
    job = library.queues.enqueue(queue, body.request_id, body.params.encode(), body.priority)
    return accepted(JobShape.of(job, active), f"/api/v1/jobs/{job.id}")


@router.get("/jobs/{job_id}/result", response_class=Response, responses=ANSWERS)
def get_result(library: LibraryDep, job_id: Id) -> Response:
    """Get what a completed job of a custom queue has made."""
    found = library.queues.result(job_id)
    if found.address:
        return RedirectResponse(found.address, 307, {"Cache-Control": "no-store"})
    if not found.data:
        raise NotFound("this job has no result", "Look at its state: the job may not be completed.")
    return Response(found.data, media_type="application/octet-stream")
