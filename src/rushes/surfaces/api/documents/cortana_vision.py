"""cortana-vision: its jobs of a video, segments and entities of text, clips in milliseconds, search for programs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field

from rushes.domain.errors import Refused
from rushes.domain.job import Job
from rushes.domain.observation import Observation
from rushes.domain.task import Task, TaskState
from rushes.library import Library
from rushes.library.clips import ClipStatus
from rushes.library.jobs import Step, join_steps, video_of
from rushes.library.videos import Video
from rushes.surfaces.api import clips, search
from rushes.surfaces.http.deps import Id, LibraryDep, Name
from rushes.surfaces.http.openapi import ProgramRoute
from rushes.surfaces.http.schemas import FILES

router = APIRouter()
for_programs = APIRouter(route_class=ProgramRoute)
for_programs.add_api_route("/search", search.search)

JOB_TYPES = {
    "transcode": ("probe", "develop", "playlist"),
    "sample": ("develop", "stills"),
    "ocr": ("read_text",),
    "segment_index": ("segments",),
    "clip_generate": ("clip",),
}  # each with the stages that do it; a file that cannot be read fails its transcode
STATUS = {"PENDING": "queued", "RUNNING": "processing", "COMPLETED": "done", "FAILED": "failed"}
MOST_JOBS = 20  # runs of a video that are looked at
Milliseconds = Annotated[int, Field(ge=0, le=10_000_000_000)]
VideoId = Annotated[str, Query(max_length=100)]


class ClipIn(BaseModel):
    """From and to in milliseconds of video time, and how much more is cut on either side."""

    video_id: Name
    t_start: Milliseconds
    t_end: Milliseconds
    padding_ms: int = Field(default=2000, ge=0, le=60_000)


@dataclass(frozen=True, slots=True)
class ClipCreated:
    """A clip that was asked for."""

    clip_id: str
    status: str


@dataclass(frozen=True, slots=True)
class ClipOut(ClipCreated):
    """A clip and where it is."""

    video_id: str
    t_start: int
    t_end: int
    s3_path: str | None
    url: str | None
    error: str | None

    @staticmethod
    def of(clip: ClipStatus) -> "ClipOut":
        """From the library."""
        times = (round(clip.start * 1000), round(clip.end * 1000))
        path = clip.published or None
        return ClipOut(clip.id, clip.status, clip.video, *times, path, FILES + path if path else None, clip.error)


@router.post("/clips")
def make_clip(
    library: LibraryDep,
    response: Response,
    body: ClipIn | None = None,
    video_id: VideoId = "",
    t_start: Milliseconds | None = None,
    t_end: Milliseconds | None = None,
) -> ClipCreated:
    """Ask for a clip, as JSON or in the query; the same span again is the same clip."""
    if body is None and (t_start is None or t_end is None):
        raise Refused("video_id, t_start and t_end are required", "Times are whole milliseconds.")
    asked = body or ClipIn(video_id=video_id, t_start=t_start or 0, t_end=t_end or 0)
    if asked.t_start >= asked.t_end:
        raise Refused("t_end must be greater than t_start", "Times are whole milliseconds.")
    video = library.videos.get(asked.video_id)
    clip = library.clips.order(video, asked.t_start / 1000, asked.t_end / 1000, asked.padding_ms)
    response.headers["Location"] = f"/clips/{clip.id}"
    return ClipCreated(clip.id, "queued" if clip.status == "processing" else clip.status)  # a worker may be quick


@router.get("/clips/{clip_id}")
def get_clip(library: LibraryDep, clip_id: Id) -> ClipOut:
    """One clip; `s3_path` is there when it is cut."""
    return ClipOut.of(library.clips.get(clip_id))


@dataclass(frozen=True, slots=True)
class Box:
    """A place in the picture, as parts of its width and height."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class SegmentOut:
    """The same words on screen over time; times in milliseconds."""

    id: str
    video_id: str
    text: str
    normalized_text: str
    text_hash: str
    t_start: int
    t_end: int
    confidence: float
    bounding_box: Box | None
    language: str
    owner_id: str
    team_id: str

    @staticmethod
    def of(video: Video, line: Observation, team: str) -> "SegmentOut":
        """From an observation of text."""
        known = {name: str(line.extra.get(name, "")) for name in ("normalized_text", "text_hash")}
        return SegmentOut(
            id=str(line.extra.get("segment", "")),
            video_id=video.id,
            text=line.text,
            **known,
            t_start=line.span.start_us // 1000,
            t_end=line.span.end_us // 1000,
            confidence=line.confidence,
            bounding_box=Box(*line.box) if line.box else None,
            language=line.language,
            owner_id=video.owner,
            team_id=team,
        )


@router.get("/segments")
def list_segments(library: LibraryDep, video_id: VideoId) -> list[SegmentOut]:
    """Text on screen, merged over time, in order of time."""
    video = library.videos.get(video_id)
    team = library.jobs.get(video.job).team
    return [SegmentOut.of(video, line, team) for line in library.videos.lines(video.id, "text")]


@dataclass(frozen=True, slots=True)
class EntityOut:
    """A mention, hashtag, URL, emoji or number in a segment."""

    segment_id: str
    entity_type: str
    value: str
    normalized_value: str

    @staticmethod
    def of(line: Observation) -> "EntityOut":
        """From an observation of an entity."""
        words = (str(line.extra.get(name, "")) for name in ("segment", "type", "normalized_value"))
        segment, type, normalized = words
        return EntityOut(segment, type, line.text, normalized)


