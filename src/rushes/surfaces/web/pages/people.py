"""People: faces as cards; name, merge, split, hide, undo."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Annotated

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import Response

from rushes.domain.errors import NotFound
from rushes.library.people import Person, Track
from rushes.library.videos import Video
from rushes.surfaces.http.deps import LibraryDep
from rushes.surfaces.web.view import back, render
from rushes.surfaces.words import plural, unnamed_person

router = APIRouter(include_in_schema=False)
ON_CARD, IN_PANEL = 3, 60  # faces that are shown
CARDS = 120  # people on a page
ROOM = 1.7  # a face with what is round it, as a multiple of its own size
Who = Annotated[str, Form(max_length=100)]
FilmOf = Callable[[str], Video | None]


@dataclass(frozen=True, slots=True)
class Face:
    """One face at the moment it is seen best, and the part of the picture that shows it: x, y and side in pixels."""

    video: str
    film: str
    at_us: int
    sure: float
    crop: tuple[int, int, int]
    picture: tuple[int, int]

    @property
    def src(self) -> str:
        """The picture of that moment."""
        return f"/api/v1/videos/{self.video}/frames/{self.at_us // 1000}.jpg"


@dataclass(frozen=True, slots=True)
class Card:
    """A person with some faces, the clearest first."""

    id: str
    name: str
    hidden: bool
    count: int
    videos: int
    faces: tuple[Face, ...]
    tracks: int

    @property
    def called(self) -> str:
        """By name, else by something that people can say."""
        return self.name or unnamed_person(self.id)


@router.get("/people")
def show_people(
    request: Request,
    library: LibraryDep,
    who: Annotated[str, Query(max_length=100)] = "",
    hidden: Annotated[bool, Query()] = False,
    cursor: Annotated[int, Query(ge=0, le=10**6)] = 0,
) -> Response:
    """Everybody, and one of them beside."""
    known = library.people.with_tracks()
    listed = [p for p in known if hidden or not p.hidden]
    chosen = next((p for p in known if p.id == who), None)
    if who and chosen is None:
        raise NotFound(f"no person {who[:60]!r}", "The person may have been merged: see the list of people.")
    film_of: FilmOf = cache(lambda video: library.videos.get_many([video]).get(video))
    return render(
        request,
        "people.html",
        cards=[_card(p, film_of, ON_CARD) for p in listed[cursor : cursor + CARDS]],
        more=str(cursor + CARDS) if len(listed) > cursor + CARDS else "",
        everybody=len(listed),
        names=sorted({p.name for p in known if p.name}),
        named=sum(bool(p.name) for p in listed),
        hidden=sum(p.hidden for p in known),
        chosen=_card(chosen, film_of, IN_PANEL) if chosen else None,
        some=library.summary().videos,
    )


@router.post("/people/name")
def name(request: Request, library: LibraryDep, who: Who, name: Who) -> Response:
    """What somebody is called; the name of somebody else makes the two one."""
    library.people.name(who, name)
    return back(request, f"Named {name.strip()}.", "/people")


@router.post("/people/merge")
def merge(
    request: Request, library: LibraryDep, who: Annotated[list[str] | None, Form(max_length=100)] = None
) -> Response:
    """All that were chosen are one: the named one, else the one there is most of."""
    known = {p.id: p for p in library.people.with_tracks()}
    some = sorted((known[id] for id in set(who or ()) if id in known), key=_weight)
    if len(some) < 2:
        return back(request, "Select at least two people to merge.")
    kept = some[0].name or some[0].id
    for other in some[1:]:
        library.people.merge(other.id, kept)
    return back(request, f"{plural(len(some), 'person', 'people')} merged.", "/people")


@router.post("/people/split")
def split(
    request: Request,
    library: LibraryDep,
    who: Who,
    face: Annotated[list[str] | None, Form(max_length=IN_PANEL)] = None,
    name: Who = "",
) -> Response:
    """The chosen faces are somebody else's."""
    places = [one.rpartition("@") for one in face or () if one.rpartition("@")[2].isdigit()]
    for video, _, at in places:
        library.people.split(who, video, int(at[:18]), name)
    said = f"{plural(len(places), 'appearance')} separated." if places else "Select the faces to separate."
    return back(request, said)


@router.post("/people/hide")
def hide(request: Request, library: LibraryDep, who: Who, hidden: Annotated[bool, Form()] = True) -> Response:
    """Leave somebody out of lists and searches, or take that back."""
    library.people.hide(who, hidden=hidden)
    return back(request, "Hidden from lists and searches." if hidden else "Shown again.", "/people")


@router.post("/people/undo")
def take_back(request: Request, library: LibraryDep) -> Response:
    """Take the last word back."""
    return back(request, f"Undone: {library.people.undo()}.", "/people")


def _weight(person: Person) -> tuple[bool, int, str]:
    return not person.name, -sum(len(t.detections) for t in person.tracks), person.id


def _card(person: Person, film_of: FilmOf, most: int) -> Card:
    tracks = sorted(person.tracks, key=lambda t: -_sure(t))
    faces = tuple(_face(t, film) for t in tracks[:most] if (film := film_of(t.video)))
    count, videos = sum(len(t.detections) for t in tracks), len({t.video for t in tracks})
    return Card(person.id, person.name, person.hidden, count, videos, faces, len(tracks))


def _face(track: Track, film: Video) -> Face:
    x, y, width, height = track.box
    side = max(width * film.width, height * film.height) * ROOM
    side = min(side, film.width, film.height)
    left = min(max(0.0, (x + width / 2) * film.width - side / 2), film.width - side)
    top = min(max(0.0, (y + height / 2) * film.height - side / 2), film.height - side)
    crop, picture = (int(left), int(top), max(1, int(side))), (film.width, film.height)
    return Face(track.video, film.name, track.span.start_us, _sure(track), crop, picture)


def _sure(track: Track) -> float:
    return max(sure for _, _, sure in track.detections)
