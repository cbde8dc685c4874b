"""Expected uploads: jobs that exist before their file is put into the home's bucket."""

import secrets
import time
from dataclasses import dataclass
from pathlib import PurePosixPath

from rushes.blobs.documents import address
from rushes.domain.errors import Refused
from rushes.domain.job import Job
from rushes.domain.keys import job_id
from rushes.domain.stereo_keys import upload_key
from rushes.domain.task import Need
from rushes.domain.video import Fingerprint
from rushes.home import Home
from rushes.jobs.intake import JobRequest, job_spec
from rushes.jobs.submit import submit
from rushes.plan.planner import JobSpec


@dataclass(frozen=True, slots=True)
class ExpectedUpload:
    """A job that waits, and where its file has to go."""

    job: Job
    key: str  # in the home
    address: str  # s3://bucket/key


@dataclass(frozen=True, slots=True)
class UploadJob:
    """A job for a file to come, with its ids, before it is submitted."""

    job: str
    key: str
    request: str
    spec: JobSpec
    name: str
    wanted: JobRequest

    def submit(self, home: Home, need: str = "") -> Job:
        """Submit it; it waits for its file, or for the key that it has a `need` of instead."""
        needs, recipe = [Need(need or self.key, is_key=True)], self.wanted.recipe or home.settings.recipe
        return submit(home, self.spec, self.request, self.name, recipe, self.wanted.priority, needs).job


def expect_upload(home: Home, name: str, wanted: JobRequest) -> ExpectedUpload:
    """Submit a job for a file to come; it begins when a storage event or a sweep of `rushes watch` finds the file.

    Raises:
        Refused: the home is in no bucket, or the request is invalid.
    """
    expected = plan_upload_job(home, name, wanted)
    return ExpectedUpload(expected.submit(home), expected.key, address(home.blobs, expected.key))


def plan_upload_job(home: Home, name: str, wanted: JobRequest) -> UploadJob:
    """Say which job that will be. Raises as `expect_upload` does."""
    request = f"promise-{secrets.token_hex(8)}"
    job = job_id(home.owner, request)
    key = upload_key(job, PurePosixPath(name).suffix.lower())
    source = Fingerprint(address(home.blobs, key), 0, time.time_ns())
    if not source.far:
        raise Refused("this home is not in a bucket", 'Set blobs = "s3://bucket/prefix".')
    return UploadJob(job, key, request, job_spec(home, source, wanted), name, wanted)
