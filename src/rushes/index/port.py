"""The index port: a projection for readers. It may lag, and can be deleted and rebuilt from the artifacts.

A backend finds passages by their words and their time; what a query means is decided once, in `search`.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from rushes.domain.observation import Observation
from rushes.domain.span import Span
from rushes.index.changes import Change, IndexedResult, Track
from rushes.index.query import Term

Piece = tuple[str, bool]  # some text, and whether it is part of what was found; never markup
Window = tuple[str, int, int]  # a video and two times in microseconds, end exclusive
NO_LIMIT = 2**62


@dataclass(frozen=True, slots=True)
class Posting:
    """A passage of a video (see `passages`) that may hold what is looked for."""

    id: int
    video: str
    kind: str
    start_us: int
    end_us: int
    until_us: int
    language: str
    confidence: float
    text: str
    words: str
    times: str


@dataclass(frozen=True, slots=True)
class MatchPart:
    """One of the things that a hit is made of: what kind, when, and the words in it."""

    kind: str
    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """What filters and orders need to know of a video."""

    id: str
    name: str
    path: str
    shot_at: str  # or when it was taken in, if nobody knows


@dataclass(frozen=True, slots=True)
class Hit:
    """One time-coded search match: a line, and the exact range of what was looked for in it."""

    video: str
    name: str
    kind: str
    span: Span  # while all of it is there, else the shortest stretch from the first to the last
    line: Span  # the whole line
    pieces: tuple[Piece, ...]
    score: float
    language: str
    confidence: float
    times: tuple[Span, ...] = ()  # each occurrence in the line, in order of time
    matched: tuple[MatchPart, ...] = ()  # everything that makes it a hit, in order of time

    @property
    def start_us(self) -> int:
        """Where the match begins."""
        return self.span.start_us

    @property
    def end_us(self) -> int:
        """Where it ends."""
        return self.span.end_us

    @property
    def thumb_us(self) -> int:
        """The moment whose picture shows it: the middle of the match."""
        return (self.span.start_us + self.span.end_us) // 2

    @property
    def text(self) -> str:
        """The line as plain text."""
        return "".join(text for text, _ in self.pieces)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The answer to a search: some hits, how many there are in how many videos, and where the next ones begin."""

    hits: tuple[Hit, ...] = ()
    total: int = 0
    videos: int = 0
    cursor: str = ""
    note: str = ""
    took_ms: float = 0.0
    facets: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # hits by kind, video, language, month


@dataclass(frozen=True, slots=True)
class Video:
    """A video as lists and pages show it; `job` and `state` are those of its newest job."""

    owner: str
    id: str
    name: str
    path: str
    sha256: str
    size: int
    duration_us: int
    width: int
    height: int
    rate: tuple[int, int] | None
    audio: bool
    container: str
    title: str
    shot_at: str
    added_at: str
    job: str
    recipe: str
    state: str
    jobs: tuple[str, ...] = ()  # newest first
    paths: tuple[str, ...] = ()  # everywhere it was taken in from, newest first
    languages: tuple[str, ...] = ()  # most spoken first
    poster: str = ""  # published names, "" until they are made
    proxy: str = ""


@dataclass(frozen=True, slots=True)
class Summary:
    """What there is to find."""

    videos: int = 0
    duration_us: int = 0
    kinds: Mapping[str, int] = field(default_factory=dict)  # lines per kind
    languages: Mapping[str, int] = field(default_factory=dict)  # lines per language
    labels: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # most frequent texts of what is seen


@dataclass(frozen=True, slots=True)
class VideoState:
    """What the index holds of one video's results."""

    results: tuple[tuple[IndexedResult, str], ...] = ()  # each with the time at which its run was created
    shown: frozenset[tuple[str, str, str]] = frozenset()  # (kind, key, manifest) of what readers see
    published: Mapping[str, str] = field(default_factory=dict)  # published names, with the key that made each


@dataclass(frozen=True, slots=True)
class Backlog:
    """What the follower still has to do."""

    jobs: tuple[tuple[str, int], ...] = ()  # to be read, each with the last event number that was read
    videos: tuple[tuple[str, str], ...] = ()  # (owner, video) whose shown results are to be selected


class Index(Protocol):
    """Twelve verbs: four for the follower, eight for readers."""

    def lock(self, patience: float = 2.0) -> AbstractContextManager[bool]:
        """Hold the right to write; False if another process still has it after that many seconds."""

    def apply(self, *changes: Change) -> None:
        """Apply changes in order, all or none. Only who holds the lock may; every change can be repeated."""

    def cursor(self, name: str) -> str:
        """A cursor that was kept, "" before the first."""

    def backlog(self, limit: int) -> Backlog:
        """Up to `limit` jobs that are still to be read, and every video that is still to be selected."""

    def state(self, owner: str, video: str) -> VideoState:
        """Results of a video, which of them are shown, and its published names."""

    def videos(
        self, owner: str, cursor: str = "", limit: int = 100, ids: Collection[str] | None = None
    ) -> tuple[tuple[Video, ...], str]:
        """An owner's videos, newest first, and the next cursor ("" at the end); with `ids`, all of these, no pages."""

    def catalog(self, owner: str, videos: Collection[str] | None = None) -> tuple[CatalogEntry, ...]:
        """Names and dates of these videos of an owner, or of all."""

    def lines(self, owner: str, video: str, kind: str = "speech") -> tuple[Observation, ...]:
        """Its observations of one kind in order of time, as people corrected them."""

    def tracks(self, owner: str) -> tuple[Track, ...]:
        """The faces of all videos, by video and then in the order in which they were kept."""

    def summary(self, owner: str) -> Summary:
        """What there is to find."""

    def count(self, owner: str, term: Term, limit: int) -> int:
        """How many passages may hold a term, at most `limit`."""

    def find(
        self,
        owner: str,
        term: Term,
        limit: int,
        videos: Collection[str] | None = None,
        windows: Sequence[Window] | None = None,
    ) -> tuple[Posting, ...]:
        """Up to `limit` passages that hold a term, in these videos or these windows; others may be among them."""


def find_video(index: Index, owner: str, id: str) -> Video | None:
    """One video, None if the owner has no such."""
    return next(iter(index.videos(owner, ids=[id])[0]), None)


class SemanticIndex(Protocol):
    """Compares what sentences mean."""

    def find(
        self, index: Index, owner: str, term: Term, videos: Collection[str] | None
    ) -> tuple[dict[Posting, float], str]:
        """The passages that mean most alike with how much they do, and a note for the user.

        Raises:
            ModelMissing: the weights are not on this machine.
            EngineAway: no inference service answers.
        """
