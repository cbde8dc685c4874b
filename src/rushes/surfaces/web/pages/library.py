"""The library: videos as tiles with their stages, totals, facets and bulk actions; filters are in the URL."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import Response

from rushes.domain.job import Job, JobState
from rushes.domain.keys import task_id
from rushes.domain.task import Task, TaskState
from rushes.library import JobRequest, Library
from rushes.library.search import Summary, words
from rushes.library.spelling import Vocabulary
from rushes.library.videos import Video
from rushes.surfaces.http.audit import note_target
from rushes.surfaces.http.deps import LibraryDep, library_of
from rushes.surfaces.http.schemas import FILES, Cursor, seal, unseal
from rushes.surfaces.web.pages.video import KEPT
from rushes.surfaces.web.view import back, render
from rushes.surfaces.words import UNFINISHED, ActiveJobs, active_jobs, language_name, plural, video_word

router = APIRouter(include_in_schema=False)
PAGE = 20
LOOKED_AT = 200  # videos that one page of a filtered list looks at; the next page goes on from there
STATES = {"unfinished": UNFINISHED, "done": (JobState.COMPLETED,), "failed": (JobState.FAILED,)}
LABELS = {"object": "Object", "person": "Person", "place": "Place"}
Asked = Annotated[str, Query(max_length=200)]
Ids = Annotated[list[str], Form(max_length=100)]


@router.get("/library")
def show_library(
    request: Request,
    library: LibraryDep,
    name: Asked = "",
    state: Asked = "",
    lang: Asked = "",
    has: Asked = "",
    view: Asked = "",
    cursor: Cursor = "",
) -> Response:
    """Posters, newest first."""
    summary, keep, at = index_counts(request), _filter(name, state, lang), unseal(request, cursor, _of(has))
    found, more = _having(library, has, keep, at) if has else _page(library, keep, at)
    return render(
        request,
        "library.html",
        tiles=tiles(library, found),
        cursor=seal(request, more, _of(has)),
        summary=summary,
        facets=_facets(summary),
        filtered=bool(name or state or lang or has),
        view="list" if view == "list" else "grid",
        recipes=list(library.recipes()),
    )


@router.post("/library/process")
def process(request: Request, library: LibraryDep, video: Ids, recipe: Annotated[str, Form()]) -> Response:
    """Put chosen videos through a recipe; what is there already is adopted."""
    places = [library.videos.source(library.videos.get(id)) for id in video]
    jobs = [a.job for a in library.add(places, JobRequest(recipe=recipe)) if a.job]
    return back(request, f"{plural(len(jobs), 'job')} started with the recipe {recipe}.")


@router.post("/library/delete")
def delete(request: Request, library: LibraryDep, video: Ids, originals: Annotated[bool, Form()] = False) -> Response:
    """Delete chosen videos with all that was made of them."""
    note_target(request, " ".join(video))
    for id in video:
        library.videos.remove(id, originals=originals)
    return back(request, f"{plural(len(video), 'video')} deleted. {KEPT}")


def _filter(name: str, state: str, lang: str) -> Callable[[Video], bool]:
    states, asked = STATES.get(state, ()), words(name)

    def keeps(video: Video) -> bool:
        called = " ".join(words(f"{video.name} {video.path}"))
        spoken = not lang or lang in video.languages or (lang == "none" and not video.languages)
        return (not states or video.state in states) and spoken and all(word in called for word in asked)

    return keeps


def _of(has: str) -> str:
    """The list that a cursor belongs to."""
    return f"having {has}" if has else "videos"


def _page(library: Library, keep: Callable[[Video], bool], at: str) -> tuple[list[Video], str]:
    """What a filter keeps; something rare may need several pages, so that none reads the whole library."""
    found: list[Video] = []
    for _ in range(LOOKED_AT // PAGE):
        some, at = library.videos.page(at, PAGE)
        found += filter(keep, some)
        if not at or len(found) >= PAGE:
            break
    return found, at


def _having(library: Library, has: str, keep: Callable[[Video], bool], cursor: str) -> tuple[list[Video], str]:
    """Videos in which something is seen, most of it first."""
    kind, _, label = has.partition(":")
    shown = library.search(f'{kind}:"{label}"' if kind in LABELS else "", 1).facets.get("video", {})
    at = int(cursor or 0)
    ids = list(shown)[at : at + PAGE]
    found = library.videos.get_many(ids)
    more = str(at + PAGE) if len(shown) > at + PAGE else ""
    return [found[id] for id in ids if id in found and keep(found[id])], more


def _facets(known: Summary) -> list[tuple[str, str, list[tuple[str, str, Any]]]]:
    spoken = [(code, language_name(code), None) for code in list(known.languages)[:8] if code]
    rows: list[tuple[str, str, list[tuple[str, str, Any]]]] = [
        ("State", "state", [(s, s, None) for s in STATES]),
        ("Language", "lang", [*spoken, ("none", "no speech", None)] if spoken else []),
    ]
    for kind, title in LABELS.items():
        labels = [(f"{kind}:{text}", text, None) for text in known.labels.get(kind, {}) if _has_a_name(text)][:8]
        rows.append((title, "has", labels))
    return rows


def _has_a_name(label: str) -> bool:
    return label != "unknown" and not label.startswith("per_")


# A mark's first and last stage; the last is None where chunks alone make it.
MARKS: Mapping[str, tuple[str, str | None]] = {
    "proxy": ("develop", "playlist"),
    "speech": ("transcribe", "transcript"),
    "text": ("read_text", "segments"),
    "objects": ("objects", None),
    "faces": ("faces", None),
    "places": ("places", None),
    "3D": ("stereo", "join"),
}
ID_LIMIT = 500  # ids that the ledger answers for at once: 45 videos


@dataclass(frozen=True, slots=True)
class Tile:
    """A video in a grid or a list."""

    video: Video
    poster: str
    marks: tuple[tuple[str, str], ...]
    words: str
    alarm: bool


def tiles(library: Library, videos: Sequence[Video]) -> list[Tile]:
    """The videos with their marks: three questions to the ledger, however many there are."""
    ids = [id for v in videos for id in _ids(v.job)]
    tasks = library.jobs.get_tasks(ids[:ID_LIMIT])
    jobs = library.jobs.get_many([id for v in videos for id in v.jobs][:ID_LIMIT])
    active = active_jobs(library.jobs.workers())
    return [_tile(v, tasks, [jobs[id] for id in v.jobs if id in jobs], active) for v in videos]


def _tile(video: Video, tasks: Mapping[str, Task], jobs: Sequence[Job], active: ActiveJobs) -> Tile:
    marks = tuple((name, _mark(video, tasks, *stages)) for name, stages in MARKS.items())
    poster = FILES + video.poster if video.poster else ""
    word, failed = video_word([active.word(j) for j in jobs] or [active.word_of(video.job, video.state)])
    return Tile(video, poster, marks, _words(word, failed, jobs, active), word == "failed" or bool(failed))


def _words(word: str, failed: int, jobs: Sequence[Job], active: ActiveJobs) -> str:
    """running, 45 %; done, 1 failed."""
    counts = next((j.counts for j in jobs if word == "running" and active.word(j) == word and j.counts.total), None)
    percent = f", {100 * counts.done // counts.total} %" if counts else ""
    return f"{word}{percent}{f', {failed} failed' if failed else ''}"


def _ids(job: str) -> list[str]:
    first = [task_id(job, stage, 0) for stage, _ in MARKS.values()]
    return first + [task_id(job, last, None) for _, last in MARKS.values() if last]


def _mark(video: Video, tasks: Mapping[str, Task], first: str, last: str | None) -> str:
    begun = tasks.get(task_id(video.job, first, 0))
    over = tasks.get(task_id(video.job, last, None)) if last else None
    if begun is None and over is None:
        return "none"
    states = {t.state for t in (begun, over) if t}
    if TaskState.DEAD in states:
        return "dead"
    if video.state == JobState.COMPLETED or (over and over.state is TaskState.DONE):
        return "done"
    if video.state in (JobState.FAILED, JobState.CANCELLED):
        return "done" if states == {TaskState.DONE} else "wait"
    return "now" if states & {TaskState.DONE, TaskState.LEASED} else "wait"


KEPT_SECONDS = 30.0
NEWEST = 6  # videos that are looked at: when they change, sums are counted again


class IndexCounts:
    """The sums of one process's library, kept until they are old or a newer video is there."""

    def __init__(self) -> None:
        self._kept: tuple[float, object, Summary, Vocabulary] | None = None
        self._guard = threading.Lock()

    def of(self, library: Library) -> tuple[Summary, Vocabulary]:
        """The sums, and the words of the newest videos."""
        seen = [(v.id, v.state) for v in library.videos.page("", NEWEST)[0]]
        with self._guard:
            if self._kept is None or self._kept[1] != seen or time.monotonic() > self._kept[0] + KEPT_SECONDS:
                self._kept = (time.monotonic(), seen, library.summary(), library.vocabulary())
            return self._kept[2:]


def index_counts(request: Request) -> Summary:
    """The sums for a page."""
    kept: IndexCounts = request.app.state.index_counts
    return kept.of(library_of(request))[0]


def known_words(request: Request) -> Vocabulary:
    """The words that can be completed."""
    kept: IndexCounts = request.app.state.index_counts
    return kept.of(library_of(request))[1]
