"""The segment index of an fMP4 file: byte ranges for playlists."""

import hashlib
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from rushes.domain.keys import JSON


@dataclass(frozen=True, slots=True)
class Segment:
    """A byte range that plays by itself, and its media time in ticks of the track."""

    offset: int
    length: int
    start: int
    duration: int


@dataclass(frozen=True, slots=True)
class SegmentIndex:
    """The length of the init segment, and the segments of a file."""

    init: int
    base: Fraction
    segments: tuple[Segment, ...]

    def init_segment(self, file: Path) -> bytes:
        """The bytes of the init segment of that file."""
        with file.open("rb") as f:
            return f.read(self.init)

    def facts(self, file: Path) -> dict[str, JSON]:
        """For a manifest: the index, and the hash of the init segment of that file."""
        return {**self.to_json(), "init_sha256": hashlib.sha256(self.init_segment(file)).hexdigest()}

    def to_json(self) -> JSON:
        """For the facts of a manifest."""
        rows = [[s.offset, s.length, s.start, s.duration] for s in self.segments]
        return {"init": self.init, "base": [self.base.numerator, self.base.denominator], "segments": rows}

    @staticmethod
    def from_json(doc: JSON) -> "SegmentIndex":
        """The inverse of to_json."""
        return SegmentIndex(doc["init"], Fraction(*doc["base"]), tuple(Segment(*row) for row in doc["segments"]))
