"""The index: a projection for readers. It may lag, and can be thrown away and made again from the artifacts.

Readers use `Reader`; only the follower uses `Feed`, and only while it holds `alone`. Everything can be repeated.
A backend finds moments by their words and their time; what a query means is decided once, in `search`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from rushes.domain.keys import JSON
from rushes.domain.observation import Observation
from rushes.domain.span import Span
from rushes.index.query import Term

Piece = tuple[str, bool]  # some text, and whether it is part of what was found; never markup
Window = tuple[str, int, int]  # a video and two moments in microseconds, end exclusive


@dataclass(frozen=True, slots=True)
class Posting:
    """A moment (see `moments`) of a video that may hold what is looked for."""

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
class Matched:
    """One of the things that a hit is made of: what kind, when, and the words in it."""

    kind: str
    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Shelved:
    """What filters and orders need to know of a video."""

    id: str
    name: str
    path: str
    shot_at: str  # or when it was taken in, if nobody knows


@dataclass(frozen=True, slots=True)
class Correction:
    """What a person said instead at a place in a film; "" says that nothing is there."""

    id: str
    video: str
    kind: str
    start_us: int
    end_us: int
    text: str


@dataclass(frozen=True, slots=True)
class Track:
    """A face in look after look of one video, where it is seen best, and its direction as bytes of float32."""

    video: str
    span: Span
    box: tuple[float, float, float, float]
    looks: tuple[tuple[Span, tuple[float, float, float, float], float], ...]  # each with its confidence
    direction: bytes


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
    matched: tuple[Matched, ...] = ()  # everything that makes it a hit, in order of time

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
class Rate:
    """How long one task took, on how much footage, and how much it made: estimates are learnt from these."""

    task: str
    stage: str
    machine: str
    seconds: float
    media_seconds: float
    pixels: int
    at: str
    size: int = 0  # bytes of its results
    voiced_seconds: float | None = None  # of speech that was listened to; None if it listens to nothing


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
class Offer:
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


class Reader(Protocol):
    """What people ask."""

    def search(
        self, owner: str, query: str, limit: int = 20, cursor: str = "", video: str = "", order: str = "best"
    ) -> SearchResult:
        """Hits, best first, or in `order` "time" as they were shot. Any text is a query; none raises."""

    def count(self, owner: str, term: Term, most: int) -> int:
        """How many moments may hold a term, at most `most`."""

    def find(self, owner: str, term: Term, most: int, videos: Collection[str] | None = None) -> tuple[Posting, ...]:
        """Up to `most` moments that hold a term, in these videos or in all; some that do not may be among them."""

    def around(self, owner: str, term: Term, windows: Sequence[Window]) -> tuple[Posting, ...]:
        """All that hold a term and are there (start to until) in one of the windows; others may be among them."""

    def shelf(self, owner: str, videos: Collection[str] | None = None) -> tuple[Shelved, ...]:
        """These videos of an owner, or all."""

    def videos(self, owner: str, cursor: str = "", limit: int = 100) -> tuple[tuple[Video, ...], str]:
        """An owner's videos, newest first, and the next cursor ("" at the end)."""

    def videos_of(self, owner: str, ids: Collection[str]) -> tuple[Video, ...]:
        """Those of these videos that the owner has, newest first, by one question."""

    def video(self, owner: str, id: str) -> Video | None:
        """One video, None if the owner has no such."""

    def lines(self, owner: str, video: str, kind: str = "speech") -> tuple[Observation, ...]:
        """Its observations of one kind in order of time, as people corrected them."""

    def rates(self, stage: str, machine: str, limit: int = 500) -> tuple[Rate, ...]:
        """The latest rates learnt on that kind of machine, or on one that is not known any more."""

    def summary(self, owner: str) -> Summary:
        """What there is to find."""


class Feed(Protocol):
    """What the follower says; each verb is one transaction."""

    def alone(self, patience: float = 2.0) -> AbstractContextManager[bool]:
        """Hold the right to write; False if another process still has it after that many seconds."""

    def reset(self) -> None:
        """Forget everything."""

    def cursor(self, name: str) -> str:
        """A cursor that was kept, "" before the first."""

    def queue(self, name: str, cursor: str, jobs: Iterable[str] = ()) -> None:
        """Keep a cursor together with the jobs that it has passed and that are still to be read."""

    def queued(self, limit: int) -> tuple[tuple[str, int], ...]:
        """Jobs still to be read, each with the last event number that was met."""

    def met(self, job: str, number: int) -> None:
        """A job was read up to that event."""

    def take_in(self, run: Run, offers: Sequence[Offer], names: Mapping[str, str], rates: Sequence[Rate]) -> None:
        """A run, what its results offer, published names (of whose key) and rates; its video is to be settled."""

    def learn(self, rates: Sequence[Rate]) -> None:
        """Rates alone."""

    def rename(self, owner: str, video: str, name: str | None) -> None:
        """The name a person gave a video; None takes it back."""

    def correct(self, owner: str, id: str, correction: Correction | None) -> None:
        """What a person said instead; None takes it back. Lines and moments follow."""

    def unsettle(self, owner: str, video: str = "") -> None:
        """The choice of a video, or of all, is to be made again."""

    def keep_tracks(self, owner: str, video: str, tracks: Sequence[Track]) -> None:
        """The faces of a video, instead of those before."""

    def tracks(self, owner: str) -> tuple[Track, ...]:
        """The faces of all videos, by video and then in the order in which they were kept."""

    def unsettled(self) -> tuple[tuple[str, str], ...]:
        """(owner, video) whose choice of shown results is to be made."""

    def offers(self, owner: str, video: str) -> tuple[tuple[Offer, str], ...]:
        """Everything that runs offer of a video, each with the time at which its run was created."""

    def shown(self, owner: str, video: str) -> frozenset[tuple[str, str, str]]:
        """(kind, key, manifest) of what readers see now."""

    def show(
        self,
        owner: str,
        video: str,
        add: Sequence[tuple[Offer, Sequence[Observation]]],
        drop: Iterable[tuple[str, str]],
    ) -> None:
        """Drop (kind, key), then add observations, all or none; moments follow; the video is settled."""

    def keys(self, owner: str = "") -> tuple[tuple[str, str], ...]:
        """(owner, key) of every result that is offered or named."""

    def forget(self, owner: str, keys: Iterable[str]) -> None:
        """Results that were set aside: their lines and names disappear, their videos are to be settled."""

    def drop(self, owner: str, video: str) -> None:
        """A video is gone with all that was known of it; its runs are as if they had never been met."""


class Index(Reader, Feed, Protocol):
    """Both sides."""
