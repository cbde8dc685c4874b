"""Files that a run writes next to the video: subtitles as players name them, and a sidecar."""

import contextlib
import hashlib
import json
from pathlib import Path

from rushes.annotations.sidecars import faces_document
from rushes.blobs.documents import read_document
from rushes.domain.errors import NotFound, Refused, RushesError
from rushes.domain.job import Job, JobState
from rushes.domain.keys import JSON, short
from rushes.domain.text import clean_text
from rushes.exports import sidecar
from rushes.exports.files_beside import path_beside, write_beside
from rushes.home import Home
from rushes.index.people import KIND as PERSON
from rushes.index.port import Video, find_video
from rushes.index.query import SHOT
from rushes.jobs.originals import current_address, list_originals, manifest_of
from rushes.library.transcript import spoken_languages
from rushes.library.videos.export import everything, export
from rushes.library.videos.files import WrittenFile
from rushes.plan.planner import JobSpec
from rushes.records.port import Conflict
from rushes.telemetry import log

WRITTEN = "beside"  # the kind of record that remembers what we wrote where
SUBTITLES = ("srt", "vtt")
CORRECTED = ("srt", "vtt", "txt", "words.json", "csv", "cuts.edl", "otio")  # endings of files that hold what is said
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


def write_subtitles(home: Home, job: Job) -> list[WrittenFile]:
    """Write the finished transcript's subtitles beside its film, unless that lies in a bucket."""
    manifest, spec = manifest_of(home, job.id, "transcript", "transcript"), JobSpec.from_text(job.payload)
    source = spec.source
    if not manifest or not manifest.facts.get("language") or source.far or spec.stub:
        return []
    video, film = _video(home, job), home.originals / source.path
    files = (file for kind in SUBTITLES for file in _files(home, video, film, kind)) if video else ()
    return [_write(home, job.owner, film, path, data) for path, data in files]


def write_sidecar(home: Home, job: Job) -> list[WrittenFile]:
    """Write what a finished job found beside its film, so that it stays searchable though its home is lost."""
    spec = JobSpec.from_text(job.payload)
    source = spec.source
    done = job.state is JobState.COMPLETED and job.facts  # a clip has no facts of its own
    if not done or source.far or spec.stub:
        return []
    video, film = _video(home, job), home.originals / source.path
    files = _files(home, video, film, sidecar.ENDING) if video else ()
    return [_write(home, job.owner, film, path, data) for path, data in files]


def write_all(home: Home, video: Video) -> list[WrittenFile]:
    """Write everything known of a video beside its film: for players, for editors, and for a home that is lost."""
    film = home.originals / current_address(home, video)
    files = [file for ending in (*NAMES, sidecar.ENDING) for file in _files(home, video, film, ending)]
    if video.poster and (data := read_document(home.blobs, video.poster)):
        files.append((film.with_name(f"{film.stem}-poster.jpg"), data))
    return [_write(home, video.owner, film, path, data) for path, data in files]


def write_corrected(home: Home, video: Video) -> list[WrittenFile]:
    """After a correction, write again what was written beside the film of this video and is there still."""
    home.follower.catch_up()
    files: list[WrittenFile] = []
    sources = {place.spec.source.path for place in list_originals(home, video) if not place.spec.source.far}
    for film in (home.originals / path for path in sorted(sources)):
        for ending in (*CORRECTED, sidecar.ENDING):
            found = [(path, data) for path, data in _files(home, video, film, ending) if _is_there(home, film, path)]
            files += [_write(home, video.owner, film, path, data) for path, data in found]
    return files


def _video(home: Home, job: Job) -> Video | None:
    home.follower.catch_up()
    return find_video(home.index, job.owner, json.loads(job.facts)["video"])


def _files(home: Home, video: Video, film: Path, ending: str) -> list[tuple[Path, bytes]]:
    """The files of one ending as they are now: none if there is nothing to write, subtitles for each language."""
    try:
        if ending == sidecar.ENDING:
            return _sidecar(home, video, film)
        if ending not in SUBTITLES:
            return [(path_beside(film, "", ending), export(home, video, NAMES[ending]))]
        spoken = spoken_languages(home, video) or [*video.languages[:1]]  # all of it may be corrected away
        if len(spoken) < 2:
            return [(path_beside(film, "".join(spoken), ending), export(home, video, ending))]
        return [(path_beside(film, code, ending), export(home, video, ending, language=code)) for code in spoken]
    except RushesError as e:  # nothing was said, no shots, no constant rate: there is nothing to write
        log.info("%s has no %s: %s", video.name, ending, e)
        return []


def _is_there(home: Home, film: Path, path: Path) -> bool:
    """Whether a file of ours is there under this name, or under the one that the film's full name gives."""
    return any(
        name.is_file() and home.records.get(WRITTEN, home.owner, short(str(name)))
        for name in (path, _full_name(film, path))
    )


def _full_name(film: Path, path: Path) -> Path:
    """With the film's ending: for a film that shares its stem with another."""
    return path.with_name(film.name + path.name.removeprefix(film.stem))


def _sidecar(home: Home, video: Video, film: Path) -> list[tuple[Path, bytes]]:
    lines = [line for line in everything(home, video) if line.kind != PERSON]
    if all(line.kind == SHOT for line in lines):  # nothing that one would search for
        return []
    data = sidecar.write(_facts(home, video), lines, faces_document(home, video.id))
    return [(path_beside(film, "", sidecar.ENDING), data)]


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
        full = _full_name(film, path)
        log.warning("%s already belongs to %s: writing %s instead", path.name, record.doc["film"], full.name)
        return (
            _write(home, owner, film, full, data) if full != path else WrittenFile(path, "it belongs to another video")
        )
    ours = {*(record.doc["sha256"] if record else ()), hashlib.sha256(data).hexdigest()}
    doc = {"path": clean_text(str(path)), "film": clean_text(film.name), "sha256": sorted(ours)}
    try:
        home.records.put(WRITTEN, owner, name, doc, expected=record.version if record else 0)
        write_beside(path, data, ours.__contains__)
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
