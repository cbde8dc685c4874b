"""Jobs and videos in a line: name, picture, counts; and their states, in colour and as `--state` understands them."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from rushes.domain.errors import NotFound
from rushes.domain.job import Job, JobState
from rushes.domain.keys import JSON
from rushes.domain.observation import Observation
from rushes.domain.worker import Worker
from rushes.library import Library
from rushes.library.videos import Page, Video
from rushes.surfaces.cli.screen import DONE, NOW, TROUBLE, Part, shorten
from rushes.surfaces.words import (
    JOB_WORDS,
    UNFINISHED,
    ActiveJobs,
    active_jobs,
    frame_rate,
    plural,
    timecode,
    video_word,
)


def facts_of(job: Job) -> Mapping[str, JSON]:
    """What probe found, as the job carries it; empty until then."""
    return json.loads(job.facts) if job.facts else {}


def recipe_of(job: Job) -> str:
    """The recipe and, if it was recomputed, which take it is."""
    take = json.loads(job.payload).get("take", 0) if job.payload else 0
    return f"{job.recipe}, take {take}" if take else job.recipe


def picture(width: int, height: int, rate: tuple[int, int] | list[int] | None) -> str:
    """1920x1080 25 fps."""
    if not width:
        return "audio only"
    return f"{width}x{height}{' ' + frame_rate(rate) if rate else ''}"


def header(job: Job, room: int = 0) -> str:
    """The name (cut to so many cells, 0 = all of it), length and picture of a job's video."""
    facts, name = facts_of(job), shorten(job.name, room)
    if not facts:
        return name
    shape = picture(facts["width"], facts["height"], facts["rate"])
    return f"{name}  {timecode(facts['duration_us'])}  {shape}"


def shape(video: Video) -> str:
    """The picture of a video."""
    return picture(video.width, video.height, video.rate)


@dataclass(frozen=True, slots=True)
class MadeCounts:
    """What is said, seen and cut in a video, and the path of its proxy ("" if there is none)."""

    video: str
    words: int
    lines: int
    shots: int
    proxy: str
    texts: int = 0  # lines of text in the picture
    objects: int = 0  # kinds of them
    places: int = 0

    @property
    def counts(self) -> str:
        """3912 words  240 lines  118 texts  21 objects  214 shots."""
        seen = ((self.texts, "text"), (self.objects, "object"), (self.places, "place"))
        counted = ((self.words, "word"), (self.lines, "line"), *seen, (self.shots, "shot"))
        return "  ".join(plural(n, word) for n, word in counted if n)


def count_made(library: Library, video: Video, lines: Sequence[Observation]) -> MadeCounts:
    """Count what is known of a video so far."""
    words = sum(len(line.words) or len(line.text.split()) for line in lines)
    proxy = library.videos.address(video.proxy) if video.proxy else ""
    texts = len(library.videos.lines(video.id, "text"))
    objects, places = ({seen.text for seen in library.videos.lines(video.id, kind)} for kind in ("object", "place"))
    shots = len(shots_of(library, video))
    return MadeCounts(video.id, words, len(lines), shots, proxy, texts, len(objects), len(places - {"unknown"}))


def shots_of(library: Library, video: Video) -> list[tuple[int, int]]:
    """Its shots; none if the recipe makes none, or not yet."""
    try:
        return library.videos.shots(video)
    except NotFound:
        return []


STYLES = {"running": NOW, "paused": NOW, "failed": TROUBLE, "done": DONE, "cancelled": DONE}

# docs/states.md maps the words of other designs; whoever comes from there may use them.
ALIASES = {
    "queued": "waiting",
    "pending": "waiting",
    "processing": "running",
    "canceled": "cancelled",
    "dead": "failed",
    "probing": JobState.CHUNKING,
    "open": JobState.RUNNING,
    JobState.COMPLETED: "done",
}
STATES: Mapping[str, tuple[JobState, ...]] = {
    "waiting": UNFINISHED,
    "running": (),  # known by who works, not by a state
    "paused": UNFINISHED,
    "done": (JobState.COMPLETED,),
    "failed": (JobState.FAILED,),
    "cancelled": (JobState.CANCELLED,),
    **{state: (state,) for state in UNFINISHED},
}


def next_step(workers: Iterable[Worker]) -> str:
    """What becomes of work that was just made ready."""
    alive = active_jobs(workers).workers
    if not alive:
        return "next: rushes worker --until-idle"
    return f"{plural(alive, 'worker is', 'workers are')} running; follow with: rushes jobs ls"


def state_part(word: str) -> Part:
    """A state's word with its style."""
    return word, STYLES.get(word, "")


def video_parts(words: Iterable[str]) -> list[Part]:
    """The states of several jobs of one video: the most telling one, and how many failed besides."""
    first, failed = video_word(words)
    return [state_part(first), *([(f", {failed} failed", TROUBLE)] if failed else [])]


class StateWord(click.ParamType[str]):
    """A state, in people's words, the ledger's or another design's."""

    name = "state"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """One of the keys of STATES."""
        word = str(value).lower()
        word = ALIASES.get(word, word)
        if word not in STATES:
            self.fail(f"unknown state {value!r}. Choose from: {', '.join(JOB_WORDS)}.", param, ctx)
        return word


def page_of(fetch: Callable[[JobState, str], Page[Job]], word: str, active: ActiveJobs, cursor: str) -> Page[Job]:
    """Jobs in one state as people see it, one ledger state after the other; goes on until a row is found."""
    states = STATES[word]
    name, _, inner = cursor.partition(":")
    at = states.index(JobState(name)) if name in states else 0
    while at < len(states):
        page = fetch(states[at], inner)
        rows = tuple(j for j in page.rows if word not in JOB_WORDS or active.word(j) == word)
        at, inner = (at, page.cursor) if page.cursor else (at + 1, "")
        if rows:
            return Page(rows, f"{states[at]}:{inner}" if at < len(states) else "")
    return Page(())
