"""Dependencies of routes: the library of this process, the caller, validated texts, idempotent requests."""

import json
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Depends, Header, Path, Request
from fastapi.encoders import jsonable_encoder
from fastapi.responses import JSONResponse
from pydantic import StringConstraints

from rushes.domain.errors import NotAllowed, RushesError
from rushes.domain.job import Job
from rushes.domain.keys import digest
from rushes.library import Library
from rushes.library.access.accounts import Caller
from rushes.library.idempotency import Record, Requests
from rushes.surfaces.http.access import CALLER
from rushes.surfaces.http.problems import problem
from rushes.surfaces.words import ActiveJobs, active_jobs

Text = Annotated[str, StringConstraints(max_length=2000, pattern=r"^[^\x00-\x08\x0b\x0c\x0e-\x1f]*$")]
Place = Annotated[str, StringConstraints(max_length=2000, pattern=r"^(/|(s3|gs|az)://)[^\x00]*$")]
Name = Annotated[str, StringConstraints(max_length=100, pattern=r"^[^\x00-\x1f]*$")]
Id = Annotated[str, Path(pattern=r"^[A-Za-z0-9_.-]{1,200}$")]
Key = Annotated[str, Header(alias="Idempotency-Key", max_length=200, description="the same key is the same request")]
MOST = 2**53  # what JSON can carry everywhere


def library_of(request: Request) -> Library:
    """The one library of this process."""
    library: Library = request.app.state.library
    return library


def active_of(request: Request) -> ActiveJobs:
    """The jobs that are running now."""
    return active_jobs(library_of(request).jobs.workers())


def expected_of(library: Library, job: Job) -> tuple[float, float] | None:
    """Seconds that a job takes, as a range; None while that is unknown, or if what probe found was cleared away."""
    try:
        return library.jobs.expected(job) if job.facts else None
    except RushesError:
        return None


def caller_of(request: Request) -> Caller:
    """Who makes this request."""
    caller: Caller = request.scope[CALLER]
    return caller


def require_admin(request: Request) -> None:
    """Raises NotAllowed: the caller is no admin."""
    if not caller_of(request).admin:
        raise NotAllowed("only an admin may do this", "Ask an admin. In the terminal: rushes users ls")


LibraryDep = Annotated[Library, Depends(library_of)]
ActiveDep = Annotated[ActiveJobs, Depends(active_of)]
ADMIN = Depends(require_admin)


def once(library: Library, key: str, request: Request, body: Any, make: Callable[[], JSONResponse]) -> JSONResponse:
    """Answer a request with an Idempotency-Key as it was answered the first time; without a key, just do it.

    The same key with another body is refused (422), while the first is still being made 409.
    """
    if not key:
        return make()
    asked = digest([request.url.path, jsonable_encoder(body)])
    requests, id = Requests(library.home, request.app.state.incarnation), digest([request.method, key])[:40]
    taken = requests.take(id, asked)
    if taken is None:
        return _again(requests.get(id), asked)
    try:
        answer = make()
    except BaseException:
        requests.drop(taken)
        raise
    location = answer.headers.get("location", "")
    requests.answer(taken, {"status": answer.status_code, "body": json.loads(bytes(answer.body)), "location": location})
    return answer


def _again(record: Record | None, asked: str) -> JSONResponse:
    if record is None or (record.doc["asked"] == asked and "answer" not in record.doc):
        return problem(409, "the same request is still running", "Try again in a moment.", "Running")
    if record.doc["asked"] != asked:
        return problem(422, "this Idempotency-Key was used for another request", "Use a new key.", "KeyReused")
    said = record.doc["answer"]
    headers = {"Location": said["location"]} if said["location"] else None
    return JSONResponse(said["body"], said["status"], headers)


def accepted(body: Any, location: str, status: int = 202) -> JSONResponse:
    """202 with the address to follow."""
    return JSONResponse(jsonable_encoder(body), status, {"Location": location})
