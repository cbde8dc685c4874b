"""A video's results in forms that other tools read."""

import json
from collections.abc import Callable
from fractions import Fraction

from rushes.domain.errors import NotFound, Refused
from rushes.domain.keys import task_id
from rushes.domain.span import Span
from rushes.domain.task import TaskState
from rushes.exports import chapters, subtitles, tables, timelines
from rushes.index.port import Video
from rushes.jobs.opening import read_manifest
from rushes.library.estimate import facts_of
from rushes.plan.planner import results_of
from rushes.wiring import House


def export(house: House, video: Video, kind: str) -> bytes:
    """The bytes of one export.

    Raises:
        Refused: there is no such kind.
        NotFound: what it is made of is not there (yet).
    """
    if kind not in KINDS:
        raise Refused(f"there is no export {kind!r}", f"Choose one of: {', '.join(KINDS)}")
    return KINDS[kind](house, video)


def shots_of(house: House, video: Video) -> list[Span]:
    """The shots of a video.

    Raises:
        NotFound: they are not there yet.
    """
    doc = json.loads(_artifact(house, video, "shots", "shots", "shots.json"))
    track = facts_of(house, house.ledger.job(video.job)).video
    base = track.base if track else Fraction(1, 1_000_000)
    return [Span(int(s["start"]), int(s["end"]), base) for s in doc]


def _artifact(house: House, video: Video, stage: str, output: str, name: str) -> bytes:
    """An artifact of the newest job that has it."""
    for job in video.jobs:
        tasks = house.ledger.tasks(ids=[task_id(job, stage, None)]).rows
        if tasks and tasks[0].state is TaskState.DONE:
            manifest = read_manifest(house.blobs, video.owner, results_of(tasks[0].spec)[output])
            with house.blobs.open(video.owner, manifest.artifact(name).sha256) as f:
                return f.read()
    raise NotFound(f"{video.name} has no {stage} yet", f"rushes run {video.path}")


def _lines(house: House, video: Video) -> list[object]:
    return list(house.index.lines(video.owner, video.id))


KINDS: dict[str, Callable[[House, Video], bytes]] = {}
