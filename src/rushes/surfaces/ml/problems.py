"""Errors of the inference service: 400 is the caller's, 429 comes with a time, 500 means that a model failed."""

from collections.abc import Mapping

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from rushes.domain import errors
from rushes.domain.errors import RushesError
from rushes.domain.text import clean_text
from rushes.library.inference import Busy, Cancelled
from rushes.surfaces.http.problems import problem
from rushes.telemetry import log

HUNG_UP = 499  # nobody reads it; it stands in the log
STATUS: Mapping[type[RushesError], int] = {  # the first that fits
    Busy: 429,
    Cancelled: HUNG_UP,
    errors.NotAllowed: 403,
    errors.OverLimit: 413,
    errors.Refused: 400,
    errors.NeverWorks: 400,
}


def answer_errors(app: FastAPI) -> None:
    """Whatever goes wrong is answered as a problem."""
    app.add_exception_handler(RushesError, _ours)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _plain)
    app.add_exception_handler(Exception, _bug)


async def _ours(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RushesError)
    status = next((status for kind, status in STATUS.items() if isinstance(error, kind)), 500)
    wait = {"Retry-After": str(error.retry_after)} if isinstance(error, Busy) else None
    return problem(status, str(error), error.advice, type(error).__name__, wait)


async def _invalid(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    told = [(".".join(map(str, e["loc"])), e["msg"]) for e in error.errors()]
    faults = [{"at": clean_text(at), "message": clean_text(message)} for at, message in told]
    return problem(400, "the request is not what this expects", "See /openapi.json.", "Invalid", errors=faults[:20])


async def _plain(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    return problem(error.status_code, str(error.detail), "See /openapi.json.", headers=error.headers)


async def _bug(request: Request, error: Exception) -> JSONResponse:
    log.error("%s %s: %s", request.method, request.url.path, error, exc_info=error)
    return problem(500, "something went wrong inside rushes", RushesError.hint, "Bug")
