"""Videos: list and details, lines, runs, exports; adding videos: recipes, requests, saved locations."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from rushes.domain.keys import JSON
from rushes.domain.text import clean_text
from rushes.library import IntakeResult, JobRequest, Library, RemovalReport
from rushes.library.names import stem
from rushes.library.videos.export import KINDS
from rushes.library.videos.stereo import StereoOptions
from rushes.library.watching.paths import FoundFile, SkippedFile
from rushes.surfaces.api.media import content_disposition
from rushes.surfaces.http.deps import ActiveDep, Id, Key, LibraryDep, Name, Place, accepted, active_of, once
from rushes.surfaces.http.schemas import (
    Cursor,
    JobShape,
    Limit,
    Line,
    Page,
    RecordShape,
    VideoShape,
    of_video,
    page,
    unseal,
)
from rushes.surfaces.words import ActiveJobs

router = APIRouter(tags=["videos"])
paths = APIRouter(tags=["paths"])
LOOKS = 1000  # entries that a check looks at
recipes = APIRouter(tags=["recipes"])
Profile = Literal["", "fast", "balanced", "high_quality"]
HOUR = 3600.0
Seconds = Annotated[float, Query(ge=0, le=86_400, allow_inf_nan=False, description="of film")]
Pixels = Annotated[int, Query(ge=1, le=20_000)]

OptionValue = int | float | bool | Annotated[str, Field(max_length=200)] | Annotated[list[Name], Field(max_length=50)]

MOST_RUNS = 500
MOST_FILES = 10_000  # that one request takes in
ENDINGS = {"words": "words.json", "chapters": "chapters.txt"}  # where the kind is none
TYPES = {"srt": "application/x-subrip", "vtt": "text/vtt", "txt": "text/plain", "json": "application/json",
         "words": "application/json", "csv": "text/csv", "jsonl": "application/x-ndjson",
         "parquet": "application/vnd.apache.parquet", "otio": "application/json",
         "chapters.vtt": "text/vtt"}  # fmt: skip


class JobRequestIn(BaseModel):
    """What to make from videos."""

    recipe: Name = ""
    only: list[Name] = Field(default=[], max_length=50)
    skip: list[Name] = Field(default=[], max_length=50)
    profile: Profile = ""
    language: Name = ""
    chunk: Name = Field(default="", description="seconds of a chunk, or large")
    format: Name = Field(default="", description="of 3D: sbs, tb, anaglyph, or a longer name")
    priority: int = Field(default=0, ge=-1000, le=1000)
    again: int = Field(default=0, ge=0, le=1_000_000)
    options: dict[Name, dict[Name, OptionValue]] = Field(
        default={}, max_length=20, description="of stages, by stage and name; see GET /api/v1/recipes"
    )

    def wanted(self) -> JobRequest:
        """As the library takes it.

        Raises:
            Refused: there is no such format.
        """
        begun = StereoOptions(self.format).wanted() if self.format else JobRequest()
        asked = {name: getattr(self, name) for name in ("profile", "language", "chunk", "priority", "again")}
        recipe = self.recipe or begun.recipe
        return replace(
            begun,
            recipe=recipe,
            only=tuple(self.only),
            skip=tuple(self.skip),
            stage_options=self.options,
            **asked,
        )


class AddIn(JobRequestIn):
    """Locations of videos as the server sees them: files, folders or s3://bucket/prefix."""

    paths: list[Place] = Field(min_length=1, max_length=100)


class NameIn(BaseModel):
    """A title; an empty one removes it."""

    name: Name


@dataclass(frozen=True, slots=True)
class AddedShape:
    """One video: its job, or why it was not added."""

    path: str
    job: JobShape | None = None
    created: bool = False
    error: str = ""
    hint: str = ""
    skipped: str = ""

    @staticmethod
    def of(added: IntakeResult, active: ActiveJobs) -> "AddedShape":
        """From the library."""
        job = JobShape.of(added.job, active) if added.job else None
        error, hint = (str(added.error), added.error.advice) if added.error else ("", "")
        return AddedShape(clean_text(added.path), job, added.created, error, hint, added.skipped)


@dataclass(frozen=True, slots=True)
class Shots:
    """Start and end of each shot, in microseconds."""

    shots: list[tuple[int, int]] = field(default_factory=list)


