"""Files sent to the bucket by one PUT: their signed addresses, and telling the ledger when they arrive.

Whoever says that a file has come, an event, a sweep or a page: what lies at the key is looked at, and only that counts.
"""

import time
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from rushes.blobs.documents import address
from rushes.blobs.port import ByteRange
from rushes.domain.errors import NotFound, OverLimit, Refused, RushesError
from rushes.domain.job import Job, JobCommand, JobState
from rushes.domain.stereo_keys import parse_upload_key
from rushes.domain.task import TaskState
from rushes.jobs.arrivals import arrive
from rushes.ledger.pages import every
from rushes.plan.planner import JobSpec
from rushes.telemetry import log
from rushes.uploads.direct import SECONDS
from rushes.uploads.limits import check_upload
from rushes.uploads.service import UPLOAD, Uploads
from rushes.uploads.staging import Upload

RECENT_SECONDS = 3600.0  # after it was promised, a file is looked for often


@dataclass(slots=True)
class BucketPuts:
    """Uploads by one signed PUT each. Storage events tell of them too; without any, these looks are enough."""

    uploads: Uploads
    most: int = 500 * 10**6  # bytes that pages send by one PUT; larger files go in parts
    known: dict[str, str] = field(default_factory=dict)  # upload -> ETag that the ledger was told

    def address(self, upload: Upload) -> str:
        """Where the whole file is PUT to, good for 15 minutes; "" if it does not go to a bucket so."""
        bucket = self.uploads.home.multipart
        return bucket.sign_put(upload.key, SECONDS, upload.size) if bucket and upload.put else ""

    def look(self, *, old: bool) -> None:
        """Tell the ledger of files that are there; with `old`, also look for those promised long ago."""
        since = 0.0 if old else time.time_ns() - RECENT_SECONDS * 1e9
        docs = [record.doc for record in self.uploads.home.all_records(UPLOAD) if record.doc["put"]]
        for id in [str(doc["id"]) for doc in docs if doc["mtime_ns"] >= since]:
            with suppress(RushesError):  # the next look does it
                self._tell(self.uploads.finish(self.uploads.get(id)))

    def look_for_promised(self, *, old: bool) -> None:
        """Look at the key of each job that waits for its file, `old` ones too: no bucket is listed.

        Raises:
            TryAgain: the bucket or the ledger is away.
        """
        home = self.uploads.home
        waiting = every(lambda cursor: home.ledger.jobs(home.owner, JobState.CREATED, cursor=cursor, limit=500))
        since = datetime.now(UTC) - timedelta(seconds=RECENT_SECONDS)
        for job in [job for job in waiting if old or datetime.fromisoformat(job.created_at) > since]:
            key = JobSpec.from_text(job.payload).source.path.removeprefix(f"{home.blobs.root}/")
            if parse_upload_key(key) == job.id and home.ledger.tasks(job.id, TaskState.WAITING, limit=1).rows:
                self.on_key(key)

    def on_key(self, key: str) -> None:
        """A key of the home may have been written; what no job waits for is passed over.

        Raises:
            TryAgain: the bucket or the ledger is away.
        """
        with suppress(NotFound, Refused):  # refused: it is on record why
            job = self.uploads.home.ledger.job(parse_upload_key(key) or "")
            if upload := self.uploads.of_job(job):
                self._tell(self.uploads.finish(upload))
            elif JobSpec.from_text(job.payload).source.path == address(self.uploads.home.blobs, key):
                self._arrive(job, key)

    def _tell(self, upload: Upload) -> None:
        """Also of a file that was sent after the first: with it the work starts again."""
        if upload.state == "open":
            return
        there = self.uploads.home.blobs.read(upload.key, 0, 1)
        if there and upload.state == "refused":  # its address is good for a while
            self.uploads.home.blobs.delete(upload.key)
        elif there and self.known.get(upload.id) != there.version and self._fits(upload.key, there):
            arrive(self.uploads.home, upload.key, there.version)
            self.known[upload.id] = there.version

    def _arrive(self, job: Job, key: str) -> None:
        """The file of a job that somebody else was to put there."""
        home = self.uploads.home
        there = home.blobs.read(key, 0, 1)
        if there and (job.owner != home.owner or self._fits(key, there)):
            arrive(home, key, there.version)
        elif there:
            with suppress(Refused):  # it is at an end
                home.ledger.control(job.id, JobCommand.CANCEL)

    def _fits(self, key: str, there: ByteRange) -> bool:
        """Whether it is no larger than what is taken; else it is deleted."""
        try:
            check_upload(there.size, self.uploads.home.settings)
        except OverLimit as e:
            log.warning("%s was deleted: %s", key, e)
            self.uploads.home.blobs.delete(key)
            return False
        return True
