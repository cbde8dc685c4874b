"""Importing sidecar files, with the people in them: makes videos searchable again after a home was lost."""

import base64
import hashlib
import math
from array import array
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rushes.annotations.people import marks_in
from rushes.domain.errors import NotFound, Refused
from rushes.domain.keys import JSON, is_id, short
from rushes.domain.text import clean_text
from rushes.exports import sidecar
from rushes.home import Home
from rushes.index import changes
from rushes.index.follower import SIDECAR, SIDECAR_FILE
from rushes.index.people import FACE, PERSON, FaceLabel
from rushes.index.people.updater import PeopleUpdater
from rushes.index.port import find_video
from rushes.index.videos import are_facts
from rushes.records.port import Conflict
from rushes.telemetry import log


@dataclass(frozen=True, slots=True)
class SidecarReport:
    """A sidecar that was read: whose it is and how much it says, or why it is not used."""

    path: Path
    video: str = ""
    name: str = ""
    lines: int = 0
    kept: str = ""
    away: bool = False  # it could not be opened: perhaps its drive is not plugged in


@dataclass(frozen=True, slots=True)
class Faces:
    """What a sidecar says of the people in a video, as records and the index keep it."""

    tracks: tuple[changes.Track, ...]
    said: dict[str, dict[str, JSON]]


def faces_document(home: Home, video: str) -> dict[str, JSON]:
    """Its tracks with their embeddings, and marks; a name that was given in another video is said of this one too."""
    tracks = [track for track in home.index.tracks(home.owner) if track.video == video]
    if not tracks:
        return {}
    said = marks_in(home, video) | {record.id: dict(record.doc) for record in home.all_records(PERSON, video)}
    faces = [{**track.to_doc(), "embedding": base64.b64encode(track.embedding).decode()} for track in tracks]
    return {"tracks": faces, "said": said}


def parse_faces(video: str, people: Mapping[str, JSON]) -> Faces:
    """The inverse of written.

    Raises:
        ValueError, TypeError, LookupError, AttributeError, ArithmeticError: somebody else wrote it.
    """
    tracks = tuple(changes.Track.from_doc(video, doc, _embedding(doc["embedding"])) for doc in people.get("tracks", ()))
    said = {str(id): {**doc, "video": video} for id, doc in people.get("said", {}).items()}
    for id, doc in said.items():
        if not is_id(id):
            raise ValueError("a face label has no id")
        FaceLabel.from_doc(doc)
    return Faces(tracks, said)


def _embedding(text: str) -> bytes:
    data = base64.b64decode(text, validate=True)
    if not data or len(data) % 4 or not all(map(math.isfinite, array("f", data))):
        raise ValueError("a face has no embedding")
    return data


def import_faces(home: Home, video: str, faces: Faces) -> None:
    """The same again in a home that does not know them; what was said here counts more."""
    home.index.apply(changes.TrackUpdate(home.owner, video, faces.tracks))
    for id, doc in faces.said.items():
        with suppress(Conflict):
            home.records.put(PERSON, home.owner, id, doc, expected=0)
    PeopleUpdater(home.records, home.blobs, home.index).mark_stale(home.owner)


@dataclass(frozen=True, slots=True)
class ParsedSidecar:
    """A sidecar that holds: what it says, which bytes it is, and when it was written."""

    found: sidecar.Sidecar
    people: Faces
    sha256: str
    at: datetime


def import_sidecars(home: Home, paths: Iterable[Path]) -> list[SidecarReport]:
    """Read the sidecars named, or those below folders; the newest run of a home that knows the video counts more.

    Raises:
        Refused: a place is not there.
    """
    home.follower.catch_up()
    found = [read_sidecar(home, file) for path in paths for file in _files(path)]
    for one in found:
        if not one.kept:
            home.records.put(SIDECAR_FILE, home.owner, "side_" + short(str(one.path)), {"path": str(one.path)})
    home.follower.catch_up()
    return found


def _files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path.resolve()
    elif path.is_dir():
        yield from sorted(p.resolve() for p in path.rglob(f"*.{sidecar.ENDING}") if p.is_file())
    else:
        raise Refused(f"{path} does not exist", "Give a folder with videos, or a .rushes.jsonl file.")


def read_sidecar(home: Home, path: Path) -> SidecarReport:
    """Read one sidecar into the index, or say why it is not used."""
    try:
        data, made_at = path.read_bytes(), datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except OSError as error:
        log.warning("the sidecar %s cannot be read: %s", path, error)
        return SidecarReport(path, kept=str(error.strerror), away=True)
    found = sidecar.read(data)
    if found is None:
        return _refused(path, "not a sidecar of this version")
    if not are_facts(found.facts):
        return _refused(path, "its facts about the video are invalid")
    try:
        people = parse_faces(str(found.facts["video"]), found.people)
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
        return _refused(path, f"its people are invalid: {error}")
    return _taken_in(home, path, ParsedSidecar(found, people, hashlib.sha256(data).hexdigest(), made_at))


def _refused(path: Path, why: str) -> SidecarReport:
    log.warning("skipped the sidecar %s: %s", path, why)
    return SidecarReport(path, kept=why)


def _taken_in(home: Home, path: Path, made: ParsedSidecar) -> SidecarReport:
    """Show what no run of this home shows; killed anywhere, what was shown before stays."""
    facts = {**made.found.facts, "path": _film(home, path, made.found.facts)}
    owner, video = home.owner, str(facts["video"])
    job, key = f"side_{short(video)}", SIDECAR + made.sha256
    with home.index.lock(60.0):
        shown = home.index.state(owner, video).shown
        there = {kind for kind, key, _ in shown if not key.startswith(SIDECAR)}
        kinds = [kind for kind in sidecar.kinds(made.found.lines) if kind not in there]
        results = [
            changes.IndexedResult(owner, video, job, SIDECAR_FILE, None, kind, key, made.sha256) for kind in kinds
        ]
        if results or not there:
            run = changes.Run(job, owner, video, "sidecar", "completed", _created(home, video, made.at), facts)
            home.index.apply(changes.RunUpdate(run, results))
        add = [(r, [line for line in made.found.lines if line.kind == r.kind]) for r in results]
        drop = [(kind, key) for kind, key, _ in shown if key.startswith(SIDECAR)]
        home.index.apply(changes.SelectionUpdate(owner, video, add, drop))
        if FACE not in there:
            import_faces(home, video, made.people)
        results_now = home.index.state(owner, video).results
        old = {r.key for r, _ in results_now if r.key.startswith(SIDECAR)} - {key}
        home.index.apply(changes.ResultRemoval(owner, sorted(old)))
    return SidecarReport(path, video, str(facts.get("name") or ""), len(made.found.lines))


def _created(home: Home, video: str, made_at: datetime) -> str:
    """When its run began, as the index orders runs: before those of this home, which count more."""
    known = find_video(home.index, home.owner, video)
    times = [min(made_at, datetime.now(UTC))]
    for id in known.jobs if known else ():
        with suppress(NotFound):
            times.append(datetime.fromisoformat(home.ledger.job(id).created_at) - timedelta(seconds=1))
    return min(times).isoformat(timespec="seconds")


def _film(home: Home, path: Path, facts: dict[str, JSON]) -> str:
    """The film beside it, as paths of this home are written."""
    film = path.with_name(Path(str(facts.get("name") or "")).name or path.name)
    return clean_text(str(film.relative_to(home.originals) if film.is_relative_to(home.originals) else film))
