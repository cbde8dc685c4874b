"""Where the original of a video is now: the same content may have been added from several places."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace

from rushes.blobs.manifests import read_manifest
from rushes.blobs.port import Blobs
from rushes.domain.errors import DamagedBlob, NeverWorks, NotFound, RushesError, SourceMissing
from rushes.domain.job import Job
from rushes.domain.keys import task_id
from rushes.domain.result import Manifest
from rushes.domain.task import TaskState
from rushes.domain.text import LOST, clean_text
from rushes.domain.video import BUCKETS, Fingerprint, VideoFacts
from rushes.home import Home
from rushes.index.port import Video
from rushes.media.originals import LocalOriginal
from rushes.plan.planner import JobSpec, results_of


@dataclass(frozen=True, slots=True)
class Original:
    """One place of a video: the job that took it in from there, and its spec."""

    job: str
    spec: JobSpec


def original(home: Home, video: Video) -> Original:
    """The newest place at which the film still lies as it was taken in.

    Raises:
        SourceMissing: it lies at none of them any more.
    """
    for place in list_originals(home, video):
        if is_unchanged(home, place.spec.source):
            return place
    raise SourceMissing(f"{video.name} is missing. It was at: {', '.join(video.paths)}")


def is_unchanged(home: Home, source: Fingerprint) -> bool:
    """Whether a file seems to be what its fingerprint says; what lies in a bucket or on another machine is believed."""
    return source.far or source.site not in ("", home.site) or LocalOriginal(home.originals, source).seems_unchanged()


def with_current_path(home: Home, video: Video) -> Video:
    """The video with the path at which it lies now, as people read it, if it lies anywhere."""
    if len(video.paths) < 2:
        return video
    try:
        return replace(video, path=clean_text(original(home, video).spec.source.path))
    except RushesError:
        return video


def current_address(home: Home, video: Video) -> str:
    """The file at which it lies now, or its address in a bucket.

    People read its path as clean text, which may lack bytes of its name.
    """
    path = with_current_path(home, video).path
    if LOST in path:
        sources = (place.spec.source.path for place in list_originals(home, video))
        path = next((source for source in sources if clean_text(source) == path), path)
    return path if path.startswith(BUCKETS) else str(home.originals / path)


def manifest_of(home: Home, job: str, stage: str, output: str) -> Manifest | None:
    """The result of a stage that works on the whole film; None until it is done."""
    tasks = home.ledger.tasks(ids=[task_id(job, stage, None)]).rows
    if not tasks or tasks[0].state is not TaskState.DONE:
        return None
    return read_manifest(home.blobs, home.owner, results_of(tasks[0].spec)[output])


def read_artifact(home: Home, manifest: Manifest, name: str) -> bytes:
    """The bytes of one file of a result."""
    with home.blobs.open(home.owner, manifest.artifact(name).sha256) as file:
        return file.read()


def read_probe(home: Home, job: Job) -> VideoFacts:
    """What probe found for a job."""
    return read_facts(home.blobs, job.owner, _found(home, job))


def _found(home: Home, job: Job) -> Manifest:
    (probe,) = home.ledger.tasks(ids=[task_id(job.id, "probe", None)]).rows
    return read_manifest(home.blobs, job.owner, results_of(probe.spec)["facts"])


def _spec(home: Home, job: Job) -> JobSpec:
    """What a job asks; of an expected upload, about the version that came."""
    spec = JobSpec.from_text(job.payload)
    if not spec.source.far or spec.source.etag:
        return spec
    return replace(spec, source=source_of(spec, _found(home, job)))


def list_originals(home: Home, video: Video) -> Iterator[Original]:
    """Every place from which it was taken in, the newest first."""
    for job in video.jobs:
        try:
            yield Original(job, _spec(home, home.ledger.job(job)))
        except (NotFound, NeverWorks):  # the index lags behind, or its request cannot be read
            continue


def source_of(spec: JobSpec, found: Manifest) -> Fingerprint:
    """The version of the original that probe read: the job may be older than its file."""
    read = found.facts.get("source")
    return Fingerprint.from_json(read) if read else spec.source


def read_facts(blobs: Blobs, owner: str, found: Manifest) -> VideoFacts:
    """What probe found, from its result.

    Raises:
        DamagedBlob: it is not there any more, or not as it was written.
    """
    artifact = found.artifact("facts.json")
    with blobs.open(owner, artifact.sha256) as f:
        data = f.read()
    if hashlib.sha256(data).hexdigest() != artifact.sha256:
        raise DamagedBlob(f"facts.json of result {found.key} is damaged")
    return VideoFacts.from_json(json.loads(data))
