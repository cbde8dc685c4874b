"""Paths: places that films come from, remembered, checked and scanned."""

from dataclasses import dataclass

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from rushes.library.paths import FoundFile, SkippedFile
from rushes.surfaces.api.recipes import JobRequestIn
from rushes.surfaces.api.videos import AddedShape, answer_added, check_places
from rushes.surfaces.http.deps import Id, LibraryDep, Place, active_of
from rushes.surfaces.http.schemas import RecordShape

router = APIRouter(tags=["paths"])
LOOKS = 1000  # entries that a check looks at


class PathIn(BaseModel):
    """An absolute path, or s3://bucket/prefix, as the server sees it."""

    path: Place


@dataclass(frozen=True, slots=True)
class PathCheck:
    """What is at a place: films, and what cannot be taken in."""

    path: str
    films: int
    more: bool
    faults: list[str]


@router.get("/paths")
def list_paths(library: LibraryDep) -> list[RecordShape]:
    """The places that are remembered."""
    return [RecordShape.of(r) for r in library.paths.all()]


@router.post("/paths", status_code=201)
def add_path(request: Request, library: LibraryDep, body: PathIn) -> RecordShape:
    """Remember a place."""
    check_places(request, library, [body.path])
    return RecordShape.of(library.paths.add(body.path))


@router.delete("/paths/{path_id}", status_code=204)
def forget_path(library: LibraryDep, path_id: Id) -> Response:
    """Forget a place; its videos stay."""
    library.paths.remove(path_id)
    return Response(status_code=204)


@router.post("/paths/{path_id}/validate")
def validate_path(library: LibraryDep, path_id: Id) -> PathCheck:
    """Look at a place without taking anything in."""
    path = library.paths.get(path_id)
    looked = library.paths.look(path, LOOKS + 1)
    faults = [f"{e.path}: {e.reason}" for e in looked if isinstance(e, SkippedFile) and e.fault]
    return PathCheck(path, sum(isinstance(e, FoundFile) for e in looked), len(looked) > LOOKS, faults[:100])


@router.post("/paths/{path_id}/scan", status_code=202, response_model=list[AddedShape])
def scan_path(request: Request, library: LibraryDep, path_id: Id, body: JobRequestIn | None = None) -> JSONResponse:
    """Take in what is there."""
    path = library.paths.get(path_id)
    check_places(request, library, [path])
    return answer_added(library.add([path], (body or JobRequestIn()).wanted()), active_of(request))
