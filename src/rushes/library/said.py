"""What people say about footage, as records: corrections, names, places to look at, and which run counts."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from rushes.domain.errors import NotFound
from rushes.domain.keys import JSON, short
from rushes.domain.observation import Observation
from rushes.index.follower import NAME
from rushes.records.port import Record
from rushes.wiring import House

CORRECTION, PERSON, PATH, SELECTION = "correction", "person_name", "path", "selection"
Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Anchor:
    """A place in a film: what a correction holds on to, never a cluster or a row."""

    video: str
    start_us: int
    end_us: int
    box: Box | None = None

    def to_json(self) -> dict[str, JSON]:
        """As records keep it."""
        box = list(self.box) if self.box else None
        return {"video": self.video, "start_us": self.start_us, "end_us": self.end_us, "box": box}


@dataclass(frozen=True, slots=True)
class Person:
    """A name that people gave to faces, and the places at which they said so."""

    id: str
    name: str
    places: tuple[str, ...]  # ids of the records
    videos: tuple[str, ...]


def correct(house: House, kind: str, anchor: Anchor, text: str) -> Record:
    """Say what stands at a place; said again, the last word counts."""
    id = "cor_" + short([kind, anchor.to_json()])
    return house.records.put(CORRECTION, house.settings.owner, id, {"kind": kind, "text": text, **anchor.to_json()})


def corrected(house: House, video: str, lines: tuple[Observation, ...]) -> Iterator[tuple[Observation, str]]:
    """Lines with what people said instead, each with its correction's id ("" where nobody said anything)."""
    said = {(r.doc["kind"], r.doc["start_us"], r.doc["end_us"]): r for r in of_video(house, CORRECTION, video)}
    for line in lines:
        record = said.get((line.kind, line.span.start_us, line.span.end_us))
        yield (replace(line, text=record.doc["text"], words=()), record.id) if record else (line, "")


def of_video(house: House, kind: str, video: str) -> list[Record]:
    """All records of a kind that hold on to a video."""
    return [r for r in every(house, kind) if r.doc.get("video") == video]


def every(house: House, kind: str) -> Iterator[Record]:
    """All records of a kind."""
    cursor, more = "", True
    while more:
        rows, cursor = house.records.list(kind, house.settings.owner, cursor, 500)
        yield from rows
        more = bool(cursor)


def take_back(house: House, kind: str, id: str) -> None:
    """Delete a record.

    Raises:
        NotFound: there is none.
    """
    if not house.records.delete(kind, house.settings.owner, id):
        raise NotFound(f"there is no {kind.replace('_', ' ')} {id[:60]!r}")


def rename(house: House, video: str, name: str) -> None:
    """Give a video a name; an empty one takes it back."""
    if name:
        house.records.put(NAME, house.settings.owner, video, {"name": name})
    else:
        house.records.delete(NAME, house.settings.owner, video)


def name_person(house: House, anchor: Anchor, name: str) -> Record:
    """Say whose face is seen at a place."""
    id = "face_" + short(anchor.to_json())
    return house.records.put(PERSON, house.settings.owner, id, {"name": name, **anchor.to_json()})


def people(house: House) -> tuple[Person, ...]:
    """Everybody who was named, by name."""
    by_name: dict[str, list[Record]] = {}
    for record in every(house, PERSON):
        by_name.setdefault(str(record.doc["name"]), []).append(record)
    return tuple(_person(name, rows) for name, rows in sorted(by_name.items()))


def rename_person(house: House, id: str, name: str) -> Person:
    """Another name everywhere; the name of somebody else makes the two one.

    Raises:
        NotFound: nobody has that id.
    """
    who = next((p for p in people(house) if p.id == id), None)
    if who is None:
        raise NotFound(f"there is no person {id[:60]!r}", "List them: GET /api/v1/people")
    for place in who.places:
        record = house.records.get(PERSON, house.settings.owner, place)
        if record:
            house.records.put(PERSON, house.settings.owner, place, {**record.doc, "name": name})
    return next(p for p in people(house) if p.name == name)


def select(house: House, video: str, kind: str, run: str) -> Record:
    """Which run counts for a kind of observations: one that is named, or "" for the newest."""
    doc: Mapping[str, JSON] = {"video": video, "kind": kind, "run": run}
    return house.records.put(SELECTION, house.settings.owner, f"{video}.{kind}", doc)


def selected(house: House, video: str, kind: str) -> str:
    """The run that was named, "" for the newest."""
    record = house.records.get(SELECTION, house.settings.owner, f"{video}.{kind}")
    return str(record.doc.get("run", "")) if record else ""


def keep_path(house: House, path: str) -> Record:
    """Remember a place that films come from."""
    return house.records.put(PATH, house.settings.owner, "path_" + short(path), {"path": path})


def may_be_read(house: House, path: str) -> bool:
    """Whether a place lies at or below one that the settings name, as seen with links resolved."""
    places = [p.strip() for p in house.settings.sources.split(",") if p.strip()]
    if path.startswith("s3://"):
        return any(f"{path}/".startswith(f"{p.rstrip('/')}/") for p in places)
    real = Path(path).resolve()
    return any(real.is_relative_to(Path(p).resolve()) for p in places if not p.startswith("s3://"))


def _person(name: str, rows: list[Record]) -> Person:
    videos = tuple(dict.fromkeys(str(r.doc["video"]) for r in rows))
    return Person("per_" + short(name), name, tuple(r.id for r in rows), videos)
