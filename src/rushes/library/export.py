"""A video's results in forms that other tools read."""

import json
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import groupby
from pathlib import Path

from rushes.blobs.manifests import read_manifest
from rushes.domain.errors import NotFound, Refused
from rushes.domain.keys import task_id
from rushes.domain.observation import Observation
from rushes.domain.span import Span
from rushes.domain.task import TaskState
from rushes.exports import chapters, tables, timelines
from rushes.exports.target import check_target
from rushes.index.follower import SELECTION
from rushes.index.moments import SEEN, ranges
from rushes.index.port import Video
from rushes.library.footage import at_home, probed
from rushes.media import subtitles
from rushes.plan.planner import results_of
from rushes.wiring import House


def export(house: House, video: Video, kind: str, out: Path | None = None) -> bytes:
    """The bytes of one export, written to a file as well if one is named.

    Raises:
        Refused: there is no such kind, or the file cannot be written.
        NotFound: what it is made of is not there (yet).
    """
    if kind not in KINDS:
        raise Refused(f"there is no export {kind!r}", f"Choose one of: {', '.join(KINDS)}")
    if out:
        check_target(out, ENDINGS.get(kind, (f".{kind}",)))
    data = KINDS[kind](house, video)
    if out:
        out.write_bytes(data)
    return data


def shots_of(house: House, video: Video) -> list[Span]:
    """The shots of a video, in film time.

    Raises:
        NotFound: they are not there yet.
    """
    doc = json.loads(_artifact(house, video, "shots", "shots", "shots.json"))
    facts = probed(house, house.ledger.job(video.job))
    base = facts.video.base if facts.video else Fraction(1, 1_000_000)
    return [Span(int(s["start"]), int(s["end"]), base).moved(-facts.start) for s in doc]


def _artifact(house: House, video: Video, stage: str, output: str, name: str) -> bytes:
    """An artifact of the newest job that has it."""
    for job in video.jobs:
        tasks = house.ledger.tasks(ids=[task_id(job, stage, None)]).rows
        if tasks and tasks[0].state is TaskState.DONE:
            manifest = read_manifest(house.blobs, video.owner, results_of(tasks[0].spec)[output])
            with house.blobs.open(video.owner, manifest.artifact(name).sha256) as f:
                return f.read()
    raise NotFound(f"{video.name} has no {stage} yet", f"rushes run {video.path}")


def _text(name: str, again: Callable[[Sequence[Observation]], str]) -> Callable[[House, Video], bytes]:
    """As the transcript was made; made again of what is shown now where somebody corrected it or chose another run."""

    def made(house: House, video: Video) -> bytes:
        lines = _lines(house, video)
        if any(line.extra.get("corrected") for line in lines) or is_chosen(house, video):
            return again(lines).encode()
        return _artifact(house, video, "transcript", "transcript", name)

    return made


def is_chosen(house: House, video: Video) -> bool:
    """Whether somebody said which run of its speech counts."""
    return any(house.records.get(SELECTION, video.owner, f"{of}.speech") for of in (video.id, "*"))


def _lines(house: House, video: Video) -> tuple[Observation, ...]:
    return house.index.lines(video.owner, video.id)


def everything(house: House, video: Video) -> list[Observation]:
    """All that is known of a video, kind by kind, each in order of time."""
    kinds = sorted({kind for kind, _, _ in house.index.shown(video.owner, video.id)})
    return [line for kind in kinds for line in house.index.lines(video.owner, video.id, kind)]


def _ranges(house: House, video: Video) -> list[Observation]:
    """The same for people: a thing that is seen in look after look is one row."""
    found = {kind: list(some) for kind, some in groupby(everything(house, video), key=lambda line: line.kind)}
    return [line for kind, some in found.items() for line in (ranges(some) if kind in SEEN else some)]


def footage_of(house: House, video: Video) -> timelines.Footage:
    """The film of a video as timelines cut it.

    Raises:
        NotFound: it has no picture, or was not probed here.
    """
    facts = probed(house, house.ledger.job(video.job))
    if facts.video is None:
        raise NotFound(f"{video.name} has no picture")
    path = house.originals / at_home(house, video).path
    return timelines.Footage(video.name, str(path), facts.video.span.moved(-facts.start), facts.video.rate)


def _chapters(house: House, video: Video) -> list[chapters.Chapter]:
    return chapters.from_shots(shots_of(house, video))


SPOKEN = frozenset({"srt", "vtt", "txt", "json", "words"})  # nothing in them where nothing is said
ENDINGS = {
    "words": (".json",),
    "chapters": (".txt", ".ffmetadata"),
    "chapters.vtt": (".vtt",),
    "jsonl": (".jsonl", ".ndjson"),
}
KINDS: dict[str, Callable[[House, Video], bytes]] = {
    "srt": _text("subtitles.srt", lambda lines: subtitles.srt(subtitles.cues(lines))),
    "vtt": _text("subtitles.vtt", lambda lines: subtitles.vtt(subtitles.cues(lines))),
    "txt": _text("transcript.txt", subtitles.text),
    "json": lambda house, video: _artifact(house, video, "transcript", "transcript", "transcript.json"),
    "words": lambda house, video: tables.as_words(_lines(house, video), video.name),
    "csv": lambda house, video: tables.as_csv(_ranges(house, video), video.name),
    "jsonl": lambda house, video: tables.as_json_lines(everything(house, video), video.name),
    "chapters": lambda house, video: chapters.ffmetadata(_chapters(house, video)),
    "chapters.vtt": lambda house, video: chapters.webvtt(_chapters(house, video)),
    "edl": lambda house, video: timelines.edl(footage_of(house, video), shots_of(house, video)),
    "otio": lambda house, video: timelines.otio(footage_of(house, video), shots_of(house, video)),
}
