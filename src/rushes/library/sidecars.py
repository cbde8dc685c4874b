"""Films that are searchable by what lies beside them: for a home that was lost."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rushes.domain.errors import Refused
from rushes.domain.keys import JSON, short
from rushes.exports import sidecar
from rushes.index.follower import SIDECAR
from rushes.index.gather import FACE
from rushes.index.port import Offer, Run
from rushes.library.said import every, faces
from rushes.telemetry import log
from rushes.wiring import House

READ = "sidecar"  # records of this kind name a sidecar that was read in: doc = {"path": ...}


@dataclass(frozen=True, slots=True)
class ReadIn:
    """A sidecar that was read: whose it is and how much it says, or why it is not used."""

    path: Path
    video: str = ""
    name: str = ""
    lines: int = 0
    kept: str = ""


def read_in(house: House, paths: Iterable[Path]) -> list[ReadIn]:
    """Read the sidecars named, or those below folders; the newest run of a home that knows the video counts more.

    Raises:
        Refused: a place is not there.
    """
    found = [_read(house, file) for path in paths for file in _files(path)]
    for one in found:
        if not one.kept:
            house.records.put(READ, house.settings.owner, "side_" + short(str(one.path)), {"path": str(one.path)})
    house.follower.catch_up()
    return found


def read_again(house: House) -> None:
    """Read what was read in before into an index that is new."""
    for record in every(house, READ):
        _read(house, Path(str(record.doc["path"])))


def _files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path.resolve()
    elif path.is_dir():
        yield from sorted(p.resolve() for p in path.rglob(f"*.{sidecar.ENDING}") if p.is_file())
    else:
        raise Refused(f"there is nothing at {path}", "Name a folder with films, or a .rushes.jsonl file.")


def _read(house: House, path: Path) -> ReadIn:
    try:
        data, made_at = path.read_bytes(), datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except OSError as error:
        log.warning("the sidecar %s cannot be read: %s", path, error)
        return ReadIn(path, kept=str(error.strerror))
    found = sidecar.read(data)
    if found is None:
        return ReadIn(path, kept="it is no sidecar of this version")
    facts = {**found.facts, "path": _film(house, path, found.facts)}
    owner, video = house.settings.owner, str(facts["video"])
    job, sha256 = f"side_{short(video)}", hashlib.sha256(data).hexdigest()
    run = Run(job, owner, video, "sidecar", "completed", made_at.isoformat(timespec="seconds"), facts)
    offers = [
        Offer(owner, video, job, READ, None, kind, SIDECAR + sha256, sha256) for kind in sidecar.kinds(found.lines)
    ]
    with house.index.alone(60.0):
        house.index.take_in(run, offers, {}, ())
        rest = [(kind, key) for kind, key, _ in house.index.shown(owner, video) if key.startswith(SIDECAR)]
        there = {kind for kind, key, _ in house.index.shown(owner, video) if not key.startswith(SIDECAR)}
        add = [(o, [line for line in found.lines if line.kind == o.kind]) for o in offers if o.kind not in there]
        house.index.show(owner, video, add, rest)
        if FACE not in there:
            faces.read_in(house, video, found.people)
    return ReadIn(path, video, str(facts.get("name") or ""), len(found.lines))


def _film(house: House, path: Path, facts: dict[str, JSON]) -> str:
    """The film beside it, as paths of this home are written."""
    film = path.with_name(Path(str(facts.get("name") or "")).name or path.name)
    return str(film.relative_to(house.originals) if film.is_relative_to(house.originals) else film)
