"""Add videos: upload them, or name a folder of the server or a bucket; with a recipe."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import JSONResponse, Response

from rushes.domain.errors import Refused, RushesError
from rushes.domain.video import BUCKETS
from rushes.library import IntakeResult, JobRequest, Library
from rushes.library.videos.stereo import in_format
from rushes.library.watching.paths import FoundFile, SkippedFile
from rushes.surfaces.api.videos import add_places, check_places, roots_of
from rushes.surfaces.http.deps import LibraryDep, Place
from rushes.surfaces.web.pages.video import VIEWS
from rushes.surfaces.web.view import back, render
from rushes.surfaces.words import plural

router = APIRouter(include_in_schema=False)
PART = 16_000_000  # bytes of an upload that are sent at once: what a lost line costs at most
KNOWN = 2000  # films that are looked through for one that is here already
HOUR = 3600.0  # of film, while none is chosen
WORDS = {
    "searchable": "Speech, text, objects, faces, places, shots; a preview to watch",
    "subtitles": "Speech only; SRT and VTT files",
    "text": "Captions, signs and titles in the picture",
    "analyse": "The same without a preview to watch",
    "3d": "Side by side or anaglyph",
    "everything": "Everything, including 3D",
}
From = Literal["upload", "folder", "bucket"]


@router.get("/add")
def show_add(
    request: Request,
    library: LibraryDep,
    source: Annotated[From, Query(alias="from")] = "upload",
    place: Annotated[str, Query(max_length=2000)] = "",
    recipe: Annotated[str, Query(max_length=40)] = "",
) -> Response:
    """The page."""
    chosen = recipe if recipe in library.recipes() else library.settings.recipe
    return render(
        request,
        "add.html",
        source=source,
        place=place,
        listing=list_place(request, library, place) if place else None,
        recipes=_recipes(library, HOUR, (1920, 1080)),
        chosen=chosen,
        usual=library.settings.recipe,
        uploads=[u for u in library.uploads.all() if u.state == "open"],
        paths=list(library.paths.all()),
        roots=roots_of(request, library),
        room=library.maintenance.free_bytes(),
        profile=library.settings.profile,
        missing=library.missing_models(JobRequest(recipe=chosen)),
        shown=SHOWN,
        part=PART,
        direct=bool(library.uploads.bucket_origin),
        views=VIEWS,
    )


@router.get("/add/forecast")
def show_forecast(
    library: LibraryDep,
    seconds: Annotated[float, Query(ge=0, le=10**7, allow_inf_nan=False)] = HOUR,
    width: Annotated[int, Query(ge=1, le=20_000)] = 1920,
    height: Annotated[int, Query(ge=1, le=20_000)] = 1080,
) -> JSONResponse:
    """How long so much film takes by each recipe, for the page's script."""
    found = _recipes(library, seconds, (width, height))
    return JSONResponse({r["name"]: {name: r[name] for name in ("whole", "size", "stages", "longest")} for r in found})


@router.get("/add/known")
def show_known(library: LibraryDep, size: Annotated[list[int], Query(max_length=1000)]) -> JSONResponse:
    """Films of just these sizes among the newest, each with its hash: the page's script compares.

    An older one is sent again, and its job finds everything done.
    """
    wanted, found, cursor = set(size), list[dict[str, Any]](), ""
    for _ in range(KNOWN // 500):
        rows, cursor = library.videos.page(cursor, 500)
        found += [{"size": v.size, "sha256": v.sha256, "id": v.id, "name": v.name} for v in rows if v.size in wanted]
        if not cursor:
            break
    return JSONResponse(found)


@router.post("/add")
def add_place(
    request: Request,
    library: LibraryDep,
    place: Annotated[Place, Form()],
    recipe: Annotated[str, Form(max_length=40)] = "",
    profile: Annotated[str, Form(max_length=40)] = "",
    language: Annotated[str, Form(max_length=40)] = "",
    format: Annotated[str, Form(max_length=40)] = "",
    remember: Annotated[bool, Form()] = False,
) -> Response:
    """Take in everything at a place."""
    wanted = in_format(JobRequest(recipe=recipe, profile=profile, language=language), format)
    added = add_places(request, library, [place], wanted)
    if remember:
        library.paths.add(place)
    return back(request, _told(added), "/jobs" if any(a.job for a in added) else "")


@router.post("/add/forget")
def forget(request: Request, library: LibraryDep, path: Annotated[str, Form(max_length=100)]) -> Response:
    """Forget a place; its videos stay."""
    library.paths.remove(path)
    return back(request, "Removed. Its videos are kept.")


@router.post("/add/drop")
def cancel_upload(request: Request, library: LibraryDep, upload: Annotated[str, Form(max_length=100)]) -> Response:
    """Give an unfinished upload up."""
    found = library.uploads.get(upload)
    if found.state == "open":
        library.uploads.drop(found)
    return back(request, "Upload discarded; its data is deleted.")


def _recipes(library: Library, seconds: float, pixels: tuple[int, int]) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "words": WORDS.get(name, ", ".join(stages)),
            "whole": None if found.unknown else found.seconds,
            "stages": found.stages,
            "unknown": found.unknown,
            "size": found.size,
            "longest": max((high for _, high in found.stages.values()), default=1.0),
        }
        for name, stages in library.recipes().items()
        for found in [library.estimates.of_recipe(name, seconds, pixels)]
    ]


def _told(added: Iterable[IntakeResult]) -> str:
    rows = list(added)
    new, here = sum(a.created for a in rows), sum(bool(a.job) and not a.created for a in rows)
    faults = [a for a in rows if a.error]
    parts = [f"{plural(new, 'video')} added"]
    if here:
        parts.append(f"{here} already in the library")
    if faults:
        parts.append(f"{len(faults)} could not be added: {faults[0].error}")
    return "; ".join(parts) + "."


LOOKS = 1000  # entries that are looked at
SHOWN = 50  # of them that are named


@dataclass(frozen=True, slots=True)
class Listing:
    """A place as it is now, or why it cannot be looked at."""

    place: str
    films: list[tuple[str, int]] = field(default_factory=list)  # name, bytes
    more: bool = False
    faults: list[tuple[str, str]] = field(default_factory=list)  # name, why
    folders: list[str] = field(default_factory=list)
    parent: str = ""
    error: str = ""
    hint: str = ""


def list_place(request: Request, library: Library, place: str) -> Listing:
    """Look, without taking anything in."""
    try:
        looked = _look(request, library, place)
    except RushesError as e:
        return Listing(place, error=str(e), hint=e.advice)
    films = [(e.name, e.size) for e in looked if isinstance(e, FoundFile)]
    faults = [(Path(e.path).name, e.reason) for e in looked if isinstance(e, SkippedFile) and e.fault]
    return Listing(place, films, len(looked) > LOOKS, faults, _folders(place), _parent(place))


def _look(request: Request, library: Library, place: str) -> list[FoundFile | SkippedFile]:
    if not place.startswith(("/", *BUCKETS)) or "\0" in place:
        raise Refused("the path must start with /, s3://, gs:// or az://", "Enter the full path on the server.")
    check_places(request, library, [place])
    return library.paths.look(place, LOOKS + 1)


def _folders(place: str) -> list[str]:
    if place.startswith(BUCKETS):
        return []
    try:
        inside = sorted(p.name for p in Path(place).iterdir() if p.is_dir() and not p.name.startswith("."))
    except OSError:
        return []
    return inside[:SHOWN]


def _parent(place: str) -> str:
    return "" if place.startswith(BUCKETS) or place == "/" else str(Path(place).parent)
