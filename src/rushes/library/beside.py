"""Subtitles beside the film, under the name that players read, never over a file that we did not write."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from rushes.blobs.manifests import read_manifest
from rushes.domain.errors import RushesError
from rushes.domain.job import Job
from rushes.domain.keys import short, task_id
from rushes.domain.task import TaskState
from rushes.exports.beside import beside, write_beside
from rushes.jobs.submit import display_name
from rushes.plan.planner import Asked, results_of
from rushes.telemetry import log
from rushes.wiring import House

WRITTEN = "beside"  # the kind of record that remembers what we wrote where
KINDS = {"srt": "subtitles.srt", "vtt": "subtitles.vtt"}


@dataclass(frozen=True, slots=True)
class Beside:
    """A file that belongs beside a film, and why it was not written ("" if it is there)."""

    path: Path
    kept: str = ""


def write_subtitles(house: House, job: Job) -> list[Beside]:
    """Write the finished transcript's subtitles beside its film, unless that lies in a bucket."""
    tasks = house.ledger.tasks(ids=[task_id(job.id, "transcript", None)]).rows
    if not tasks or tasks[0].state is not TaskState.DONE:
        return []
    manifest = read_manifest(house.blobs, job.owner, results_of(tasks[0].spec)["transcript"])
    language = str(manifest.facts.get("language", ""))
    source = Asked.from_text(job.payload).source
    if not manifest.count or not language or source.etag:
        return []
    film, files = house.originals / source.path, []
    for kind, artifact in KINDS.items():
        with house.blobs.open(job.owner, manifest.artifact(artifact).sha256) as f:
            files.append(_write(house, job.owner, beside(film, language, kind), f.read()))
    return files


def _write(house: House, owner: str, path: Path, data: bytes) -> Beside:
    """Remember first, then write: killed between, the next run knows the file for ours."""
    name = short(str(path))
    record = house.records.get(WRITTEN, owner, name)
    ours = {*(record.doc["sha256"] if record else ()), hashlib.sha256(data).hexdigest()}
    house.records.put(WRITTEN, owner, name, {"path": display_name(str(path)), "sha256": sorted(ours)})
    try:
        write_beside(path, data, ours.__contains__)
    except (RushesError, OSError) as e:
        log.warning("not written beside the film: %s", e)
        return Beside(path, str(e))
    return Beside(path)