@router.get("/videos")
def list_videos(request: Request, library: LibraryDep, cursor: Cursor = "", limit: Limit = 50) -> Page[VideoShape]:
    """List videos, newest first."""
    rows, more = library.videos.page(unseal(request, cursor, "videos"), limit)
    return page(request, [of_video(v, library.videos.place_of(v)) for v in rows], more, "videos")


@router.post("/videos", status_code=202, response_model=list[AddedShape])
def add_videos(request: Request, library: LibraryDep, body: AddIn, key: Key = "") -> JSONResponse:
    """Add videos from locations that the server sees; each becomes a job."""

    def make() -> JSONResponse:
        return answer_added(add_places(request, library, body.paths, body.wanted()), active_of(request))

    return once(library, key, request, body.model_dump(), make)


def add_places(request: Request, library: Library, places: list[str], wanted: JobRequest) -> list[IntakeResult]:
    """Take in what lies at places that a request may name.

    Raises:
        NotAllowed: one lies elsewhere.
    """
    roots = check_places(request, library, places)
    return library.add(places, wanted, roots=roots, most=MOST_FILES)


def answer_added(added: Sequence[IntakeResult], active: ActiveJobs) -> JSONResponse:
    """What was taken in, and where to look: at the job, or at all of them.

    Raises:
        RushesError: nothing was, and this is why.
    """
    wrong = [a.error for a in added if a.error]
    if wrong and len(wrong) == len(added):
        raise wrong[0]
    jobs = [a.job.id for a in added if a.job]
    shapes = [asdict(AddedShape.of(a, active)) for a in added]
    return accepted(shapes, "/".join(["/api/v1/jobs", *jobs[: len(jobs) == 1]]))


def roots_of(request: Request, library: Library) -> list[str]:
    """The folders that may be read; the default ones only where everyone on this machine has full access."""
    return library.paths.roots(usual=request.app.state.access.open)


def check_places(request: Request, library: Library, places: list[str]) -> list[str]:
    """The roots, after a check that these places lie below them.

    Raises:
        NotAllowed: one lies elsewhere.
    """
    return library.paths.allowed(places, usual=request.app.state.access.open)


@router.get("/videos/{video_id}")
def get_video(library: LibraryDep, video_id: Id) -> VideoShape:
    """Get a video."""
    video = library.videos.get(video_id)
    return of_video(video, library.videos.place_of(video))


@router.patch("/videos/{video_id}")
def name_video(library: LibraryDep, video_id: Id, body: NameIn) -> VideoShape:
    """Set the title of a video."""
    library.videos.rename(library.videos.get(video_id), body.name)
    return get_video(library, video_id)


@router.delete("/videos/{video_id}")
def delete_video(library: LibraryDep, video_id: Id, originals: bool = False) -> RemovalReport:
    """Delete a video and everything made from it; the original stays, unless it was uploaded and `originals` is set."""
    return library.videos.remove(video_id, originals=originals)


@router.get("/videos/{video_id}/lines")
def list_lines(
    request: Request,
    library: LibraryDep,
    video_id: Id,
    kind: Annotated[str, Query(pattern=r"^[a-z_]{1,40}$")] = "speech",
    cursor: Cursor = "",
    limit: Limit = 200,
) -> Page[Line]:
    """List what is said (or seen: text, object, face, place) in order of time, with corrections; grows during a job."""
    lines = library.videos.lines(library.videos.get(video_id).id, kind)
    of = f"lines {video_id} {kind}"
    at = int(unseal(request, cursor, of) or 0)
    some = [Line.of(o) for o in lines[at : at + limit]]
    return page(request, some, str(at + limit) if len(lines) > at + limit else "", of)


@router.get("/videos/{video_id}/shots")
def list_shots(library: LibraryDep, video_id: Id) -> Shots:
    """List the shots of a video."""
    return Shots(library.videos.shots(library.videos.get(video_id)))


@router.get("/videos/{video_id}/runs")
def list_runs(library: LibraryDep, active: ActiveDep, video_id: Id) -> list[JobShape]:
    """List the jobs of a video, newest first."""
    return [JobShape.of(job, active) for job in library.jobs.of_video(library.videos.get(video_id), MOST_RUNS)]


