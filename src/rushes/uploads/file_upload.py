"""Uploading files of this machine to the home's bucket, so that every worker of the fleet can read them."""

from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path, PurePosixPath

from rushes.blobs.documents import address
from rushes.domain.errors import Refused, RushesError
from rushes.domain.keys import digest, job_id
from rushes.domain.stereo_keys import upload_key
from rushes.domain.task import Need
from rushes.domain.video import BUCKETS, Fingerprint
from rushes.home import Home
from rushes.jobs.arrivals import arrive
from rushes.jobs.intake import IntakeResult, JobRequest, job_spec, left_out
from rushes.jobs.submit import submit
from rushes.sources.port import FoundFile, SkippedFile
from rushes.sources.watch import find


def upload_files(home: Home, places: list[str], wanted: JobRequest) -> Iterator[IntakeResult]:
    """Send everything found at these places and submit it; what was sent before is not sent again.

    Raises:
        Refused: the home is in no bucket, or the request is invalid.
    """
    if not address(home.blobs, "input").startswith(BUCKETS):
        hint = 'Leave --upload out, or set blobs = "s3://bucket/prefix".'
        raise Refused("files can only be uploaded to a home in a bucket", hint)
    for entry in find(map(home.source, places)):
        if isinstance(entry, SkippedFile):
            yield left_out(entry)
            continue
        try:
            yield _send(home, entry, wanted)
        except RushesError as e:
            yield IntakeResult(entry.path, error=e)


def _send(home: Home, found: FoundFile, wanted: JobRequest) -> IntakeResult:
    """First the bytes, then the job, then the word that its file is there: killed anywhere, it is repeated."""
    blob = home.blobs.put(home.owner, Path(found.path))
    spec = job_spec(home, Fingerprint("s3://", 0, 0), wanted)
    request = digest(["upload", blob.sha256, found.name, asdict(spec)])
    key = upload_key(job_id(home.owner, request), PurePosixPath(found.name).suffix.lower())
    spec = replace(spec, source=Fingerprint(address(home.blobs, key), 0, found.fingerprint.mtime_ns))
    recipe = wanted.recipe or home.settings.recipe
    made = submit(home, spec, request, found.name, recipe, wanted.priority, [Need(key, is_key=True)])
    home.blobs.publish(key, home.owner, blob.sha256)
    there = home.blobs.read(key, 0, 1)
    arrive(home, key, there.version if there else blob.sha256)
    return IntakeResult(found.path, made.job, made.created, size=found.size)
