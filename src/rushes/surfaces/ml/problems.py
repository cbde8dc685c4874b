"""Errors of the inference service: 400 is the caller's, 429 comes with a time, 500 means that a model failed."""

from collections.abc import Mapping

from fastapi import FastAPI

from rushes.domain import errors
from rushes.domain.errors import RushesError
from rushes.library.inference import Busy, Cancelled
from rushes.surfaces.http import problems

HUNG_UP = 499  # nobody reads it; it stands in the log
STATUS: Mapping[type[RushesError], int] = {  # the first that fits
    Busy: 429,
    Cancelled: HUNG_UP,
    errors.NotAllowed: 403,
    errors.OverLimit: 413,
    errors.OtherModel: 409,
    errors.Refused: 400,
    errors.NeverWorks: 400,
}


def answer_errors(app: FastAPI) -> None:
    """Whatever goes wrong is answered as a problem."""
    problems.answer_errors(app, STATUS, hints={}, invalid=400)
