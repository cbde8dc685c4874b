"""People: who is seen in the library, and their names, as records anchored in videos.

What was said is kept step by step, so that the last act can be taken back.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from rushes.domain.errors import NotFound, Refused
from rushes.domain.keys import JSON, short
from rushes.home import Home
from rushes.index.changes import Track
from rushes.index.people import PERSON, FaceLabel, Person
from rushes.records.port import Conflict, Record

_Doc = dict[str, JSON]
EDITS = "acts"  # one record of this kind: doc = {"acts": [{"what": ..., "before": {record id: doc or None}}, ...]}
_ID = "people"
_KEPT = 50


@dataclass(frozen=True, slots=True)
class PersonSummary:
    """A person as lists show it: how often, in which videos, and where the face is seen best."""

    id: str
    name: str
    hidden: bool
    faces: int
    videos: tuple[str, ...]
    video: str
    at_us: int
    box: tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class People:
    """The people of one owner; each is named by id, name, or the beginning of an id.

    NotFound is raised where there is no such person, or more than one.
    """

    home: Home

    def all(self, *, hidden: bool = False) -> list[PersonSummary]:
        """Everybody, named first, then by how often they are seen; the hidden ones only if asked."""
        return [_seen(p) for p in self.with_tracks() if hidden or not p.hidden]

    def with_tracks(self) -> list[Person]:
        """Everybody with every face, the hidden ones too."""
        self.home.follower.catch_up()
        return self.home.follower.people(self.home.owner)

    def name(self, who: str, name: str) -> None:
        """Say what a person is called; the name of another person merges the two.

        Raises:
            Refused: that is no name.
        """
        if not name.strip():
            raise Refused("a name needs at least one letter", 'For example: rushes people name per_7f3k "Anna"')
        person = self._one(who)
        said = _said_of(self.home, person, {"name": name.strip()})
        _edit(self.home, f"{_called(person)} was named {name.strip()}", said)

    def merge(self, who: str, into: str) -> None:
        """Say that two are one person."""
        other, kept = self._one(who), self._one(into)
        said = _said_of(self.home, other, _label(kept))
        if not kept.name:
            said |= _said_of(self.home, kept, _label(kept))
        _edit(self.home, f"{_called(other)} was merged into {_called(kept)}", said)

    def split(self, who: str, video: str, at_us: int, name: str = "") -> str:
        """Say that the face of a person at one place is another person's; answers who that is now.

        Raises:
            NotFound: it is not seen there.
            Refused: it is seen nowhere else.
        """
        person = self._one(who)
        there = [t for t in person.tracks if t.video == video and _is_seen(t, at_us)]
        if not there:
            raise NotFound(f"{_called(person)} is not seen at that time", "See: rushes search 'person:*' --video VIDEO")
        rest = [t for t in person.tracks if t is not there[0]]
        if not rest:
            raise Refused(f"{_called(person)} has only this appearance, so it cannot be split")
        new = "per_" + short(["split", *_anchor(there[0]).values()])
        said = _at(there[0], {"name": name.strip(), "person": new})
        if not any(_stands_on(mark, track) for mark in _marks_of(self.home, person) for track in rest):
            said |= _at(max(rest, key=_clearest), _label(person))
        _edit(self.home, f"one face of {_called(person)} was separated as {name.strip() or new}", said)
        return name.strip() or new

    def hide(self, who: str, *, hidden: bool = True) -> None:
        """Leave a person out of lists and searches, or show them again."""
        person = self._one(who)
        said = _said_of(self.home, person, {"hidden": hidden})
        _edit(self.home, f"{_called(person)} was {'hidden' if hidden else 'shown again'}", said)

    def undo(self) -> str:
        """Take back what was last said about people; answers what it was.

        Raises:
            NotFound: there is nothing to take back.
        """
        known, records, owner = _known(self.home), self.home.records, self.home.owner
        if known is None or not known.doc["acts"]:
            raise NotFound("there is nothing to undo", "See: rushes people ls")
        *rest, last = known.doc["acts"]
        for id, doc in last["before"].items():
            if doc is None:
                records.delete(PERSON, owner, id)
            else:
                records.put(PERSON, owner, id, doc)
        with suppress(Conflict):  # somebody acted meanwhile: taking this back again does no harm
            records.put(EDITS, owner, _ID, {"acts": rest}, known.version)
        self.home.follower.catch_up()
        return str(last["what"])

    def _one(self, who: str) -> Person:
        known = self.with_tracks()
        exact = [p for p in known if who in (p.id, p.name, *p.aliases) or f"per_{who}" in (p.id, *p.aliases)]
        some = exact or [p for p in known if p.name.casefold() == who.casefold() or p.id.startswith(who)]
        if len(some) != 1 or not who:
            many = f"{len(some)} people match {who!r}" if some else f"no person named {who[:60]!r}"
            raise NotFound(many, "See: rushes people ls")
        return some[0]


def marks_in(home: Home, video: str) -> dict[str, _Doc]:
    """What is known of the people of a video, said at their clearest face in it: who they are, and who is hidden."""
    said: dict[str, _Doc] = {}
    for person in People(home).with_tracks():
        there = [track for track in person.tracks if track.video == video]
        if there and (person.name or person.hidden):
            said |= _at(max(there, key=_clearest), {**_label(person), "hidden": person.hidden})
    return said


def _said_of(home: Home, person: Person, what: _Doc) -> dict[str, _Doc]:
    """At every place where something was said of a person, or at its clearest face if nothing was."""
    said = {record.id: {**record.doc, **what} for record in _marks_of(home, person)}
    return said or _at(max(person.tracks, key=_clearest), {**_label(person), **what})


def _at(track: Track, what: _Doc) -> dict[str, _Doc]:
    place = _anchor(track)
    return {"face_" + short(place): {**place, **what}}


def _label(person: Person) -> _Doc:
    return {"name": person.name, "person": person.id}


def _called(person: Person) -> str:
    return person.name or person.id


def _marks_of(home: Home, person: Person) -> list[Record]:
    return [r for r in home.all_records(PERSON) if FaceLabel.from_doc(r.doc).identity == person.identity]


def _stands_on(record: Record, track: Track) -> bool:
    mark = FaceLabel.from_doc(record.doc)
    return mark.video == track.video and _is_seen(track, (mark.start_us + mark.end_us) // 2)


def _is_seen(track: Track, at_us: int) -> bool:
    return any(span.start_us <= at_us < max(span.end_us, span.start_us + 1) for span, _, _ in track.detections)


def _clearest(track: Track) -> tuple[float, int]:
    return max(sure for _, _, sure in track.detections), len(track.detections)


def _anchor(track: Track) -> _Doc:
    return {"video": track.video, "start_us": track.span.start_us, "end_us": track.span.end_us, "box": list(track.box)}


def _seen(person: Person) -> PersonSummary:
    best = max(person.tracks, key=_clearest)
    videos = tuple(dict.fromkeys(t.video for t in person.tracks))
    faces = sum(len(t.detections) for t in person.tracks)
    return PersonSummary(person.id, person.name, person.hidden, faces, videos, best.video, best.span.start_us, best.box)


def _edit(home: Home, what: str, said: Mapping[str, Mapping[str, JSON]]) -> None:
    """Write records about faces; what stood there is kept first, so that a kill between loses no way back."""
    there = {id: home.records.get(PERSON, home.owner, id) for id in said}
    before = {id: dict(record.doc) if record else None for id, record in there.items()}
    _remember(home, {"what": what, "before": before})
    for id, doc in said.items():
        home.records.put(PERSON, home.owner, id, doc)
    home.follower.catch_up()


def _remember(home: Home, new: JSON) -> None:
    while True:
        known = _known(home)
        acts = [*(known.doc["acts"] if known else ()), new][-_KEPT:]
        with suppress(Conflict):
            home.records.put(EDITS, home.owner, _ID, {"acts": acts}, known.version if known else 0)
            return


def _known(home: Home) -> Record | None:
    return home.records.get(EDITS, home.owner, _ID)
