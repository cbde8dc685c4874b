"""People: who is seen when, and what users said about faces."""

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rushes.domain.keys import JSON
from rushes.domain.observation import Observation
from rushes.index.changes import Box, Track, box_of

FACE = "face"
KIND = "person"
PERSON = "person_name"  # records of this kind say whose a face is: doc = an anchor with name, person or hidden


@dataclass(frozen=True, slots=True)
class FaceLabel:
    """What somebody said of a face: whose it is, by name or as one with others, or that it is nobody.

    `person` is the id that it had then: commands and links that name it still find it.
    """

    video: str
    start_us: int
    end_us: int
    box: Box | None
    name: str = ""
    person: str = ""  # faces with the same are one person, where nobody knows the name
    hidden: bool = False

    @staticmethod
    def from_doc(doc: Mapping[str, JSON]) -> "FaceLabel":
        """As a record keeps it."""
        box = doc.get("box")
        where = str(doc["video"]), int(doc["start_us"]), int(doc["end_us"]), box_of(box) if box else None
        return FaceLabel(*where, str(doc.get("name") or ""), str(doc.get("person") or ""), bool(doc.get("hidden")))

    @property
    def identity(self) -> str:
        """Labels with the same mean the same person; capitals and spaces make no other name."""
        return identity_of(self.name, self.person)


@dataclass(frozen=True, slots=True)
class Person:
    """Tracks that show the same face, and what it is called ("" if nobody said)."""

    id: str
    name: str
    hidden: bool
    tracks: tuple[Track, ...]
    aliases: tuple[str, ...] = ()  # other ids that it had

    @property
    def identity(self) -> str:
        """As the labels of its faces say."""
        return identity_of(self.name, self.id)

    def lines(self) -> Iterable[tuple[str, Observation]]:
        """When and where it is seen: the video, and a row for each look."""
        for track in self.tracks:
            for span, box, sure in track.detections:
                extra = {"person": self.id}
                yield track.video, Observation(KIND, span, self.name or self.id, sure, box=box, extra=extra)


def identity_of(name: str, person: str) -> str:
    """What everybody who is called so has in common, or who has no name and that id."""
    folded = unicodedata.normalize("NFKC", " ".join(name.split())).casefold()
    return f"name:{folded}" if folded else person
