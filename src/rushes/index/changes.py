"""What the follower says to an index: the values that `apply` takes, and what they are made of."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rushes.domain.keys import JSON
from rushes.domain.observation import Observation
from rushes.domain.span import Span


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
    box: tuple[float, float, float, float]
    detections: tuple[tuple[Span, tuple[float, float, float, float], float], ...]  # each with its confidence
    embedding: bytes


@dataclass(frozen=True, slots=True)
class Reset:
    """Empties the index."""


@dataclass(frozen=True, slots=True)
class CursorMove:
    """Keeps a cursor together with the jobs that it has passed and that are still to be read."""

    name: str
    cursor: str
    jobs: Iterable[str] = ()


@dataclass(frozen=True, slots=True)
class JobRead:
    """A job was read up to an event."""

    job: str
    number: int


@dataclass(frozen=True, slots=True)
class RunUpdate:
    """A run, some of its results and published names (of whose key); its video is to be selected again."""

    run: Run
    results: Sequence[IndexedResult] = ()
    published: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class VideoRename:
    """The name that a person gave a video; None takes it back."""

    owner: str
    video: str
    name: str | None


@dataclass(frozen=True, slots=True)
class CorrectionUpdate:
    """What a person said instead; None takes it back. Lines and passages follow."""

    owner: str
    id: str
    correction: Correction | None


@dataclass(frozen=True, slots=True)
class Reselection:
    """The shown results of a video, or of all videos of an owner, are to be selected again."""

    owner: str
    video: str = ""


@dataclass(frozen=True, slots=True)
class TrackUpdate:
    """The faces of a video, instead of those before."""

    owner: str
    video: str
    tracks: Sequence[Track]


@dataclass(frozen=True, slots=True)
class SelectionUpdate:
    """Hides (kind, key), then shows observations; passages follow, and the video is selected."""

    owner: str
    video: str
    add: Sequence[tuple[IndexedResult, Sequence[Observation]]] = ()
    drop: Iterable[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class ResultRemoval:
    """Results that were set aside: their lines and names disappear, their videos are to be selected again."""

    owner: str
    keys: Sequence[str]


@dataclass(frozen=True, slots=True)
class VideoRemoval:
    """A video is deleted with all that was known of it; its runs are as if they had never been read."""

    owner: str
    video: str


Change = (
    Reset
    | CursorMove
    | JobRead
    | RunUpdate
    | VideoRename
    | CorrectionUpdate
    | Reselection
    | TrackUpdate
    | SelectionUpdate
    | ResultRemoval
    | VideoRemoval
)