@router.post("/videos/{video_id}/runs", status_code=202, response_model=list[AddedShape])
def run_video(
    request: Request, library: LibraryDep, video_id: Id, body: JobRequestIn | None = None, key: Key = ""
) -> JSONResponse:
    """Process a video with another recipe, or again as a new take (`again`); existing results are reused."""
    asked, video = body or JobRequestIn(), library.videos.get(video_id)

    def make() -> JSONResponse:
        return answer_added(library.add([library.videos.source(video)], asked.wanted()), active_of(request))

    return once(library, key, request, asked.model_dump(), make)


@router.get("/videos/{video_id}/exports/{kind}", response_class=Response)
def export_video(
    library: LibraryDep,
    video_id: Id,
    kind: Annotated[str, Path(max_length=20)],
    download: bool = False,
    language: Annotated[str, Query(max_length=12, pattern="^[A-Za-z-]*$")] = "",
) -> Response:
    """Export results in a format of other tools; a transcript also in one `language` only."""
    video = library.videos.get(video_id)
    data = library.videos.export(video, kind, language=language)
    ending = ".".join(filter(None, (language, ENDINGS.get(kind, kind))))
    name = content_disposition(f"{stem(video)}.{ending}", download=download)
    return Response(data, media_type=TYPES.get(kind, "text/plain"), headers={"Content-Disposition": name})


@router.get("/exports")
def list_exports() -> list[str]:
    """List the export formats."""
    return list(KINDS)


@dataclass(frozen=True, slots=True)
class RecipeShape:
    """A recipe and its cost for a length of video: seconds by stage (range of nine of ten runs), and stored bytes."""

    name: str
    usual: bool
    stages: tuple[str, ...]
    options: Mapping[str, Mapping[str, JSON]]  # that a request may set, by stage, with their defaults
    expected: tuple[float, float] | None  # None: not everything in it was learnt yet
    of_stages: Mapping[str, tuple[float, float]]
    size: int


@recipes.get("/recipes")
def list_recipes(
    library: LibraryDep, seconds: Seconds = HOUR, width: Pixels = 1920, height: Pixels = 1080
) -> list[RecipeShape]:
    """List the recipes, and what each costs on this machine."""
    found, settable = [], library.stage_options()
    for name, stages in library.recipes().items():
        told = library.estimates.of_recipe(name, seconds, (width, height))
        whole, usual = None if told.unknown else told.seconds, name == library.settings.recipe
        options = {stage: settable[stage] for stage in stages if stage in settable}
        found.append(RecipeShape(name, usual, stages, options, whole, told.stages, told.size))
    return found


class PathIn(BaseModel):
    """An absolute path, or s3://bucket/prefix, as the server sees it."""

    path: Place


@dataclass(frozen=True, slots=True)
class PathCheck:
    """What is at a location: videos, and files that cannot be added."""

    path: str
    films: int
    more: bool
    faults: list[str]


@paths.get("/paths")
def list_paths(library: LibraryDep) -> list[RecordShape]:
    """List the saved locations."""
    return [RecordShape.of(r) for r in library.paths.all()]


@paths.post("/paths", status_code=201)
def add_path(request: Request, library: LibraryDep, body: PathIn) -> RecordShape:
    """Save a location."""
    check_places(request, library, [body.path])
    return RecordShape.of(library.paths.add(body.path))


@paths.delete("/paths/{path_id}", status_code=204)
def forget_path(library: LibraryDep, path_id: Id) -> Response:
    """Remove a saved location; its videos stay."""
    library.paths.remove(path_id)
    return Response(status_code=204)


@paths.post("/paths/{path_id}/validate")
def validate_path(library: LibraryDep, path_id: Id) -> PathCheck:
    """List what is at a saved location, without adding anything."""
    path = library.paths.get(path_id)
    looked = library.paths.look(path, LOOKS + 1)
    faults = [clean_text(f"{e.path}: {e.reason}") for e in looked if isinstance(e, SkippedFile) and e.fault]
    return PathCheck(path, sum(isinstance(e, FoundFile) for e in looked), len(looked) > LOOKS, faults[:100])


@paths.post("/paths/{path_id}/scan", status_code=202, response_model=list[AddedShape])
def scan_path(request: Request, library: LibraryDep, path_id: Id, body: JobRequestIn | None = None) -> JSONResponse:
    """Add the videos at a saved location."""
    path = library.paths.get(path_id)
    added = add_places(request, library, [path], (body or JobRequestIn()).wanted())
    return answer_added(added, active_of(request))
