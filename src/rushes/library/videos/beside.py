"""What a run leaves beside the film: subtitles as players name them, a sidecar, and never over a file of others."""

import contextlib
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from rushes.annotations.sidecars import faces_document
from rushes.blobs.documents import read_document
from rushes.domain.errors import NotFound, Refused, RushesError
from rushes.domain.job import Job, JobState
from rushes.domain.keys import JSON, short
from rushes.domain.text import clean_text
from rushes.exports import sidecar
from rushes.exports.adjacent_files import adjacent_path, write_adjacent
from rushes.home import Home
from rushes.index.people import KIND as PERSON
from rushes.index.port import Video, find_video
from rushes.index.query import SHOT
from rushes.jobs.originals import current_path, manifest_of, read_artifact
from rushes.library.videos.export import everything, export
from rushes.plan.planner import JobSpec
from rushes.records.port import Conflict
from rushes.telemetry import log

WRITTEN = "beside"  # the kind of record that remembers what we wrote where
KINDS = {"srt": "subtitles.srt", "vtt": "subtitles.vtt"}
NAMES = {
    "srt": "srt",
    "vtt": "vtt",
    "txt": "txt",
    "words.json": "words",
    "chapters.txt": "chapters",
    "chapters.vtt": "chapters.vtt",
    "cuts.edl": "edl",  # not <film>.edl: Kodi would take that for parts to skip
    "otio": "otio",
    "csv": "csv",
}


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file that belongs beside a film, and why it was not written ("" if it is there)."""

    path: Path
    kept: str = ""


def write_subtitles(home: Home, job: Job) -> list[WrittenFile]:
    """Write the finished transcript's subtitles beside its film, unless that lies in a bucket."""
    manifest, source = manifest_of(home, job.id, "transcript", "transcript"), JobSpec.from_text(job.payload).source
    language = str(manifest.facts.get("language", "")) if manifest else ""
    if not manifest or not manifest.count or not language or source.far:
        return []
    film = home.originals / source.path
    texts = {kind: read_artifact(home, manifest, artifact) for kind, artifact in KINDS.items()}
    return [_write(home, job.owner, film, adjacent_path(film, language, kind), text) for kind, text in texts.items()]


def write_sidecar(home: Home, job: Job) -> list[WrittenFile]:
    """Write what a finished job found beside its film, so that it stays searchable though its home is lost."""
    source = JobSpec.from_text(job.payload).source
    if job.state is not JobState.COMPLETED or source.far or not job.facts:  # a clip has no facts of its own
        return []
    home.follower.catch_up()
    video = find_video(home.index, job.owner, json.loads(job.facts)["video"])
    return _sidecar(home, video, home.originals / source.path) if video else []


def write_all(home: Home, video: Video) -> list[WrittenFile]:
    """Write everything known of a video beside its film: for players, for editors, and for a home that is lost."""
    film = current_path(home, video)
    files: list[WrittenFile] = []
    for ending, kind in NAMES.items():
        try:
            files.append(_write(home, video.owner, film, _named(film, video, ending), export(home, video, kind)))
        except RushesError as e:  # nothing was said, no shots, no constant rate: there is nothing to write
            log.info("%s has no %s: %s", video.name, kind, e)
    files += _sidecar(home, video, film)
    if video.poster and (data := read_document(home.blobs, video.poster)):
        files.append(_write(home, video.owner, film, film.with_name(f"{film.stem}-poster.jpg"), data))
    return files


def _sidecar(home: Home, video: Video, film: Path) -> list[WrittenFile]:
    lines = [line for line in everything(home, video) if line.kind != PERSON]
    if all(line.kind == SHOT for line in lines):  # nothing that one would search for
        return []
    data = sidecar.write(_facts(home, video), lines, faces_document(home, video.id))
    return [_write(home, video.owner, film, adjacent_path(film, "", sidecar.ENDING), data)]


def _named(film: Path, video: Video, ending: str) -> Path:
    """Subtitles carry their language; all else does not."""
    language = next(iter(video.languages), "") if ending in KINDS else ""
    return adjacent_path(film, language, ending)


def _facts(home: Home, video: Video) -> dict[str, JSON]:
    """What the newest run that is known here found; what was read from a sidecar tells it itself."""
    for id in video.jobs:
        with contextlib.suppress(NotFound):
            job = home.ledger.job(id)
            return {**json.loads(job.facts), "name": Path(video.path).name}
    raise Refused(f"{video.name} was read from a sidecar, so it is already there")


def _write(home: Home, owner: str, film: Path, path: Path, data: bytes) -> WrittenFile:
    """Remember first, then write: killed between, the next run knows the file for ours."""
    name = short(str(path))
    record = home.records.get(WRITTEN, owner, name)
    if record and _is_of_another(film, str(record.doc.get("film") or "")):
        full = path.with_name(film.name + path.name.removeprefix(film.stem))
        log.warning("%s already belongs to %s: writing %s instead", path.name, record.doc["film"], full.name)
        return (
            _write(home, owner, film, full, data) if full != path else WrittenFile(path, "it belongs to another film")
        )
    ours = {*(record.doc["sha256"] if record else ()), hashlib.sha256(data).hexdigest()}
    doc = {"path": clean_text(str(path)), "film": clean_text(film.name), "sha256": sorted(ours)}
    try:
        home.records.put(WRITTEN, owner, name, doc, expected=record.version if record else 0)
        write_adjacent(path, data, ours.__contains__)
    except Conflict:  # another run has just taken the name
        return _write(home, owner, film, path, data)
    except (RushesError, OSError) as e:
        log.warning("not written next to the video: %s", e)
        return WrittenFile(path, str(e))
    return WrittenFile(path)


def _is_of_another(film: Path, other: str) -> bool:
    """Whether a name was taken for a film of that name, which is still there: a.mp4 and a.mov share a stem."""
    if not other or other == clean_text(film.name):
        return False
    with contextlib.suppress(OSError):  # a folder that is gone is told when it is written to
        return any(clean_text(p.name) == other for p in film.parent.iterdir())
    return False
