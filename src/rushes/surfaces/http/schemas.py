"""Response schemas of the API: plain values in video time; lists in pages with an opaque cursor."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

from fastapi import Query, Request
from pydantic import BaseModel

from rushes.domain.job import Counts, Job
from rushes.domain.observation import Observation
from rushes.domain.task import Failure, Task
from rushes.library.access.signing import Signer
from rushes.library.jobs import video_of
from rushes.library.search import Hit
from rushes.library.videos import Record, Video
from rushes.surfaces.words import ActiveJobs

FILES = "/files/"
_STATUS = {"completed": "ready", "failed": "failed", "cancelled": "cancelled"}


def _same(shape: type[Any], source: object) -> dict[str, Any]:
    """The fields that a shape has in common with its source."""
    return {name: getattr(source, name) for name in shape.__slots__ if hasattr(source, name)}


@dataclass(frozen=True, slots=True)
class JobShape:
    """One video through one recipe."""

    id: str
    name: str
    recipe: str
    queue: str  # where it was put: the lane of its first task
    state: str  # the ledger's
    word: str  # the same for people: waiting, running, paused, done, failed, cancelled
    paused: bool
    priority: int
    counts: Counts
    video: str  # "" until probe has found it
    last_event: int
    created_at: str
    started_at: str | None
    finished_at: str | None

    @staticmethod
    def of(job: Job, active: ActiveJobs) -> "JobShape":
        """From the ledger's row."""
        changed = {"state": job.state.value, "word": active.word(job), "video": video_of(job)}
        return JobShape(**_same(JobShape, job) | changed)


@dataclass(frozen=True, slots=True)
class TaskShape:
    """One stage on one chunk, or on the whole video."""

    id: str
    job: str
    stage: str
    chunk: int | None
    lane: str
    state: str
    attempt: int
    failures: int
    losses: int
    unmet: int
    worker: str | None
    due_in: float | None
    progress: float
    created_at: str
    started_at: str | None
    finished_at: str | None
    adopted: bool
    failure: Failure | None

    @staticmethod
    def of(task: Task) -> "TaskShape":
        """From the ledger's row."""
        return TaskShape(**_same(TaskShape, task) | {"state": task.state.value, "attempt": task.fence})


@dataclass(frozen=True, slots=True)
class Line:
    """One observation of a video in video time; `corrected` is the id of the correction that changed its text."""

    kind: str
    start_us: int
    end_us: int
    text: str
    confidence: float
    language: str
    words: list[tuple[str, int, int, float]]
    box: list[float] | None
    extra: Mapping[str, Any]
    corrected: str = ""

    @staticmethod
    def of(o: Observation) -> "Line":
        """From an observation; words in microseconds."""
        us = o.span.base * 1_000_000
        words = [(w, int(a * us), int(b * us), c) for w, a, b, c in o.words]
        box, corrected = list(o.box) if o.box else None, str(o.extra.get("corrected", ""))
        span = (o.span.start_us, o.span.end_us)
        return Line(o.kind, *span, o.text, o.confidence, o.language, words, box, o.extra, corrected)


@dataclass(frozen=True, slots=True)
class HitShape:
    """One time-coded search hit; `pieces` are texts, each with whether it matched; never markup."""

    video: str
    name: str
    kind: str
    start_us: int
    end_us: int
    line_start_us: int
    line_end_us: int
    times_us: tuple[tuple[int, int], ...]
    pieces: tuple[tuple[str, bool], ...]
    text: str
    score: float
    language: str
    confidence: float
    thumb: str

    @staticmethod
    def of(hit: Hit) -> "HitShape":
        """From the index."""
        thumb = f"/api/v1/videos/{hit.video}/frames/{max(0, hit.thumb_us) // 1000}.jpg"
        start, end = hit.line.start_us, hit.line.end_us
        times = tuple((span.start_us, span.end_us) for span in hit.times)
        return HitShape(**_same(HitShape, hit), line_start_us=start, line_end_us=end, times_us=times, thumb=thumb)


@dataclass(frozen=True, slots=True)
class RecordShape:
    """A record: something a user said about footage."""

    id: str
    version: int
    doc: Mapping[str, Any]

    @staticmethod
    def of(record: Record) -> "RecordShape":
        """From the records."""
        return RecordShape(record.id, record.version, record.doc)


@dataclass(frozen=True, slots=True)
class VideoShape(Video):
    """A video, with the addresses of its poster and proxy, and the field names of the design documents."""

    video_id: str = ""
    file_path: str = ""
    file_hash: str = ""
    duration: float = 0.0  # seconds
    status: str = ""  # ready (everything that was asked for is searchable), processing, failed or cancelled
    owner_id: str = ""
    s3_original_path: str = ""
    s3_proxy_path: str = ""
    s3_thumb_path: str = ""


def of_video(video: Video, path: str = "") -> VideoShape:
    """A video for programs and pages; to programs, the whole `path` of its original is told."""
    poster, proxy = (FILES + name if name else "" for name in (video.poster, video.proxy))
    status = _STATUS.get(video.state, "processing")
    same = _same(Video, video) | {"poster": poster, "proxy": proxy}
    paths = {"s3_original_path": path or video.path, "s3_proxy_path": video.proxy, "s3_thumb_path": video.poster}
    file = {"file_path": path or video.path, "file_hash": video.sha256, "duration": video.duration_us / 1_000_000}
    return VideoShape(**same | paths | file, video_id=video.id, status=status, owner_id=video.owner)


T = TypeVar("T")

Limit = Annotated[int, Query(ge=1, le=500, description="maximum number of rows")]
Cursor = Annotated[str, Query(max_length=1000, description="`cursor` of the previous page")]


class Page(BaseModel, Generic[T]):
    """Some rows, and the cursor of the next page ("" at the end)."""

    items: list[T]
    cursor: str = ""
    next: str | None = None


def page(request: Request, items: list[T], cursor: str, of: str) -> Page[T]:
    """A page with its signed cursor; `of` names the list."""
    if not cursor:
        return Page(items=items)
    sealed = seal(request, cursor, of)
    link = request.url.include_query_params(cursor=sealed)
    return Page(items=items, cursor=sealed, next=f"{link.path}?{link.query}")


def seal(request: Request, cursor: str, of: str) -> str:
    """Sign a store's cursor for clients."""
    return _signer(request).seal(cursor, of)


def unseal(request: Request, cursor: str, of: str) -> str:
    """The store's cursor, verified.

    Raises:
        Refused: it is none of ours, or of another list.
    """
    return _signer(request).unseal(cursor, of)


def _signer(request: Request) -> Signer:
    signer: Signer = request.app.state.signer
    return signer
