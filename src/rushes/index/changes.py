"""Changes that the follower applies to an index, and how they are built."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rushes.domain.keys import JSON
from rushes.domain.observation import Observation
from rushes.domain.span import Span

Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Run:
    """A job as the index remembers it: whose, which video, how new, how far."""

    job: str
    owner: str
    video: str
    recipe: str
    state: str
    created_at: str
    facts: Mapping[str, JSON]


@dataclass(frozen=True, slots=True)
class IndexedResult:
    """One kind of observations in one result of one run; whether it is shown is decided among all runs."""

    owner: str
    video: str
    job: str
    stage: str
    chunk: int | None
    kind: str
    key: str
    manifest: str  # sha256 of the manifest: the same key may be made again after a repair
    profile: str = ""  # of the model that made it


@dataclass(frozen=True, slots=True)
class Correction:
    """What a person said instead in a range of a video; "" says that nothing is there."""

    id: str
    video: str
    kind: str
    start_us: int
    end_us: int
    text: str


@dataclass(frozen=True, slots=True)
class Track:
    """A face in sample after sample of one video, where it is seen best, and its embedding as bytes of float32."""

    video: str
    span: Span
    box: Box
    detections: tuple[tuple[Span, Box, float], ...]  # each with its confidence
    embedding: bytes

    def to_doc(self) -> JSON:
        """Everything but its video and its embedding."""
        detections = [[span.to_json(), list(box), confidence] for span, box, confidence in self.detections]
        return {"span": self.span.to_json(), "box": list(self.box), "detections": detections}

    @staticmethod
    def from_doc(video: str, doc: JSON, embedding: bytes) -> "Track":
        """The inverse."""
        rows = doc["detections"]
        detections = tuple((Span.from_json(span), box_of(box), float(confidence)) for span, box, confidence in rows)
        return Track(video, Span.from_json(doc["span"]), box_of(doc["box"]), detections, embedding)


def box_of(value: JSON) -> Box:
    """Left, top, width and height, of exactly four numbers."""
    x, y, width, height = map(float, value)
    return x, y, width, height


class Change:
    """One change of the index."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Reset(Change):
    """Empties the index."""


@dataclass(frozen=True, slots=True)
class CursorMove(Change):
    """Keeps a cursor together with the jobs that it has passed and that are still to be read."""

    name: str
    cursor: str
    jobs: Iterable[str] = ()


@dataclass(frozen=True, slots=True)
class JobRead(Change):
    """A job was read up to an event."""

    job: str
    number: int


@dataclass(frozen=True, slots=True)
class RunUpdate(Change):
    """A run, some of its results and published names (of whose key); its video is to be selected again."""

    run: Run
    results: Sequence[IndexedResult] = ()
    published: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class VideoRename(Change):
    """The name that a person gave a video; None takes it back."""

    owner: str
    video: str
    name: str | None


@dataclass(frozen=True, slots=True)
class CorrectionUpdate(Change):
    """What a person said instead; None takes it back. Lines and passages follow."""

    owner: str
    id: str
    correction: Correction | None


@dataclass(frozen=True, slots=True)
class Reselection(Change):
    """The shown results of a video, or of all videos of an owner, are to be selected again."""

    owner: str
    video: str = ""


@dataclass(frozen=True, slots=True)
class TrackUpdate(Change):
    """The faces of a video, instead of those before."""

    owner: str
    video: str
    tracks: Sequence[Track]


@dataclass(frozen=True, slots=True)
class SelectionUpdate(Change):
    """Hides (kind, key), then shows observations; passages follow, and the video is selected."""

    owner: str
    video: str
    add: Sequence[tuple[IndexedResult, Sequence[Observation]]] = ()
    drop: Iterable[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class ResultRemoval(Change):
    """Results that were set aside: their lines and names disappear, their videos are to be selected again."""

    owner: str
    keys: Sequence[str]


@dataclass(frozen=True, slots=True)
class VideoRemoval(Change):
    """A video is deleted with all that was known of it; its runs are as if they had never been read."""

    owner: str
    video: str
