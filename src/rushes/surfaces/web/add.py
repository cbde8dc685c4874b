"""Adding films: from this computer, from a folder the server sees, from a bucket; what is wanted of them beside it."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import JSONResponse, Response

from rushes.annotations import PATH, every, keep_path, take_back
from rushes.blobs.local_disk import free_bytes
from rushes.domain.stage import StageSpec
from rushes.estimates.forecast import forecast
from rushes.home import machine
from rushes.jobs.intake import missing_models
from rushes.library import IntakeResult, JobRequest, Library
from rushes.plan.recipes import RECIPES, stages_of
from rushes.surfaces.api.uploads import uploads_of
from rushes.surfaces.api.videos import check_places
from rushes.surfaces.http.deps import ALibrary, Place
from rushes.surfaces.web.browse_server import SHOWN, there
from rushes.surfaces.web.view import back, render
from rushes.surfaces.web.wording import plural
from rushes.uploads.state import Upload

router = APIRouter(include_in_schema=False)
PART = 16_000_000  # bytes of an upload that are sent at once: what a lost line costs at most
KNOWN = 2000  # films that are looked through for one that is here already
HOUR = 3600.0  # of film, while none is chosen
WORDS = {
    "searchable": "Speech, text, objects, faces, places, shots; a proxy to watch",
    "subtitles": "Speech only; SRT and VTT beside the film",
    "text": "What is written on screen, nothing else",
    "analyse": "All observations, without a proxy to watch",
    "3d": "Side by side or anaglyph",
    "everything": "All of it, with 3D",
}
From = Literal["upload", "folder", "bucket"]


@router.get("/add")
def show_add(
    request: Request,
    library: ALibrary,
    source: Annotated[From, Query(alias="from")] = "upload",
    place: Annotated[str, Query(max_length=2000)] = "",
    recipe: Annotated[str, Query(max_length=40)] = "",
) -> Response:
    """The page."""
    chosen = recipe if recipe in RECIPES else library.home.settings.recipe
    return render(
        request,
        "add.html",
        source=source,
        place=place,
        there=there(request, library, place) if place else None,
        recipes=_recipes(library, HOUR, (1920, 1080)),
        chosen=chosen,
        usual=library.home.settings.recipe,
        uploads=_unfinished(request),
        paths=list(every(library.home, PATH)),
        roots=_roots(request, library),
        room=free_bytes(library.home.blobs),
        profile=library.home.settings.profile,
        missing=missing_models(library.home, JobRequest(recipe=chosen)),
        shown=SHOWN,
        part=PART,
        straight=library.home.multipart is not None,
    )


@router.get("/add/forecast")
def show_forecast(
    library: ALibrary,
    seconds: Annotated[float, Query(ge=0, le=10**7, allow_inf_nan=False)] = HOUR,
    width: Annotated[int, Query(ge=1, le=20_000)] = 1920,
    height: Annotated[int, Query(ge=1, le=20_000)] = 1080,
) -> JSONResponse:
    """How long so much film takes by each recipe, for the page's script."""
    found = _recipes(library, seconds, (width, height))
    return JSONResponse({r["name"]: {name: r[name] for name in ("whole", "size", "stages", "longest")} for r in found})


@router.get("/add/known")
def show_known(library: ALibrary, size: Annotated[list[int], Query(max_length=1000)]) -> JSONResponse:
    """Films of just these sizes among the newest, each with its hash: the page's script compares.

    An older one is sent again, and its job finds everything done.
    """
    wanted, found, cursor = set(size), list[dict[str, Any]](), ""
    for _ in range(KNOWN // 500):
        rows, cursor = library.videos(cursor, 500)
        found += [{"size": v.size, "sha256": v.sha256, "id": v.id, "name": v.name} for v in rows if v.size in wanted]
        if not cursor:
            break
    return JSONResponse(found)


@router.post("/add")
def add_place(
    request: Request,
    library: ALibrary,
    place: Annotated[Place, Form()],
    recipe: Annotated[str, Form(max_length=40)] = "",
    profile: Annotated[str, Form(max_length=40)] = "",
    language: Annotated[str, Form(max_length=40)] = "",
    remember: Annotated[bool, Form()] = False,
) -> Response:
    """Take in everything at a place."""
    check_places(request, library.home, [place])
    added = library.add([place], JobRequest(recipe=recipe, profile=profile, language=language))
    if remember:
        keep_path(library.home, place)
    return back(request, _told(added), "/jobs" if any(a.job for a in added) else "")


@router.post("/add/forget")
def forget(request: Request, library: ALibrary, path: Annotated[str, Form(max_length=100)]) -> Response:
    """Forget a place; its videos stay."""
    take_back(library.home, PATH, path)
    return back(request, "Forgotten. Its videos stay.")


@router.post("/add/drop")
def drop_upload(request: Request, upload: Annotated[str, Form(max_length=100)]) -> Response:
    """Give an unfinished upload up."""
    uploads = uploads_of(request)
    found = uploads.get(upload)
    if found.state == "open":
        uploads.drop(found)
    return back(request, "Given up; its bytes are deleted.")


def _recipes(library: Library, seconds: float, pixels: tuple[int, int]) -> list[dict[str, Any]]:
    cards = library.home.cards
    return [_recipe(library, name, seconds, pixels, cards) for name in RECIPES]


def _recipe(
    library: Library, name: str, seconds: float, pixels: tuple[int, int], cards: Mapping[str, StageSpec]
) -> dict[str, Any]:
    found = forecast(library.home, name, seconds, pixels, machine())
    return {
        "name": name,
        "words": WORDS.get(name, ", ".join(stages_of(name, cards))),
        "whole": None if found.unknown else found.whole,
        "stages": found.stages,
        "unknown": found.unknown,
        "size": found.size,
        "longest": max((high for _, high in found.stages.values()), default=1.0),
    }


def _unfinished(request: Request) -> list[Upload]:
    return [u for u in uploads_of(request).all() if u.state == "open"]


def _roots(request: Request, library: Library) -> list[str]:
    named = [p.strip() for p in library.home.settings.sources.split(",") if p.strip()]
    here = [str(library.home.originals)] if request.app.state.door.open else []
    return list(dict.fromkeys([*named, *here]))


def _told(added: Iterable[IntakeResult]) -> str:
    rows = list(added)
    new, here = sum(a.created for a in rows), sum(bool(a.job) and not a.created for a in rows)
    faults = [a for a in rows if a.error]
    parts = [f"{plural(new, 'film')} taken in"]
    if here:
        parts.append(f"{here} already here")
    if faults:
        parts.append(f"{len(faults)} cannot be: {faults[0].error}")
    return "; ".join(parts) + "."
