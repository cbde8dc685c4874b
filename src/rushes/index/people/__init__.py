"""People: who is seen when, and what people said about faces."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rushes.domain.keys import JSON, short
from rushes.domain.observation import Observation
from rushes.index.changes import Box, Track, box_of

FACE = "face"
KIND = "person"
PERSON = "person_name"  # records of this kind say whose a face is: doc = an anchor with name, person or hidden


@dataclass(frozen=True, slots=True)
class FaceLabel:
    """What somebody said of a face: whose it is, by name or as one with others, or that it is nobody."""

    video: str
    start_us: int
    end_us: int
    box: Box | None
    name: str = ""
    person: str = ""  # faces with the same are one person, though nobody knows the name
    hidden: bool = False

    @staticmethod
    def from_doc(doc: Mapping[str, JSON]) -> "FaceLabel":
        """As a record keeps it."""
        box = doc.get("box")
        where = str(doc["video"]), int(doc["start_us"]), int(doc["end_us"]), box_of(box) if box else None
        return FaceLabel(*where, str(doc.get("name") or ""), str(doc.get("person") or ""), bool(doc.get("hidden")))

    @property
    def identity(self) -> str:
        """Labels with the same mean the same person."""
        return person_id(self.name) if self.name else self.person


@dataclass(frozen=True, slots=True)
class Person:
    """Tracks that show the same face, and what it is called ("" if nobody said)."""

    id: str
    name: str
    hidden: bool
    tracks: tuple[Track, ...]

    def lines(self) -> Iterable[tuple[str, Observation]]:
        """When and where it is seen: the video, and a row for each look."""
        for track in self.tracks:
            for span, box, sure in track.detections:
                extra = {"person": self.id}
                yield track.video, Observation(KIND, span, self.name or self.id, sure, box=box, extra=extra)


def person_id(name: str) -> str:
    """The id of everybody who is called so."""
    return "per_" + short(name)
