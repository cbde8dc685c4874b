"""Results of MCP tools: every moment has its video id, its time range and a link."""

from pydantic import BaseModel

from rushes.domain.job import Job
from rushes.domain.observation import Observation
from rushes.library.clips import ClipStatus
from rushes.library.jobs import JobProgress, video_of
from rushes.library.search import Hit
from rushes.library.videos import Video
from rushes.surfaces.words import ActiveJobs

SECOND = 1_000_000


def link_to(base: str, video: str, start_us: int | None = None, end_us: int | None = None) -> str:
    """The page of a video at a time range."""
    times = {"t": start_us, "end": end_us}
    query = "&".join(f"{name}={us / SECOND:.3f}" for name, us in times.items() if us is not None)
    return f"{base}/videos/{video}" + (f"?{query}" if query else "")


class Moment(BaseModel):
    """A time range of a video, and what is said or seen there."""

    video_id: str
    name: str
    kind: str
    start_seconds: float
    end_seconds: float
    text: str
    link: str

    @staticmethod
    def of(video: Video, line: Observation, base: str) -> "Moment":
        """From an observation."""
        start, end = line.span.start_us, line.span.end_us
        link = link_to(base, video.id, start, end)
        return Moment(video_id=video.id, name=video.name, kind=line.kind, text=line.text, link=link,
                      start_seconds=start / SECOND, end_seconds=end / SECOND)  # fmt: skip

    @staticmethod
    def of_hit(hit: Hit, base: str) -> "Moment":
        """From a match."""
        link = link_to(base, hit.video, hit.start_us, hit.end_us)
        return Moment(video_id=hit.video, name=hit.name, kind=hit.kind, text=hit.text, link=link,
                      start_seconds=hit.start_us / SECOND, end_seconds=hit.end_us / SECOND)  # fmt: skip


class Moments(BaseModel):
    """Some moments; pass `cursor` to the same tool with the same arguments for the next ones ("" at the end)."""

    moments: list[Moment]
    cursor: str = ""


class Found(Moments):
    """Hits of a search, how many there are in how many videos, and which parts of the query were not understood."""

    total: int
    videos: int
    note: str = ""


class FrameOut(BaseModel):
    """Where a picture comes from."""

    video_id: str
    name: str
    at_seconds: float
    link: str


class VideoOut(BaseModel):
    """A video; `state` is that of its newest job."""

    video_id: str
    name: str
    duration_seconds: float
    width: int
    height: int
    languages: list[str]
    added_at: str
    job_id: str
    state: str
    link: str

    @staticmethod
    def of(video: Video, base: str) -> "VideoOut":
        """From the library."""
        same = {name: getattr(video, name) for name in ("name", "width", "height", "added_at", "state")}
        return VideoOut(**same, video_id=video.id, duration_seconds=video.duration_us / SECOND,
                        languages=list(video.languages), job_id=video.job, link=link_to(base, video.id))  # fmt: skip


class VideosOut(BaseModel):
    """Some videos, newest first, and the cursor of the next page ("" at the end)."""

    videos: list[VideoOut]
    cursor: str = ""


class VideoDetails(VideoOut):
    """A video, how many lines of each kind are known, and where its transcript is."""

    shots: int
    lines: dict[str, int]
    transcript: str


class JobOut(BaseModel):
    """A job; `state` is waiting, running, paused, done, failed or cancelled."""

    job_id: str
    name: str
    recipe: str
    state: str
    video_id: str  # "" until the file was looked into
    done: int  # tasks
    total: int
    failed: int
    link: str

    @staticmethod
    def of(job: Job, active: ActiveJobs, base: str) -> "JobOut":
        """From the ledger's row."""
        return JobOut(job_id=job.id, name=job.name, recipe=job.recipe, state=active.word(job), video_id=video_of(job),
                      done=job.counts.done, total=job.counts.total, failed=job.counts.dead,
                      link=f"{base}/jobs/{job.id}")  # fmt: skip


class JobsOut(BaseModel):
    """Some jobs, newest first, and the cursor of the next page ("" at the end)."""

    jobs: list[JobOut]
    cursor: str = ""


class StageOut(BaseModel):
    """The progress of one stage of a job."""

    stage: str
    done: int
    total: int


class JobDetails(JobOut):
    """A job, its stages, the seconds left (range of nine of ten runs), and why tasks of it do not run."""

    stages: list[StageOut]
    remaining_seconds: tuple[float, float] | None
    waits_for: list[str]

    @staticmethod
    def of_progress(seen: JobProgress, active: ActiveJobs, base: str, waits_for: list[str]) -> "JobDetails":
        """From a look at the job."""
        stages = [StageOut(stage=s.stage, done=s.done, total=s.total) for s in seen.stages]
        job = JobOut.of(seen.job, active, base).model_dump()
        return JobDetails(**job, stages=stages, remaining_seconds=seen.remaining, waits_for=waits_for)


class AddedOut(BaseModel):
    """One video: its job, or why it was not added."""

    path: str
    job_id: str = ""
    new: bool = False
    error: str = ""
    link: str = ""


class ClipOut(BaseModel):
    """A clip; ask again with the same range until `status` is done, then `file` is its address."""

    clip_id: str
    video_id: str
    start_seconds: float
    end_seconds: float
    status: str
    file: str
    link: str
    error: str

    @staticmethod
    def of(clip: ClipStatus, base: str) -> "ClipOut":
        """From the library."""
        file = f"{base}/files/{clip.published}" if clip.published else ""
        return ClipOut(clip_id=clip.id, video_id=clip.video, start_seconds=clip.start, end_seconds=clip.end,
                       status=clip.status, file=file, link=f"{base}/library/clips/{clip.id}",
                       error=clip.error or "")  # fmt: skip


class EstimateOut(BaseModel):
    """How long a recipe takes on the server's machine (range of nine of ten runs), and how many bytes it stores."""

    recipe: str
    film_seconds: float
    seconds: tuple[float, float] | None  # None: not every stage of it is known there
    bytes: int
    unknown_stages: list[str]
