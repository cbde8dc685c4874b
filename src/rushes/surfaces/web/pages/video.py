"""One video: player, transcript, what is seen, timeline; correct, cut, export, process again."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Form, Path, Query, Request
from fastapi.responses import JSONResponse, Response

from rushes.domain.errors import NotFound
from rushes.domain.grouping import grouped
from rushes.domain.job import FINAL
from rushes.domain.observation import Observation
from rushes.library import JobRequest, Library
from rushes.library.search import Hit
from rushes.library.videos import Video
from rushes.library.videos.export import KINDS
from rushes.library.videos.stereo import StereoOptions
from rushes.surfaces.api.clips import ClipIn, ClipShape, Subtitles, get_clip, make_clip
from rushes.surfaces.api.videos import export_video
from rushes.surfaces.http.deps import MOST, Id, LibraryDep, Name, Text
from rushes.surfaces.http.schemas import FILES, of_video
from rushes.surfaces.web.view import back, render, with_query
from rushes.surfaces.words import active_jobs, parse_timecode, plural, unnamed_person

router = APIRouter(include_in_schema=False)
JOBS = 20  # of a video that are listed
KEPT = "Originals in folders and buckets are kept."
EXPORTS = {"srt": "Subtitles, SRT", "vtt": "Subtitles, WebVTT", "txt": "Transcript, plain text",
           "words": "Words with times, JSON", "csv": "Everything, CSV", "jsonl": "Everything, JSON lines",
           "chapters": "Chapters, FFmetadata", "chapters.vtt": "Chapters, WebVTT", "edl": "Shots, EDL",
           "otio": "Shots, OpenTimelineIO"}  # fmt: skip
VIEWS = {"half-sbs": "Side by side, half width", "full-sbs": "Side by side, full width",
         "half-tb": "Top and bottom, half height", "full-tb": "Top and bottom, full height",
         "anaglyph-dubois": "Red and cyan glasses", "anaglyph-colour": "Red and cyan, full colour",
         "anaglyph-half-colour": "Red and cyan, half colour", "anaglyph-grey": "Red and cyan, grey"}  # fmt: skip
Us = Annotated[int, Form(ge=0, le=MOST)]
Asked = Annotated[str, Query(max_length=1000)]


@router.get("/videos/{video_id}")
def show_video(
    request: Request,
    library: LibraryDep,
    video_id: Id,
    q: Asked = "",
    edit: Asked = "",
    clip: Asked = "",
    view: Asked = "",
) -> Response:
    """The page; `t`, `q` and `view` in its address say where to begin, what to mark, and which 3D version to play."""
    video = library.videos.get(video_id)
    deep = library.videos.films_3d(video)
    recipes = library.recipes()
    jobs = library.jobs.of_video(video, JOBS)
    missing = library.videos.missing_files(video)
    return render(
        request,
        "video.html",
        video=of_video(video),
        film=view_of(library, video, q),
        missing=[file_name(name) for name in missing],
        broken=[file_name(name) for name in missing if name.startswith("videos/proxy/")],
        q=q,
        edit=edit,
        clip=get_clip(library, clip) if clip else None,
        clips=[ClipShape.of(one) for one in library.clips.of_video(video.id)],
        jobs=jobs,
        deep=deep,
        previews=[(format, FILES + name) for format, name in library.videos.previews_3d(video)],
        shown=next((FILES + one.name for one in deep if one.format == view), ""),
        view=view,
        views=VIEWS,
        active=active_jobs(library.jobs.workers()),
        working=next((job for job in jobs if job.state not in FINAL), None),
        spoken=library.videos.spoken_languages(video),
        exports={kind: EXPORTS[kind] for kind in KINDS if kind in EXPORTS},
        recipes=list(recipes),
        usual=library.settings.recipe,
        stages=sorted({stage for names in recipes.values() for stage in names} - {"probe"}),
    )


@router.get("/videos/{video_id}/lanes")
def get_lanes(library: LibraryDep, video_id: Id, q: Asked = "") -> JSONResponse:
    """The timeline as scripts draw it, in microseconds."""
    video = library.videos.get(video_id)
    film = view_of(library, video, q)
    hits = sorted({(span.start_us, span.end_us) for hit in film.hits for span in hit.times})
    return JSONResponse({"shots": film.shots, "lanes": lanes(film), "hits": hits, "duration_us": video.duration_us})


@router.get("/videos/{video_id}/export/{kind}")
def download_export(
    library: LibraryDep, video_id: Id, kind: Annotated[str, Path(max_length=20)], language: Asked = ""
) -> Response:
    """A download; what cannot be made is said on a page, not saved as a file."""
    return export_video(library, video_id, kind, download=True, language=language)


@router.post("/videos/{video_id}/correct")
def correct_line(
    request: Request, library: LibraryDep, video_id: Id, start_us: Us, end_us: Us, text: Annotated[Text, Form()] = ""
) -> Response:
    """What is really said there; an empty text says that nothing is."""
    library.videos.correct(library.videos.get(video_id), start_us, end_us, " ".join(text.split()))
    return back(request, "Corrected. Search and subtitles are updated.", _place(video_id, start_us))


@router.post("/videos/{video_id}/undo")
def undo_correction(
    request: Request, library: LibraryDep, video_id: Id, correction: Annotated[Name, Form()]
) -> Response:
    """Take a correction back."""
    library.videos.undo_correction(correction)
    return back(request, "Correction undone.", f"/videos/{library.videos.get(video_id).id}")


@router.post("/videos/{video_id}/repair")
def repair_video(request: Request, library: LibraryDep, video_id: Id) -> Response:
    """Make missing or damaged files of it again."""
    files, jobs = library.videos.repair(library.videos.get(video_id))
    message = "Repaired." if files else "Nothing to repair: every file of this video is present and intact."
    if jobs:
        message = f"Repair started: {plural(jobs, 'job')} running again."
    return back(request, message, f"/videos/{video_id}")


@router.post("/videos/{video_id}/name")
def name_video(request: Request, library: LibraryDep, video_id: Id, name: Annotated[Name, Form()] = "") -> Response:
    """Give it a name for people; an empty one takes it back."""
    library.videos.rename(library.videos.get(video_id), name.strip())
    return back(request, "Renamed." if name.strip() else "Named after its file again.", f"/videos/{video_id}")


@router.post("/videos/{video_id}/delete")
def delete(request: Request, library: LibraryDep, video_id: Id, originals: Annotated[bool, Form()] = False) -> Response:
    """Delete it with all that was made of it; back to the library."""
    name = library.videos.get(video_id).name
    library.videos.remove(video_id, originals=originals)
    return back(request, f"{name} was deleted. {KEPT}", "/library")


@router.post("/videos/{video_id}/clip")
def cut_clip(
    request: Request,
    library: LibraryDep,
    video_id: Id,
    start: Annotated[str, Form(max_length=40)],
    end: Annotated[str, Form(max_length=40)],
    padding_ms: Annotated[int, Form(ge=0, le=60_000)] = 0,
    proxy: Annotated[bool, Form()] = False,
    subtitles: Annotated[Subtitles, Form()] = "",
) -> Response:
    """Ask for a clip; the page shows how far it is."""
    asked = ClipIn(
        video_id=video_id,
        t_start=parse_timecode(start.strip()) / 1e6,
        t_end=parse_timecode(end.strip()) / 1e6,
        padding_ms=padding_ms,
        proxy=proxy,
        subtitles=subtitles,
    )
    made = make_clip(request, library, asked)
    id = made.headers["location"].rpartition("/")[2]
    return back(request, to=with_query(f"/videos/{video_id}", {}, t=asked.t_start, clip=id))


@router.post("/videos/{video_id}/again")
def ask_again(
    request: Request,
    library: LibraryDep,
    video_id: Id,
    recipe: Annotated[Name, Form()] = "",
    stage: Annotated[Name, Form()] = "",
    redo: Annotated[bool, Form()] = False,
) -> Response:
    """Another recipe, one stage alone, or a new take of everything; else existing results are adopted."""
    video = library.videos.get(video_id)
    wanted = JobRequest(recipe=recipe, only=(stage,) if stage else (), again=len(video.jobs) if redo else 0)
    return back(request, _wished(library, video, wanted), f"/videos/{video.id}")


@router.post("/videos/{video_id}/3d")
def make_3d(
    request: Request, library: LibraryDep, video_id: Id, format: Annotated[Name, Form()] = "half-sbs"
) -> Response:
    """Ask for a film for both eyes."""
    video = library.videos.get(video_id)
    return back(request, _wished(library, video, StereoOptions(format).wanted()), f"/videos/{video.id}#in-3d")


def _wished(library: Library, video: Video, wanted: JobRequest) -> str:
    (added,) = library.add([library.videos.source(video)], wanted)
    if added.error:
        raise added.error
    return "Job started." if added.created else "This job already exists."


def file_name(published: str) -> str:
    """The last part of a published name."""
    return published.rpartition("/")[2]


def _place(video: str, us: int) -> str:
    return f"/videos/{video}?t={us / 1e6:.3f}#l{us}"


APART_US = 2_000_000  # the same thing seen again within that time is one stretch
MOST_LINES = 3000  # of a kind on one page: more than a day of speech in one film
MOST_HITS = 200
LANES = 4  # people and objects that have a lane of their own
Stretch = tuple[int, int, bool]  # from, to, and whether it is sure
SURE = 0.6


@dataclass(frozen=True, slots=True)
class Thing:
    """Something seen: what it is called, and every stretch of film time in which it is there."""

    label: str
    id: str  # of a person, else ""
    stretches: tuple[Stretch, ...]
    unnamed: bool = False

    @property
    def seen_us(self) -> int:
        """How long it is there."""
        return sum(end - start for start, end, _ in self.stretches)


@dataclass(frozen=True, slots=True)
class VideoView:
    """Everything on a video's page that grows while its job runs."""

    speech: tuple[Observation, ...]
    text: tuple[Observation, ...]
    people: list[Thing]
    objects: list[Thing]
    places: list[Thing]
    shots: list[tuple[int, int]]
    hits: tuple[Hit, ...]

    @property
    def found(self) -> dict[int, Hit]:
        """What is looked for in what is said, by the line it is in."""
        return {hit.line.start_us: hit for hit in self.hits if hit.kind == "speech"}


