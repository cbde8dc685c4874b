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
from rushes.surfaces.mcp.tool_call import ToolCall, tool_call_of
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
        of, call = f"search {order} {video_id} {query}", self._call(ctx)
        found = call.library.search(query, limit, self._signer.unseal(cursor, of), video_id, order)
        moments = [Moment.of_hit(hit, call.base) for hit in found.hits]
        more = self._signer.seal(found.cursor, of)
        return Found(moments=moments, cursor=more, total=found.total, videos=found.videos, note=found.note)

    def list_videos(self, ctx: Context, limit: Limit = 20, cursor: Cursor = "") -> VideosOut:
        """List the videos of the library, newest first."""
        call = self._call(ctx)
        rows, more = call.library.videos.page(self._signer.unseal(cursor, "videos"), limit)
        videos = [VideoOut.of(video, call.base) for video in rows]
        return VideosOut(videos=videos, cursor=self._signer.seal(more, "videos"))

    def describe_video(self, ctx: Context, video_id: Id) -> VideoDetails:
        """Get one video: length, picture, languages, and how many lines of each kind are known."""
        call = self._call(ctx)
        video = call.library.videos.get(video_id)
        lines = {kind: len(call.library.videos.lines(video.id, kind)) for kind in get_args(Kind)}
        shots = len(call.library.videos.lines(video.id, "shot"))
        same = VideoOut.of(video, call.base).model_dump()
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
        call, of = self._call(ctx), f"transcript {video_id} {kind} {start_seconds} {end_seconds}"
        video = call.library.videos.get(video_id)
        first, last = start_seconds * SECOND, end_seconds * SECOND
        lines = [
            line
            for line in call.library.videos.lines(video.id, kind)
            if line.span.end_us > first and line.span.start_us < last
        ]
        at = int(self._signer.unseal(cursor, of) or 0)
        some = [Moment.of(video, line, call.base) for line in lines[at : at + limit]]
        more = str(at + limit) if len(lines) > at + limit else ""
        return Moments(moments=some, cursor=self._signer.seal(more, of))

    def get_frame(self, ctx: Context, video_id: Id, at_seconds: Seconds) -> Annotated[CallToolResult, FrameOut]:
        """Get the picture at a time as a JPEG, with a link to it."""
        call, us = self._call(ctx), round(at_seconds * SECOND)
        video = call.library.videos.get(video_id)
        jpeg = call.library.videos.frame(video, us)
        link = link_to(call.base, video.id, us)
        said = FrameOut(video_id=video.id, name=video.name, at_seconds=at_seconds, link=link)
        picture = Image(data=jpeg, format="jpeg").to_image_content()
        text = TextContent(text=said.model_dump_json())
        return CallToolResult(content=[picture, text], structured_content=said.model_dump())

    # Jobs
    def list_jobs(self, ctx: Context, state: JobState | None = None, limit: Limit = 20, cursor: Cursor = "") -> JobsOut:
        """List jobs, newest first, or those in one state."""
        call, of = self._call(ctx), f"jobs {state}"
        found = call.library.jobs.page(state, self._signer.unseal(cursor, of), limit)
        active = active_jobs(call.library.jobs.workers())
        jobs = [JobOut.of(job, active, call.base) for job in found.rows]
        return JobsOut(jobs=jobs, cursor=self._signer.seal(found.cursor, of))

    def job_status(self, ctx: Context, job_id: Id) -> JobDetails:
        """Get the progress of a job, the time left, and why tasks of it do not run."""
        call = self._call(ctx)
        active = active_jobs(call.library.jobs.workers())
        seen = call.library.jobs.watch(job_id).look()
        why = [f"{r.stage}: {r.reason.value} {r.detail}".strip() for r in call.library.jobs.why(job_id)]
        return JobDetails.of_progress(seen, active, call.base, why)

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
        library = self._call(ctx).library
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
        call = self._call(ctx)
        video = call.library.videos.get(video_id)
        clip = call.library.clips.order(video, start_seconds, end_seconds, padding_ms, subtitles=subtitles)
        call.note("clip requested", clip.id)
        return ClipOut.of(clip, call.base)

    def add_videos(
        self,
        ctx: Context,
        paths: Annotated[list[Place], Field(min_length=1, max_length=100)],
        recipe: Name = "",
        profile: Literal["", "fast", "balanced", "high_quality"] = "",
        language: Name = "",
    ) -> list[AddedOut]:
        """Add files, folders or s3://bucket/prefix as the server sees them; each video becomes a job."""
        call = self._call(ctx)
        roots = call.library.paths.allowed(paths, usual=call.is_open)
        wanted = JobRequest(recipe=recipe, profile=profile, language=language)
        added = call.library.add(paths, wanted, roots=roots, most=MOST_FILES)
        call.note("videos added", ", ".join(paths))
        return [
            AddedOut(
                path=one.path,
                job_id=one.job.id if one.job else "",
                new=one.created,
                error=f"{one.error}. {one.error.advice}" if one.error else one.skipped,
                link=f"{call.base}/jobs/{one.job.id}" if one.job else "",
            )
            for one in added
        ]

    # Deleting
    def cancel_job(self, ctx: Context, job_id: Id) -> JobOut:
        """Cancel a job; finished results stay."""
        call = self._call(ctx)
        job = call.library.jobs.cancel(job_id)
        call.note("job changed", f"cancel {job_id}")
        return JobOut.of(job, active_jobs(call.library.jobs.workers()), call.base)

    def delete_video(self, ctx: Context, video_id: Id) -> str:
        """Delete a video and everything made from it; the original stays."""
        call = self._call(ctx)
        call.library.videos.remove(video_id)
        call.note("video deleted", video_id)
        return f"deleted {video_id}"

    def _call(self, ctx: Context) -> ToolCall:
        return tool_call_of(ctx, self._library, self._pages)


def transcript_text(library: Library, video: Video) -> str:
    """The whole transcript of a video: one line each, with its time range in seconds."""
    lines = library.videos.lines(video.id)
    return "".join(f"[{ln.span.start_us / SECOND:.3f} - {ln.span.end_us / SECOND:.3f}] {ln.text}\n" for ln in lines)
