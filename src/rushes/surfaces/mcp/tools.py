"""Tools for agents: search, read, cut, add, follow; deleting only if the setting allows it."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, get_args

from mcp.server.mcpserver import Context, Image
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, TextContent, ToolAnnotations
from pydantic import Field

from rushes.domain.errors import NotFound, RushesError
from rushes.domain.job import JobState
from rushes.library import JobRequest, Library
from rushes.library.access.signing import Signer
from rushes.library.videos import Video
from rushes.surfaces.mcp.answers import (
    SECOND,
    AddedOut,
    ClipOut,
    EstimateOut,
    Found,
    FrameOut,
    JobDetails,
    JobOut,
    JobsOut,
    Moment,
    Moments,
    VideoDetails,
    VideoOut,
    VideosOut,
    link_to,
)
from rushes.surfaces.mcp.visit import Visit, visit_of
from rushes.surfaces.words import active_jobs

P = ParamSpec("P")
T = TypeVar("T")
Kind = Literal["speech", "text", "object", "face", "person", "place", "entity"]
MOST_FILES = 1000  # that one call takes in
HINTS = {"video": "Call list_videos", "job": "Call list_jobs"}  # where to find what is not found
READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
ADDS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
DELETES = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)

Id = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,200}$", description="an id that another tool returned")]
Cursor = Annotated[str, Field(max_length=1000, description="`cursor` of the previous page; leave it out for the first")]
Limit = Annotated[int, Field(ge=1, le=100, description="maximum number of results")]
Seconds = Annotated[float, Field(ge=0, le=10_000_000, allow_inf_nan=False, description="seconds of video time")]
Place = Annotated[str, Field(max_length=2000, pattern=r"^(/|(s3|gs|az)://)[^\x00]*$")]
Name = Annotated[str, Field(max_length=100, pattern=r"^[^\x00-\x1f]*$")]


def explained(tool: Callable[P, T]) -> Callable[P, T]:
    """The same tool; its errors tell the agent what to do instead."""

    @wraps(tool)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return tool(*args, **kwargs)
        except RushesError as e:
            hint = HINTS.get(e.what, "") if isinstance(e, NotFound) else e.advice
            raise ToolError(f"{e}. {hint}".rstrip(". ") + ".") from e

    return call


class Tools:
    """The tools over one library. Their docstrings are what agents read."""

    def __init__(self, library: Library, pages: str) -> None:
        """`pages` is the address of links where no request tells one."""
        self._library, self._pages = library, pages
        self._signer = Signer.of(library.home)

    def scopes(self) -> Mapping[str, tuple[ToolAnnotations, tuple[Callable[..., Any], ...]]]:
        """Each scope, and its tools."""
        looking = (self.search, self.list_videos, self.describe_video, self.get_transcript, self.get_frame)
        return {
            "read": (READS, (*looking, self.list_jobs, self.job_status, self.estimate)),
            "add": (ADDS, (self.make_clip, self.add_videos)),
            "delete": (DELETES, (self.cancel_job, self.delete_video)),
        }

    # Looking
    def search(
        self,
        ctx: Context,
        query: Annotated[str, Field(max_length=1000, description='words, "phrases", -without, OR, say:word, ...')],
        video_id: Annotated[str, Field(max_length=200, description="only in this video")] = "",
        order: Literal["best", "time"] = "best",
        limit: Limit = 20,
        cursor: Cursor = "",
    ) -> Found:
        """Find what was said, written or seen: moments with video id, time range and link. See prompt search_help."""
        of, visit = f"search {order} {video_id} {query}", self._visit(ctx)
        found = visit.library.search(query, limit, self._signer.unseal(cursor, of), video_id, order)
        moments = [Moment.of_hit(hit, visit.base) for hit in found.hits]
        more = self._signer.seal(found.cursor, of)
        return Found(moments=moments, cursor=more, total=found.total, videos=found.videos, note=found.note)

    def list_videos(self, ctx: Context, limit: Limit = 20, cursor: Cursor = "") -> VideosOut:
        """List the videos of the library, newest first."""
        visit = self._visit(ctx)
        rows, more = visit.library.videos.page(self._signer.unseal(cursor, "videos"), limit)
        videos = [VideoOut.of(video, visit.base) for video in rows]
        return VideosOut(videos=videos, cursor=self._signer.seal(more, "videos"))

    def describe_video(self, ctx: Context, video_id: Id) -> VideoDetails:
        """Get one video: length, picture, languages, and how many lines of each kind are known."""
        visit = self._visit(ctx)
        video = visit.library.videos.get(video_id)
        lines = {kind: len(visit.library.videos.lines(video.id, kind)) for kind in get_args(Kind)}
        shots = len(visit.library.videos.lines(video.id, "shot"))
        same = VideoOut.of(video, visit.base).model_dump()
        return VideoDetails(**same, shots=shots, lines=lines, transcript=f"rushes://videos/{video.id}/transcript")

    def get_transcript(
        self,
        ctx: Context,
        video_id: Id,
        start_seconds: Seconds = 0.0,
        end_seconds: Seconds = 10_000_000.0,
        kind: Kind = "speech",
        limit: Limit = 100,
        cursor: Cursor = "",
    ) -> Moments:
        """Get what is said (or written, or seen: `kind`) in a range of a video, in order of time, with corrections."""
        visit, of = self._visit(ctx), f"transcript {video_id} {kind} {start_seconds} {end_seconds}"
        video = visit.library.videos.get(video_id)
        first, last = start_seconds * SECOND, end_seconds * SECOND
        lines = [
            line
            for line in visit.library.videos.lines(video.id, kind)
            if line.span.end_us > first and line.span.start_us < last
        ]
        at = int(self._signer.unseal(cursor, of) or 0)
        some = [Moment.of(video, line, visit.base) for line in lines[at : at + limit]]
        more = str(at + limit) if len(lines) > at + limit else ""
        return Moments(moments=some, cursor=self._signer.seal(more, of))

    def get_frame(self, ctx: Context, video_id: Id, at_seconds: Seconds) -> Annotated[CallToolResult, FrameOut]:
        """Get the picture at a time as a JPEG, with a link to it."""
        visit, us = self._visit(ctx), round(at_seconds * SECOND)
        video = visit.library.videos.get(video_id)
        jpeg = visit.library.videos.frame(video, us)
        link = link_to(visit.base, video.id, us)
        said = FrameOut(video_id=video.id, name=video.name, at_seconds=at_seconds, link=link)
        picture = Image(data=jpeg, format="jpeg").to_image_content()
        text = TextContent(text=said.model_dump_json())
        return CallToolResult(content=[picture, text], structured_content=said.model_dump())

    # Jobs
    def list_jobs(self, ctx: Context, state: JobState | None = None, limit: Limit = 20, cursor: Cursor = "") -> JobsOut:
        """List jobs, newest first, or those in one state."""
        visit, of = self._visit(ctx), f"jobs {state}"
        found = visit.library.jobs.page(state, self._signer.unseal(cursor, of), limit)
        active = active_jobs(visit.library.jobs.workers())
        jobs = [JobOut.of(job, active, visit.base) for job in found.rows]
        return JobsOut(jobs=jobs, cursor=self._signer.seal(found.cursor, of))

    def job_status(self, ctx: Context, job_id: Id) -> JobDetails:
        """Get the progress of a job, the time left, and why tasks of it do not run."""
        visit = self._visit(ctx)
        active = active_jobs(visit.library.jobs.workers())
        seen = visit.library.jobs.watch(job_id).look()
        why = [f"{r.stage}: {r.reason.value} {r.detail}".strip() for r in visit.library.jobs.why(job_id)]
        return JobDetails.of_progress(seen, active, visit.base, why)

    def estimate(
        self,
        ctx: Context,
        recipe: Name = "",
        video_id: Annotated[str, Field(max_length=200, description="for the length of this video")] = "",
        film_seconds: Seconds = 3600.0,
        width: Annotated[int, Field(ge=1, le=20_000)] = 1920,
        height: Annotated[int, Field(ge=1, le=20_000)] = 1080,
    ) -> EstimateOut:
        """Estimate how long a recipe takes on the server's machine, for a video or for a number of seconds."""
        library = self._visit(ctx).library
        pixels, recipe = (width, height), recipe or library.settings.recipe
        if video_id:
            video = library.videos.get(video_id)
            film_seconds, pixels = video.duration_us / SECOND, (video.width, video.height)
        told = library.estimates.of_recipe(recipe, film_seconds, pixels)
        unknown = list(told.unknown)
        return EstimateOut(recipe=recipe, film_seconds=film_seconds, seconds=None if unknown else told.seconds,
                           bytes=told.size, unknown_stages=unknown)  # fmt: skip

    # Adding
    def make_clip(
        self,
        ctx: Context,
        video_id: Id,
        start_seconds: Seconds,
        end_seconds: Seconds,
        padding_ms: Annotated[int, Field(ge=0, le=60_000)] = 2000,
        subtitles: Literal["", "track", "burnt"] = "",
    ) -> ClipOut:
        """Cut a clip out of a video, exact to the frame; the same range again returns the status of that clip."""
        visit = self._visit(ctx)
        video = visit.library.videos.get(video_id)
        clip = visit.library.clips.order(video, start_seconds, end_seconds, padding_ms, subtitles=subtitles)
        visit.note("clip requested", clip.id)
        return ClipOut.of(clip, visit.base)

    def add_videos(
        self,
        ctx: Context,
        paths: Annotated[list[Place], Field(min_length=1, max_length=100)],
        recipe: Name = "",
        profile: Literal["", "fast", "balanced", "high_quality"] = "",
        language: Name = "",
    ) -> list[AddedOut]:
        """Add files, folders or s3://bucket/prefix as the server sees them; each video becomes a job."""
        visit = self._visit(ctx)
        roots = visit.library.paths.allowed(paths, usual=visit.is_open)
        wanted = JobRequest(recipe=recipe, profile=profile, language=language)
        added = visit.library.add(paths, wanted, roots=roots, most=MOST_FILES)
        visit.note("videos added", ", ".join(paths))
        return [
            AddedOut(
                path=one.path,
                job_id=one.job.id if one.job else "",
                new=one.created,
                error=f"{one.error}. {one.error.advice}" if one.error else one.skipped,
                link=f"{visit.base}/jobs/{one.job.id}" if one.job else "",
            )
            for one in added
        ]

    # Deleting
    def cancel_job(self, ctx: Context, job_id: Id) -> JobOut:
        """Cancel a job; finished results stay."""
        visit = self._visit(ctx)
        job = visit.library.jobs.cancel(job_id)
        visit.note("job changed", f"cancel {job_id}")
        return JobOut.of(job, active_jobs(visit.library.jobs.workers()), visit.base)

    def delete_video(self, ctx: Context, video_id: Id) -> str:
        """Delete a video and everything made from it; the original stays."""
        visit = self._visit(ctx)
        visit.library.videos.remove(video_id)
        visit.note("video deleted", video_id)
        return f"deleted {video_id}"

    def _visit(self, ctx: Context) -> Visit:
        return visit_of(ctx, self._library, self._pages)


def transcript_text(library: Library, video: Video) -> str:
    """The whole transcript of a video: one line each, with its time range in seconds."""
    lines = library.videos.lines(video.id)
    return "".join(f"[{ln.span.start_us / SECOND:.3f} - {ln.span.end_us / SECOND:.3f}] {ln.text}\n" for ln in lines)
