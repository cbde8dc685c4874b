"""The library: posters, facets and bulk actions; filters live in the address and stay after an action."""

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import Response

from rushes.domain.job import JobState
from rushes.library import JobRequest, Library
from rushes.library.search import Summary
from rushes.library.videos import Video
from rushes.surfaces.http.deps import LibraryDep
from rushes.surfaces.http.pagination import Cursor, seal, unseal
from rushes.surfaces.web.index_counts import index_counts
from rushes.surfaces.web.pages.video import KEPT
from rushes.surfaces.web.tiles import tiles
from rushes.surfaces.web.view import back, render
from rushes.surfaces.words import UNFINISHED, language_name, plural

router = APIRouter(include_in_schema=False)
PAGE = 20
LOOKED_AT = 200  # videos that one page of a filtered list looks at; the next page goes on from there
STATES = {"unfinished": UNFINISHED, "done": (JobState.COMPLETED,), "failed": (JobState.FAILED,)}
LABELS = {"object": "Object", "person": "Person", "place": "Place"}
Asked = Annotated[str, Query(max_length=200)]
Ids = Annotated[list[str], Form(max_length=100)]


@router.get("/library")
def show_library(
    request: Request,
    library: LibraryDep,
    name: Asked = "",
    state: Asked = "",
    lang: Asked = "",
    has: Asked = "",
    view: Asked = "",
    cursor: Cursor = "",
) -> Response:
    """Posters, newest first."""
    summary, keep = index_counts(request), _filter(name, state, lang)
    found, more = _having(library, has, keep, cursor) if has else _page(library, keep, cursor)
    return render(
        request,
        "library.html",
        tiles=tiles(library, found),
        cursor=seal(more, _of(has)) if more else "",
        summary=summary,
        facets=_facets(summary),
        filtered=bool(name or state or lang or has),
        view="list" if view == "list" else "grid",
        recipes=list(library.recipes()),
    )


@router.post("/library/process")
def process(request: Request, library: LibraryDep, video: Ids, recipe: Annotated[str, Form()]) -> Response:
    """Put chosen videos through a recipe; what is there already is adopted."""
    places = [library.videos.source(library.videos.get(id)) for id in video]
    jobs = [a.job for a in library.add(places, JobRequest(recipe=recipe)) if a.job]
    return back(request, f"{plural(len(jobs), 'job')} started with the recipe {recipe}.")


@router.post("/library/delete")
def delete(request: Request, library: LibraryDep, video: Ids, originals: Annotated[bool, Form()] = False) -> Response:
    """Delete chosen videos with all that was made of them."""
    for id in video:
        library.videos.remove(id, originals=originals)
    return back(request, f"{plural(len(video), 'video')} deleted. {KEPT}")


def _filter(name: str, state: str, lang: str) -> Callable[[Video], bool]:
    states, words = STATES.get(state, ()), name.casefold().split()

    def keeps(video: Video) -> bool:
        called = f"{video.name} {video.path}".casefold()
        spoken = not lang or lang in video.languages or (lang == "none" and not video.languages)
        return (not states or video.state in states) and spoken and all(word in called for word in words)

    return keeps


def _of(has: str) -> str:
    """The list that a cursor belongs to."""
    return f"having {has}" if has else "videos"


def _page(library: Library, keep: Callable[[Video], bool], cursor: str) -> tuple[list[Video], str]:
    """What a filter keeps; something rare may need several pages, so that none reads the whole library."""
    found: list[Video] = []
    at = unseal(cursor, _of(""))
    for _ in range(LOOKED_AT // PAGE):
        some, at = library.videos.page(at, PAGE)
        found += filter(keep, some)
        if not at or len(found) >= PAGE:
            break
    return found, at


def _having(library: Library, has: str, keep: Callable[[Video], bool], cursor: str) -> tuple[list[Video], str]:
    """Videos in which something is seen, most of it first."""
    kind, _, label = has.partition(":")
    shown = library.search(f'{kind}:"{label}"' if kind in LABELS else "", 1).facets.get("video", {})
    at = int(unseal(cursor, _of(has)) or 0)
    ids = list(shown)[at : at + PAGE]
    found = library.videos.get_many(ids)
    more = str(at + PAGE) if len(shown) > at + PAGE else ""
    return [found[id] for id in ids if id in found and keep(found[id])], more


def _facets(known: Summary) -> list[tuple[str, str, list[tuple[str, str, Any]]]]:
    spoken = [(code, language_name(code), None) for code in list(known.languages)[:8] if code]
    rows: list[tuple[str, str, list[tuple[str, str, Any]]]] = [
        ("State", "state", [(s, s, None) for s in STATES]),
        ("Language", "lang", [*spoken, ("none", "no speech", None)] if spoken else []),
    ]
    for kind, title in LABELS.items():
        labels = [(f"{kind}:{text}", text, None) for text in known.labels.get(kind, {}) if _has_a_name(text)][:8]
        rows.append((title, "has", labels))
    return rows


def _has_a_name(label: str) -> bool:
    return label != "unknown" and not label.startswith("per_")
