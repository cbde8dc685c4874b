"""Subtitles beside the film, under the name that players read, never over a file that we did not write."""

import hashlib
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


def write_subtitles(house: House, job: Job) -> list[Path]:
    """Write the finished transcript's subtitles beside its film; answers the files that are there now."""
    tasks = house.ledger.tasks(ids=[task_id(job.id, "transcript", None)]).rows
    if not tasks or tasks[0].state is not TaskState.DONE:
        return []
    manifest = read_manifest(house.blobs, job.owner, results_of(tasks[0].spec)["transcript"])
    language = str(manifest.facts.get("language", ""))
    if not manifest.count or not language:
        return []
    film = house.originals / Asked.from_text(job.payload).source.path
    written = []
    for kind, artifact in KINDS.items():
        with house.blobs.open(job.owner, manifest.artifact(artifact).sha256) as f:
            path = _write(house, job.owner, beside(film, language, kind), f.read())
        written += [path] if path else []
    return written


def _write(house: House, owner: str, path: Path, data: bytes) -> Path | None:
    """Remember first, then write: killed between, the next run knows the file for ours."""
    name = short(str(path))
    record = house.records.get(WRITTEN, owner, name)
    ours = {*(record.doc["sha256"] if record else ()), hashlib.sha256(data).hexdigest()}
    house.records.put(WRITTEN, owner, name, {"path": display_name(str(path)), "sha256": sorted(ours)})
    try:
        write_beside(path, data, ours.__contains__)
    except (RushesError, OSError) as e:
        log.warning("not written beside the film: %s", e)
        return None
    return path