@router.get("/entities")
def list_entities(library: LibraryDep, video_id: VideoId) -> list[EntityOut]:
    """The entities in the text of a video, in order of time."""
    video = library.videos.get(video_id)
    return [EntityOut.of(line) for line in library.videos.lines(video.id, "entity")]


@dataclass(frozen=True, slots=True)
class JobOut:
    """One type of work on a video; after a failure its payload holds the error beside the original payload."""

    id: str
    video_id: str
    job_type: str
    status: str  # queued, processing, done, failed
    retry_count: int
    priority: int
    locked_by: str | None
    locked_until: str | None
    depends_on: tuple[str, ...]
    payload: Mapping[str, Any]
    created_at: str
    started_at: str | None
    finished_at: str | None


@dataclass(frozen=True, slots=True)
class Original:
    """A video as payloads name it; its id is "" until the file was read."""

    id: str
    path: str


@router.get("/videos/{video_id}/jobs")
def list_jobs(library: LibraryDep, video_id: Id, job_type: Annotated[str, Query(max_length=40)] = "") -> list[JobOut]:
    """The jobs of a video (or of a run whose video is not known yet) by type: its newest runs, and its clips."""
    if video_id.startswith("job_"):
        run = library.jobs.get(video_id)
        found = [*_of_run(library, Original(video_of(run), library.jobs.place_of(run)), run)]
    else:
        video = library.videos.get(video_id)
        original = Original(video.id, library.videos.place_of(video))
        runs = library.jobs.of_video(video, MOST_JOBS)
        found = [job for run in runs for job in _of_run(library, original, run)]
        found += [_of_clip(library, original, clip) for clip in library.clips.of_video(video.id)]
    found = [job for job in found if job_type in ("", job.job_type)]
    workers = library.jobs.workers() if any(job.locked_by for job in found) else ()
    left = {worker.incarnation.id: worker.lease_left for worker in workers}
    return [replace(job, locked_until=_moment(left.get(job.locked_by or ""))) for job in found]


def _moment(seconds: float | None) -> str | None:
    """When so many seconds from now are over."""
    at = None if seconds is None else datetime.now(UTC) + timedelta(seconds=seconds)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z") if at else None


def _of_run(library: Library, video: Original, run: Job) -> Iterable[JobOut]:
    steps = {step.stage: step for step in library.jobs.steps(run.id)}
    tasks = library.jobs.tasks(run.id)
    for type, stages in JOB_TYPES.items():
        if stages[-1] in steps or (type == "sample" and stages[0] in steps):
            step = join_steps(*(steps[stage] for stage in stages if stage in steps))
            mine = [task for task in tasks if task.stage in stages]
            yield _job(video, type, step, run, mine, _payload(library, video, type, step))


def _of_clip(library: Library, video: Original, clip: ClipStatus) -> JobOut:
    run, (step, *_) = library.jobs.get(clip.job), library.jobs.steps(clip.job)
    span = {"t_start": round(clip.start * 1000), "t_end": round(clip.end * 1000)}
    payload = {"video_id": video.id, "clip_id": clip.id, **span, "padding_ms": step.options.get("padding_ms", 2000)}
    tasks = library.jobs.tasks(run.id)
    return _job(video, "clip_generate", step, run, tasks, payload | {"s3_original_path": video.path})


def _payload(library: Library, video: Original, type: str, step: Step) -> dict[str, Any]:
    """What the document's workers are told."""
    payload: dict[str, Any] = {"video_id": video.id}
    if type in ("transcode", "sample"):
        payload["s3_original_path"] = video.path
    if type == "sample":
        payload |= {name: step.options.get(name) for name in ("target_fps", "dedupe_threshold")}
    if type == "ocr":
        payload["frame_paths"] = library.videos.published(f"frames/{video.id}/") if video.id else []
        payload |= {name: step.options.get(name) for name in ("languages", "min_confidence")}
    return payload


def _job(video: Original, type: str, step: Step, run: Job, tasks: Iterable[Task], payload: Mapping[str, Any]) -> JobOut:
    rows = list(tasks)
    failed = [task for task in rows if task.failure and task.state is not TaskState.DONE]
    last = max(failed, key=lambda task: (task.failures, task.failure.at if task.failure else ""), default=None)
    backing_off = any(task.due_in for task in failed)
    return JobOut(
        id=step.id,
        video_id=video.id,
        job_type=type,
        status="failed" if backing_off else STATUS.get(step.state, "failed"),
        retry_count=max((task.failures for task in rows), default=0),
        priority=run.priority,
        locked_by=next((task.worker for task in rows if task.worker), None),
        locked_until=None,  # is asked once for all jobs
        depends_on=step.needs,
        payload=_with_error(payload, last) if last else payload,
        created_at=step.created_at,
        started_at=step.started_at,
        finished_at=step.completed_at,
    )


def _with_error(payload: Mapping[str, Any], task: Task) -> dict[str, Any]:
    failure = task.failure
    assert failure is not None
    at = failure.at or task.finished_at or task.created_at
    told = {"type": failure.kind, "message": failure.message, "timestamp": at, "retry_count": failure.retry_count}
    return {"error": told, "original_payload": dict(payload)}


router.add_api_route("/clips/{clip_id}", clips.delete_clip, methods=["DELETE"], status_code=204)