def view_of(library: Library, video: Video, query: str) -> VideoView:
    """What is known by now."""
    lines = {k: library.videos.lines(video.id, k) for k in ("speech", "text", "person", "object", "place")}
    hits = library.search(query, MOST_HITS, video=video.id, order="time").hits if query else ()
    return VideoView(
        speech=lines["speech"][:MOST_LINES],
        text=lines["text"][:MOST_LINES],
        people=_people(things(lines["person"])),
        objects=things(lines["object"]),
        places=[t for t in things(lines["place"]) if t.label != "unknown"],
        shots=_shots(library, video),
        hits=hits,
    )


def things(lines: Iterable[Observation]) -> list[Thing]:
    """What is seen, each with its stretches; what is there longest comes first."""
    seen = grouped(lines, lambda line: (line.text, str(line.extra.get("person", ""))))
    made = [Thing(label, id, _stretches(some)) for (label, id), some in seen.items()]
    return sorted(made, key=lambda t: (-t.seen_us, t.label))


def lanes(film: VideoView) -> list[dict[str, object]]:
    """The timeline: one lane per kind, and one for each of the people and objects that are there most."""
    rows: list[dict[str, object]] = []
    rows += _lane("Speech", "speech", [(o.span.start_us, o.span.end_us, o.confidence >= SURE, "") for o in film.speech])
    rows += _lane("Text on screen", "text", [(o.span.start_us, o.span.end_us, True, o.text) for o in film.text])
    for name, seen in (("person", film.people), ("object", film.objects), ("place", film.places)):
        for thing in seen[:LANES]:
            rows += _lane(thing.label, name, [(*stretch, "") for stretch in thing.stretches])
    return rows


def _lane(label: str, kind: str, spans: Sequence[tuple[int, int, bool, str]]) -> list[dict[str, object]]:
    return [{"label": label, "kind": kind, "spans": spans}] if spans else []


def _people(seen: list[Thing]) -> list[Thing]:
    """Who has a name comes first; who has none is called as on the page of people."""
    named = [t for t in seen if t.label != t.id]
    return named + [Thing(unnamed_person(t.id), t.id, t.stretches, unnamed=True) for t in seen if t.label == t.id]


def _stretches(lines: Sequence[Observation]) -> tuple[Stretch, ...]:
    made: list[Stretch] = []
    for line in sorted(lines, key=lambda o: o.span.start_us):
        start, end, sure = line.span.start_us, line.span.end_us, line.confidence >= SURE
        if made and start - made[-1][1] <= APART_US:
            made[-1] = (made[-1][0], max(made[-1][1], end), made[-1][2] or sure)
        else:
            made.append((start, end, sure))
    return tuple(made)


def _shots(library: Library, video: Video) -> list[tuple[int, int]]:
    with suppress(NotFound):  # not there yet, or not asked for
        return library.videos.shots(video)
    return []
