"""A video in one line, for lists, headers and summaries."""

import json
from collections.abc import Mapping
from fractions import Fraction

from rushes.domain.job import Job
from rushes.domain.keys import JSON
from rushes.library.videos import Video
from rushes.surfaces.cli.text import shorten
from rushes.surfaces.words import timecode


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
    fps = f" {float(Fraction(*rate)):.3f}".rstrip("0").rstrip(".") + " fps" if rate else ""
    return f"{width}x{height}{fps}"


def header(job: Job, room: int = 0) -> str:
    """The name (cut to so many cells, 0 = all of it), length and picture of a job's video."""
    facts, name = facts_of(job), shorten(job.name, room)
    if not facts:
        return name
    shape = picture(facts["width"], facts["height"], facts["rate"])
    return f"{name}  {timecode(facts['duration_us'])}  {shape}"


def container(video: Video) -> str:
    """The container; if it has many names, the one of the file's suffix."""
    names, suffix = video.container.split(","), video.path.rpartition(".")[2].lower()
    return suffix if suffix in names else names[0]


def shape(video: Video) -> str:
    """The picture of a video."""
    return picture(video.width, video.height, video.rate)
