"""Exports of a video for other tools."""

import json
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import groupby
from pathlib import Path

from rushes.domain.errors import NotFound, Refused
from rushes.domain.observation import Observation
from rushes.domain.span import Span
from rushes.exports import chapters, tables, timelines
from rushes.exports.files_beside import check_output_path
from rushes.home import Home
from rushes.index.passages import VISUAL_KINDS, ranges
from rushes.index.port import Video
from rushes.jobs.originals import current_address, manifest_of, read_artifact, read_probe
from rushes.library.transcript import FILES, export_transcript
from rushes.wiring.setup import needed


def export(home: Home, video: Video, kind: str, out: Path | None = None, language: str = "") -> bytes:
    """The bytes of one export, written to a file as well if one is named; a transcript also in one language alone.

    Raises:
        Refused: there is no such kind, or the file cannot be written.
        NotFound: what it is made of is not there (yet).
    """
    if kind not in KINDS:
        raise Refused(f"unknown export {kind!r}", f"Choose from: {', '.join(KINDS)}")
    if out:
        check_output_path(out, ENDINGS.get(kind, (f".{kind}",)))
    data = export_transcript(home, video, kind, language) if language and kind in FILES else KINDS[kind](home, video)
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
    span, rate = facts.video.span.moved(-facts.start), facts.video.rate
    return timelines.TimelineMedia(video.name, current_address(home, video), span, rate, bool(facts.audio))


def _markers(home: Home, video: Video) -> list[timelines.Marker]:
    """What is said, written and who is seen, for the timelines of editors; a person is marked once in a while."""
    lines = [line for kind in ("speech", "text") for line in home.index.lines(video.owner, video.id, kind)]
    lines += ranges(list(home.index.lines(video.owner, video.id, "person")))
    return [timelines.Marker(line.text, line.span, line.kind) for line in lines if line.text]


def _parquet(home: Home, video: Video) -> bytes:
    with needed("parquet"):
        return tables.as_parquet(everything(home, video), video.name)


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
    **{kind: partial(export_transcript, kind=kind) for kind in FILES},
    "words": lambda home, video: tables.as_words(_lines(home, video), video.name),
    "csv": lambda home, video: tables.as_csv(_ranges(home, video), video.name),
    "jsonl": lambda home, video: tables.as_json_lines(everything(home, video), video.name),
    "chapters": lambda home, video: chapters.ffmetadata(_chapters(home, video)),
    "chapters.vtt": lambda home, video: chapters.webvtt(_chapters(home, video)),
    "parquet": _parquet,
    "edl": lambda home, video: timelines.edl(footage_of(home, video), shots_of(home, video), _markers(home, video)),
    "otio": lambda home, video: timelines.otio(footage_of(home, video), shots_of(home, video), _markers(home, video)),
}
