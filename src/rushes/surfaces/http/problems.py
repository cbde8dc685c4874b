"""Errors for programs: RFC 9457 problem documents made from the error tree, each with a hint."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from rushes.domain import errors
from rushes.domain.errors import NotFound, RushesError
from rushes.domain.text import clean_text
from rushes.library import UploadBusy
from rushes.library.access.throttle import TooManyTries
from rushes.library.idempotency import Conflict
from rushes.surfaces.http.bodies import TooManyAtOnce
from rushes.telemetry import log

TYPE = "application/problem+json"
STATUS: Mapping[type[RushesError], int] = {  # the first that fits, so the finer ones stand first
    TooManyTries: 429,
    TooManyAtOnce: 429,
    errors.Throttled: 429,
    NotFound: 404,
    errors.Requested: 202,
    errors.NotAllowed: 403,
    errors.OverLimit: 413,
    errors.StaleToken: 409,
    UploadBusy: 423,
    errors.Refused: 400,
    errors.SourceMissing: 409,
    errors.SourceChanged: 409,
    errors.BadMedia: 422,
    errors.TryAgain: 503,
}
HINTS = {
    "video": "List videos: GET /api/v1/videos",
    "job": "List jobs: GET /api/v1/jobs",
    "task": "List tasks: GET /api/v1/jobs/{id}/tasks",
    "step": "List steps: GET /api/v1/jobs/{id}/steps",
    "worker": "List them: GET /api/v1/workers",
    "upload": "Start one: POST /api/v1/uploads",
    "clip": "Request one: POST /api/v1/clips",
    "path": "List them: GET /api/v1/paths",
}  # what is not found -> where such things are listed
TITLES = {202: "Accepted", 400: "Request refused", 401: "Authentication required", 403: "Not allowed",
          404: "Not found", 405: "No method", 408: "Too slow", 409: "Not now", 413: "Too large", 415: "Wrong type",
          421: "Wrong host", 422: "Not clear", 423: "In use", 429: "Too many", 500: "A bug",
          503: "Try again"}  # fmt: skip


def problem(
    status: int, detail: str, hint: str = "", code: str = "", headers: Mapping[str, str] | None = None, **more: Any
) -> JSONResponse:
    """One problem document; 401, 429 and 503 say what to do next in their headers."""
    title = TITLES.get(status, "Not possible")
    code = code or "".join(word.capitalize() for word in title.split())
    doc = {"type": "about:blank", "title": title, "status": status, "detail": clean_text(detail), "code": code}
    retryable = status in {408, 423, 429, 503}
    said = dict(headers or {})
    if status in {429, 503}:
        said.setdefault("Retry-After", "5")
    body = {**doc, "hint": clean_text(hint), "retryable": retryable, **more}
    return JSONResponse(body, status, said, media_type=TYPE)


def status_of(error: RushesError, statuses: Mapping[type[RushesError], int] = STATUS) -> int:
    """The HTTP status of an error."""
    return next((status for kind, status in statuses.items() if isinstance(error, kind)), 500)


def answer_errors(
    app: FastAPI,
    statuses: Mapping[type[RushesError], int] = STATUS,
    hints: Mapping[str, str] = HINTS,
    invalid: int = 422,
) -> None:
    """Answer every error as a problem document; `invalid` is the status for requests that cannot be parsed."""

    async def ours(_request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RushesError)
        if status_of(error, statuses) == 500:
            log.error("%s", error, exc_info=error)
        return problem_of(error, statuses, hints)

    app.add_exception_handler(RushesError, ours)
    app.add_exception_handler(Conflict, _conflict)
    app.add_exception_handler(RequestValidationError, partial(_invalid, status=invalid))
    app.add_exception_handler(HTTPException, _plain)
    app.add_exception_handler(Exception, _bug)


def problem_of(
    error: RushesError, statuses: Mapping[type[RushesError], int] = STATUS, hints: Mapping[str, str] = HINTS
) -> JSONResponse:
    """The problem document of an error."""
    hint = hints.get(error.what, error.advice) if isinstance(error, NotFound) else error.advice
    wait = getattr(error, "retry_after", 0)
    said = {"Retry-After": str(wait)} if wait else None
    return problem(status_of(error, statuses), str(error), hint, type(error).__name__, said)


async def _conflict(_request: Request, error: Exception) -> JSONResponse:
    return problem(409, str(error), "Read it again, then retry.", "Conflict")


async def _invalid(_request: Request, error: Exception, status: int) -> JSONResponse:
    """What was sent is not sent back: it may be a secret, or no text at all."""
    assert isinstance(error, RequestValidationError)
    told = [(".".join(map(str, e["loc"])), e["msg"]) for e in error.errors()]
    faults = [{"at": clean_text(at), "message": clean_text(message)} for at, message in told]
    return problem(status, "the request is invalid", "See /openapi.json.", "Invalid", errors=faults[:20])


async def _plain(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    return problem(error.status_code, str(error.detail), "See /openapi.json.", headers=error.headers)


async def _bug(request: Request, error: Exception) -> JSONResponse:
    log.error("%s %s: %s", request.method, request.url.path, error, exc_info=error)
    return problem(500, "internal error in rushes", RushesError.hint, "Bug")
