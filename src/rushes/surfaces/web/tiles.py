"""Videos as tiles show them: seven stage marks in fixed order with words, found by one question for a whole page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rushes.domain.job import Job, JobState
from rushes.domain.keys import task_id
from rushes.domain.task import Task, TaskState
from rushes.home import Home
from rushes.index.port import Video
from rushes.surfaces.http.schemas import FILES
from rushes.surfaces.web.wording import state

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
LIVE = 100  # running jobs whose counters are read with a page
ID_LIMIT = 500  # ids that the ledger answers for at once: 45 videos


@dataclass(frozen=True, slots=True)
class Tile:
    """A video in a grid or a list."""

    video: Video
    poster: str
    marks: tuple[tuple[str, str], ...]
    words: str
    alarm: bool


def tiles(home: Home, videos: Sequence[Video]) -> list[Tile]:
    """The videos with their marks: two questions to the ledger, however many there are."""
    ids = [id for v in videos for id in _ids(v.job)]
    tasks = {t.id: t for t in home.ledger.tasks(ids=ids[:ID_LIMIT], limit=ID_LIMIT).rows} if ids else {}
    running = {j.id: j for j in home.ledger.jobs(home.settings.owner, JobState.RUNNING, limit=LIVE).rows}
    return [_tile(v, tasks, running.get(v.job)) for v in videos]


def _tile(video: Video, tasks: Mapping[str, Task], running: Job | None) -> Tile:
    marks = tuple((name, _mark(video, tasks, *stages)) for name, stages in MARKS.items())
    poster = FILES + video.poster if video.poster else ""
    return Tile(video, poster, marks, _words(video, running), video.state == JobState.FAILED)


def _words(video: Video, running: Job | None) -> str:
    if running and running.paused:
        return "paused"
    if running and running.counts.total:
        return f"running, {100 * running.counts.done // running.counts.total} %"
    return state(video.state)


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
