"""Files that are sent to the bucket as a whole: the address of each, and telling the ledger when it is there."""

import time
from contextlib import suppress
from dataclasses import dataclass, field

from rushes.domain.errors import RushesError
from rushes.jobs.arrivals import arrive
from rushes.uploads.direct import SECONDS
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
        return bucket.sign_put(upload.key, SECONDS) if bucket and upload.put else ""

    def look(self, *, old: bool) -> None:
        """Tell the ledger of files that are there; with `old`, also look for those promised long ago."""
        since = 0.0 if old else time.time_ns() - RECENT_SECONDS * 1e9
        docs = [record.doc for record in self.uploads.home.all_records(UPLOAD) if record.doc["put"]]
        for id in [str(doc["id"]) for doc in docs if doc["mtime_ns"] >= since]:
            with suppress(RushesError):  # the next look does it
                self._tell(self.uploads.finish(self.uploads.get(id)))

    def _tell(self, upload: Upload) -> None:
        """Also of a file that was sent after the first: with it the work starts again."""
        there = self.uploads.home.blobs.read(upload.key, 0, 1) if upload.state == "arrived" else None
        if there and self.known.get(upload.id) != there.version:
            arrive(self.uploads.home, upload.key, there.version)
            self.known[upload.id] = there.version
