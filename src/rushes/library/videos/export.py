"""A video's results in forms that other tools read."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from pathlib import Path

from rushes.domain.errors import NotFound, Refused
from rushes.domain.observation import Observation
from rushes.domain.span import Span
from rushes.exports import chapters, tables, timelines
from rushes.exports.adjacent_files import check_output_path
from rushes.home import Home
from rushes.index.follower import SELECTION
from rushes.index.passages import VISUAL_KINDS, ranges
from rushes.index.port import Video
from rushes.jobs.originals import current_path, manifest_of, read_artifact, read_probe
from rushes.media import subtitles


def export(home: Home, video: Video, kind: str, out: Path | None = None) -> bytes:
    """The bytes of one export, written to a file as well if one is named.

    Raises:
        Refused: there is no such kind, or the file cannot be written.
        NotFound: what it is made of is not there (yet).
    """
    if kind not in KINDS:
        raise Refused(f"unknown export {kind!r}", f"Choose from: {', '.join(KINDS)}")
    if out:
        check_output_path(out, ENDINGS.get(kind, (f".{kind}",)))
    data = KINDS[kind](home, video)
    if out:
        out.write_bytes(data)
    return data


def shots_of(home: Home, video: Video) -> list[Span]:
    """The shots of a video, in film time.

    Raises:
        NotFound: they are not there yet.
    """
    doc = json.loads(_artifact(home, video, "shots", "shots", "shots.json"))
    facts = read_probe(home, home.ledger.job(video.job))
    base = facts.video.base if facts.video else Fraction(1, 1_000_000)
    return [Span(int(s["start"]), int(s["end"]), base).moved(-facts.start) for s in doc]


def _artifact(home: Home, video: Video, stage: str, output: str, name: str) -> bytes:
    """An artifact of the newest job that has it."""
    for job in video.jobs:
        if manifest := manifest_of(home, job, stage, output):
            return read_artifact(home, manifest, name)
    raise NotFound(f"{video.name} has no {stage} yet", f"Run: rushes run {video.path}")


def _text(name: str, again: Callable[[Sequence[Observation]], str]) -> Callable[[Home, Video], bytes]:
    """As the transcript was made; made again of what is shown now where somebody corrected it or chose another run."""

    def made(home: Home, video: Video) -> bytes:
        lines = _lines(home, video)
        if any(line.extra.get("corrected") for line in lines) or has_selected_run(home, video):
            return again(lines).encode()
        return _artifact(home, video, "transcript", "transcript", name)

    return made


def has_selected_run(home: Home, video: Video) -> bool:
    """Whether somebody said which run of its speech counts."""
    return any(home.records.get(SELECTION, video.owner, f"{of}.speech") for of in (video.id, "*"))


def _lines(home: Home, video: Video) -> tuple[Observation, ...]:
    return home.index.lines(video.owner, video.id)


def everything(home: Home, video: Video) -> list[Observation]:
    """All that is known of a video, kind by kind, each in order of time."""
    kinds = sorted({kind for kind, _, _ in home.index.state(video.owner, video.id).shown})
    return [line for kind in kinds for line in home.index.lines(video.owner, video.id, kind)]


def _ranges(home: Home, video: Video) -> list[Observation]:
    """The same for people: a thing that is seen in look after look is one row."""
    found = {kind: list(some) for kind, some in groupby(everything(home, video), key=lambda line: line.kind)}
    return [line for kind, some in found.items() for line in (ranges(some) if kind in VISUAL_KINDS else some)]


def footage_of(home: Home, video: Video) -> timelines.TimelineMedia:
    """The film of a video as timelines cut it.

    Raises:
        NotFound: it has no picture, or was not probed here.
    """
    facts = read_probe(home, home.ledger.job(video.job))
    if facts.video is None:
        raise NotFound(f"{video.name} has no picture")
    path = current_path(home, video)
    return timelines.TimelineMedia(video.name, str(path), facts.video.span.moved(-facts.start), facts.video.rate)


def _chapters(home: Home, video: Video) -> list[chapters.Chapter]:
    return chapters.from_shots(shots_of(home, video))


SPOKEN = frozenset({"srt", "vtt", "txt", "json", "words"})  # nothing in them where nothing is said
ENDINGS = {
    "words": (".json",),
    "chapters": (".txt", ".ffmetadata"),
    "chapters.vtt": (".vtt",),
    "jsonl": (".jsonl", ".ndjson"),
}
KINDS: dict[str, Callable[[Home, Video], bytes]] = {
    "srt": _text("subtitles.srt", lambda lines: subtitles.srt(subtitles.cues(lines))),
    "vtt": _text("subtitles.vtt", lambda lines: subtitles.vtt(subtitles.cues(lines))),
    "txt": _text("transcript.txt", subtitles.text),
    "json": lambda home, video: _artifact(home, video, "transcript", "transcript", "transcript.json"),
    "words": lambda home, video: tables.as_words(_lines(home, video), video.name),
    "csv": lambda home, video: tables.as_csv(_ranges(home, video), video.name),
    "jsonl": lambda home, video: tables.as_json_lines(everything(home, video), video.name),
    "chapters": lambda home, video: chapters.ffmetadata(_chapters(home, video)),
    "chapters.vtt": lambda home, video: chapters.webvtt(_chapters(home, video)),
    "edl": lambda home, video: timelines.edl(footage_of(home, video), shots_of(home, video)),
    "otio": lambda home, video: timelines.otio(footage_of(home, video), shots_of(home, video)),
}


@dataclass(frozen=True, slots=True)
class PublishedFilm:
    """A 3D version of a video of the library."""

    format: str
    name: str  # as it is published
    size: int
    file: str  # what a copy is called, as players read it
