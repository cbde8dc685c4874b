"""Where things lie in a fragmented MP4 of ours, so that a playlist can name its parts by byte range."""

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from rushes.domain.keys import JSON


@dataclass(frozen=True, slots=True)
class Segment:
    """A byte range that plays by itself, and its place in media time (ticks of the track's time base)."""

    offset: int
    length: int
    start: int
    duration: int


@dataclass(frozen=True, slots=True)
class SegmentIndex:
    """Where things lie in a fragmented file: the header's length, then the segments."""

    init: int
    base: Fraction
    segments: tuple[Segment, ...]

    def init_segment(self, file: Path) -> bytes:
        """What comes before the first segment of that file, and every player reads first."""
        with file.open("rb") as f:
            return f.read(self.init)

    def to_json(self) -> JSON:
        """For the facts of a manifest."""
        rows = [[s.offset, s.length, s.start, s.duration] for s in self.segments]
        return {"init": self.init, "base": [self.base.numerator, self.base.denominator], "segments": rows}

    @staticmethod
    def from_json(doc: JSON) -> "SegmentIndex":
        """The inverse of to_json."""
        return SegmentIndex(doc["init"], Fraction(*doc["base"]), tuple(Segment(*row) for row in doc["segments"]))
