"""People: who is seen in the library, and what is said about them, as records that hold on to a place in a film."""

from collections.abc import Iterator
from dataclasses import dataclass

from rushes.domain.errors import NotFound, Refused
from rushes.domain.keys import JSON, short
from rushes.index.gather import PERSON
from rushes.index.people import Mark, Person
from rushes.index.port import Track
from rushes.records.port import Record
from rushes.wiring import House


@dataclass(frozen=True, slots=True)
class Seen:
    """A person as lists show it: how often, in which videos, and where the face is seen best."""

    id: str
    name: str
    hidden: bool
    faces: int
    videos: tuple[str, ...]
    video: str
    at_us: int
    box: tuple[float, float, float, float]


def everybody(house: House, *, hidden: bool = False) -> list[Seen]:
    """Everybody, named first, then by how much there is of them; the hidden ones only if they are wanted."""
    return [_seen(p) for p in _all(house) if hidden or not p.hidden]


def name_person(house: House, who: str, called: str) -> None:
    """Say what a person is called; the name of somebody else makes the two one.

    Raises:
        NotFound: there is no such person, or more than one.
        Refused: that is no name.
    """
    if not called.strip():
        raise Refused("a name has letters", 'For example: rushes people name per_7f3k "Anna"')
    _say(house, _one(house, who), {"name": called.strip(), "person": ""})


def merge_people(house: House, who: str, into: str) -> None:
    """Say that two are one person.

    Raises:
        NotFound: one of them is not there, or not one.
    """
    other, kept = _one(house, who), _one(house, into)
    same = {"name": kept.name, "person": "" if kept.name else kept.id}
    if not kept.name:
        _say(house, kept, same)
    _say(house, other, same)


def split_person(house: House, who: str, video: str, at_us: int, called: str = "") -> str:
    """Say that the face of a person at one place is somebody else's; answers who that is now.

    Raises:
        NotFound: there is no such person, or it is not seen there.
        Refused: it is seen nowhere else.
    """
    person = _one(house, who)
    there = [t for t in person.tracks if t.video == video and _is_seen(t, at_us)]
    if not there:
        raise NotFound(f"{person.name or person.id} is not seen there", "See: rushes search 'person:*' --video VIDEO")
    rest = [t for t in person.tracks if t is not there[0]]
    if not rest:
        raise Refused(f"{person.name or person.id} is seen only there: there is nothing to split")
    label = {"name": person.name, "person": "" if person.name else person.id}
    if not any(_stands_on(mark, track) for mark in _marks_of(house, person) for track in rest):
        _put(house, max(rest, key=_clearest), label)
    new = "per_" + short(["split", *_anchor(there[0]).values()])
    _put(house, there[0], {"name": called.strip(), "person": "" if called.strip() else new})
    house.follower.catch_up()
    return called.strip() or new


def hide_person(house: House, who: str, *, hidden: bool = True) -> None:
    """Leave somebody out of lists and searches, or take that back.

    Raises:
        NotFound: there is no such person, or more than one.
    """
    person = _one(house, who)
    _say(house, person, {"name": person.name, "person": "" if person.name else person.id, "hidden": hidden})


def _say(house: House, person: Person, what: dict[str, JSON]) -> None:
    """At every place where something was said of a person, or at its clearest face if nothing was."""
    said = list(_marks_of(house, person))
    for record in said:
        house.records.put(PERSON, house.settings.owner, record.id, {**record.doc, **what})
    if not said:
        _put(house, max(person.tracks, key=_clearest), what)
    house.follower.catch_up()


def _put(house: House, track: Track, what: dict[str, JSON]) -> None:
    place = _anchor(track)
    house.records.put(PERSON, house.settings.owner, "face_" + short(place), {**place, **what})


def _marks_of(house: House, person: Person) -> Iterator[Record]:
    cursor, first = "", True
    while cursor or first:
        rows, cursor = house.records.list(PERSON, house.settings.owner, cursor, 500)
        yield from (r for r in rows if Mark.from_doc(r.doc).label == person.id)
        first = False


def _stands_on(record: Record, track: Track) -> bool:
    mark = Mark.from_doc(record.doc)
    return mark.video == track.video and _is_seen(track, (mark.start_us + mark.end_us) // 2)


def _is_seen(track: Track, at_us: int) -> bool:
    return any(span.start_us <= at_us < max(span.end_us, span.start_us + 1) for span, _, _ in track.looks)


def _clearest(track: Track) -> tuple[float, int]:
    return max(sure for _, _, sure in track.looks), len(track.looks)


def _anchor(track: Track) -> dict[str, JSON]:
    return {
        "video": track.video,
        "start_us": track.span.start_us,
        "end_us": track.span.end_us,
        "box": list(track.box),
    }


def _all(house: House) -> list[Person]:
    house.follower.catch_up()
    return house.follower.people(house.settings.owner)


def _one(house: House, who: str) -> Person:
    known = _all(house)
    exact = [p for p in known if who in (p.id, p.name) or f"per_{who}" == p.id]
    some = exact or [p for p in known if p.name.casefold() == who.casefold() or p.id.startswith(who)]
    if len(some) != 1 or not who:
        many = f"{len(some)} people go by {who!r}" if some else f"there is nobody {who[:60]!r}"
        raise NotFound(many, "See: rushes people ls")
    return some[0]


def _seen(person: Person) -> Seen:
    best = max(person.tracks, key=_clearest)
    videos = tuple(dict.fromkeys(t.video for t in person.tracks))
    faces = sum(len(t.looks) for t in person.tracks)
    return Seen(person.id, person.name, person.hidden, faces, videos, best.video, best.span.start_us, best.box)
