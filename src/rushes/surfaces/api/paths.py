"""Paths: places that films come from, remembered, checked and scanned."""

from dataclasses import dataclass
from itertools import islice

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from rushes.annotations import PATH, every, keep_path, take_back
from rushes.domain.errors import NotFound
from rushes.library.desk import Desk
from rushes.records.port import Record
from rushes.sources.port import FoundFile, SkippedFile
from rushes.surfaces.api.recipes import JobRequestIn
from rushes.surfaces.api.videos import AddedShape, check_places, taken
from rushes.surfaces.http.deps import ADesk, ALibrary, Id, Place
from rushes.surfaces.http.schemas import RecordShape

router = APIRouter(tags=["paths"])
LOOKS = 1000  # entries that a check looks at


class PathIn(BaseModel):
    """An absolute path, or s3://bucket/prefix, as the server sees it."""

    path: Place


@dataclass(frozen=True, slots=True)
class Checked:
    """What is at a place: films, and what cannot be taken in."""

    path: str
    films: int
    more: bool
    faults: list[str]


@router.get("/paths")
def list_paths(desk: ADesk) -> list[RecordShape]:
    """The places that are remembered."""
    return [RecordShape.of(r) for r in every(desk.home, PATH)]


@router.post("/paths", status_code=201)
def add_path(request: Request, desk: ADesk, body: PathIn) -> RecordShape:
    """Remember a place."""
    check_places(request, desk.home, [body.path])
    return RecordShape.of(keep_path(desk.home, body.path))


@router.delete("/paths/{path_id}", status_code=204)
def forget_path(desk: ADesk, path_id: Id) -> Response:
    """Forget a place; its videos stay."""
    take_back(desk.home, PATH, path_id)
    return Response(status_code=204)


@router.post("/paths/{path_id}/validate")
def validate_path(desk: ADesk, path_id: Id) -> Checked:
    """Look at a place without taking anything in."""
    path = str(_path(desk, path_id).doc["path"])
    looked = list(islice(desk.home.source(path).scan(), LOOKS + 1))
    faults = [f"{e.path}: {e.reason}" for e in looked if isinstance(e, SkippedFile) and e.fault]
    return Checked(path, sum(isinstance(e, FoundFile) for e in looked), len(looked) > LOOKS, faults[:100])


@router.post("/paths/{path_id}/scan", status_code=202, response_model=list[AddedShape])
def scan_path(
    request: Request, desk: ADesk, library: ALibrary, path_id: Id, body: JobRequestIn | None = None
) -> JSONResponse:
    """Take in what is there."""
    path = str(_path(desk, path_id).doc["path"])
    check_places(request, desk.home, [path])
    return taken(library.add([path], (body or JobRequestIn()).wanted()))


def _path(desk: Desk, id: str) -> Record:
    record = desk.home.records.get(PATH, desk.owner, id) if id.isascii() else None
    if record is None:
        raise NotFound(f"there is no path {id[:60]!r}", "List them: GET /api/v1/paths")
    return record
