"""Videos as tiles show them: seven stage marks in fixed order with words, found by one question for a whole page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rushes.domain.job import Job, JobState
from rushes.domain.keys import task_id
from rushes.domain.task import Task, TaskState
from rushes.library import Library
from rushes.library.videos import Video
from rushes.surfaces.http.schemas import FILES
from rushes.surfaces.words import ActiveJobs, active_jobs, video_word

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
