"""A library with two films in it, for looking at what the command line makes of it; no work, no media."""

from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from rushes.domain.errors import NotFound
from rushes.domain.job import Counts, Job, JobState
from rushes.domain.observation import Observation
from rushes.domain.span import Span
from rushes.index.port import Hit, SearchResult, Summary, Video
from rushes.jobs.progress import JobProgress, StageProgress, TimeLeft
from rushes.library import Library
from rushes.library.videos import Videos

MS = Fraction(1, 1000)


def video(name: str = "two_cities.mkv", **more: Any) -> Video:
    row: dict[str, Any] = {
        "owner": "me",
        "id": "vid_aaaabbbbccccdddd",
        "name": name,
        "path": name,
        "sha256": "0" * 64,
        "size": 1_300_000_000,
        "duration_us": 2_498_000_000,
        "width": 1920,
        "height": 1080,
        "rate": (25, 1),
        "audio": True,
        "container": "matroska,webm",
        "title": "",
        "shot_at": "",
        "added_at": "2026-01-01T00:00:00.000Z",
        "job": "job_aaaabbbbccccdddd",
        "recipe": "searchable",
        "state": "completed",
    }
    return Video(**row | more)


def hit(pieces: tuple[tuple[str, bool], ...], start: int = 761_000, end: int = 764_500, **more: Any) -> Hit:
    row: dict[str, Any] = {
        "video": "vid_aaaabbbbccccdddd",
        "name": "two_cities.mkv",
        "kind": "speech",
        "span": Span(start, end, MS),
        "line": Span(start - 1000, end + 1000, MS),
        "pieces": pieces,
        "score": 1.5,
        "language": "en",
        "confidence": 0.9,
    }
    return Hit(**row | more)


def line(text: str, start: int = 0) -> Observation:
    return Observation("speech", Span(start, start + 1000, MS), text, 0.9, "en")


def job(state: JobState = JobState.RUNNING, counts: Counts | None = None, **more: Any) -> Job:
    facts = (
        '{"video":"vid_aaaabbbbccccdddd","duration_us":2498000000,"width":1920,"height":1080,"rate":[25,1],"size":1000}'
    )
    row: dict[str, Any] = {
        "id": "job_aaaabbbbccccdddd",
        "owner": "me",
        "team": "",
        "request_id": "r",
        "name": "two_cities.mkv",
        "recipe": "searchable",
        "payload": '{"stages":["probe","playlist","shots","transcribe"]}',
        "facts": facts,
        "state": state,
        "paused": False,
        "priority": 0,
        "counts": counts or Counts(255, 219),
        "last_event": 7,
        "created_at": "2026-01-01T00:00:00.000Z",
    }
    return Job(**row | more)


def snapshot(*stages: StageProgress, state: JobState = JobState.RUNNING, **more: Any) -> JobProgress:
    left = TimeLeft((360.0, 540.0), {}, 450.0, 900.0)
    return JobProgress(job(state, **more), stages, elapsed=87.0, speed=1.9, left=left)


def stage(name: str, done: int, total: int, active: int = 1, running: float = 0.5) -> StageProgress:
    return StageProgress(name, done, total, running, active, 3.1, (300.0, 420.0))


@dataclass(frozen=True)
class Films(Videos):
    """Videos that are already there."""

    shelf: "Shelf"

    def page(self, cursor: str = "", limit: int = 100) -> tuple[tuple[Video, ...], str]:
        films = self.shelf.films
        return tuple(films[:limit]), "next" if len(films) > limit else ""

    def find(self, name: str) -> Video:
        for film in self.shelf.films:
            if film.id.startswith(name) or film.name == name:
                return film
        raise NotFound(f"no video {name!r}")

    def get(self, id: str) -> Video:
        return self.find(id)

    def lines(self, video: str, kind: str = "speech") -> tuple[Observation, ...]:
        return tuple(self.shelf.said) if kind == "speech" else ()

    def shots(self, video: Video) -> list[tuple[int, int]]:
        raise NotFound("no shots yet")


@dataclass
class Shelf(Library):
    """Films that are already there; every question about work goes to a real, empty home."""

    at: Path
    films: list[Video] = field(default_factory=lambda: [video()])
    said: list[Observation] = field(default_factory=list)
    found: SearchResult = field(default_factory=SearchResult)
    asked: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(self.at)
        self.videos = Films(self.home, self)

    def search(
        self, query: str, limit: int = 20, cursor: str = "", video: str = "", _order: str = "best"
    ) -> SearchResult:
        self.asked.append((query, limit, cursor, video))
        return self.found

    def summary(self) -> Summary:
        return Summary(len(self.films), 2_498_000_000, {"speech": 240}, {"en": 200, "de": 40})
