"""Resumable uploads: a file arrives in parts and survives lost connections and restarts; its job exists before it.

The job's first task needs the upload's key, which has arrived when the last byte is on disk, or in the home's bucket.
Into a bucket its parts go directly from the browser, if they can (`direct.py`), else through this server.
"""

import hashlib
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from rushes.blobs.documents import address
from rushes.blobs.port import Multipart
from rushes.domain.errors import NotFound, Refused, RushesError, TryAgain
from rushes.domain.job import Job, JobCommand
from rushes.domain.keys import job_id
from rushes.domain.stereo_keys import CHECKED, upload_key
from rushes.domain.text import clean_text
from rushes.domain.video import BUCKETS, Fingerprint
from rushes.files import locked, make_private
from rushes.home import Home
from rushes.jobs.arrivals import arrive
from rushes.jobs.intake import JobRequest, job_spec
from rushes.jobs.submit import request_id_of
from rushes.plan.planner import JobSpec
from rushes.records.port import Conflict, Record
from rushes.sources.folder import AUDIO, VIDEO
from rushes.telemetry import effect, log
from rushes.uploads.direct import LARGEST, LARGEST_PUT, OTHER_BYTES, DirectUpload, SignedPart, part_size
from rushes.uploads.expected import UploadJob, plan_upload_job
from rushes.uploads.limits import check_caller, check_disk, check_upload, why_not_taken
from rushes.uploads.staging import StagingFile, Upload
from rushes.uploads.writer import UploadWriter

UPLOAD = "upload"  # the kind of record


@dataclass(slots=True)
class Uploads:
    """The uploads of a home. `sums` remembers running hashes; after a restart they are made again from the file."""

    home: Home
    sums: dict[str, tuple[int, Any]] = field(default_factory=dict)

    def begin(
        self,
        name: str,
        size: int,
        wanted: JobRequest,
        sha256: str = "",
        *,
        direct: bool = False,
        whole: bool = False,
        caller: str = "",
    ) -> Upload:
        """Promise a file; its job waits for it. With `direct`, its parts go to the bucket, if there is one.

        If its size is not known yet (0), or with `whole`, it goes there by one PUT (`bucket_puts.py`), if it can.
        Raises:
            Refused: it cannot be taken in, or not here.
            OverLimit: it is too large, or the disk or its caller has no room for it beside what was promised before.
        """
        bucket = self.home.multipart if direct and not (whole and size > LARGEST_PUT) else None
        put = bucket is not None and (whole or not size)
        part = part_size(size) if bucket and not put else None
        label, ending = _label_of(name)
        id, now = f"up_{secrets.token_hex(8)}", time.time_ns()
        path = self.folder / id / f"source{ending}"
        job = self._expected(label, ending, Fingerprint(str(path), size, now), wanted)
        place = str(path.relative_to(self.folder))
        if put:
            id = _id_of(job.job)
        upload = Upload(id, label, size, job.job, job.key, place, now, sha256, caller=caller, put=put)
        if bucket and part:
            upload = replace(upload, part=part, need=f"{job.key}{CHECKED}")
        with locked(self.home.folder / "uploads.lock"):  # so that two that begin at once count each other
            self._check(size, caller, here=not (put or upload.part))
            self._keep(upload)  # first, so that `expire` finds what a kill leaves behind
        if bucket and part:  # not in the lock: a bucket may take a minute to say that it does not answer
            upload = self._begun_in_bucket(bucket, upload)
        elif not put:
            self.staging_file(upload).make()
        job.submit(self.home, upload.need)
        return upload

    def of_job(self, job: Job) -> Upload | None:
        """The upload that a job waits for, if it waits for one."""
        source = JobSpec.from_text(job.payload).source
        with suppress(NotFound):
            upload = self.get(_id_of(job.id) if source.far else Path(source.path).parent.name)
            return upload if upload.job == job.id else None
        return None

    def set_size(self, upload: Upload, size: int) -> Upload:
        """Now its size is known. In a bucket its parts are awaited from here on.

        Raises:
            Refused: it is known, and another.
            OverLimit: as for `begin`.
        """
        if upload.size and size != upload.size:
            raise Refused(f"this upload has {upload.size} bytes", "Start a new upload.")
        if upload.size and not upload.put:
            return upload
        self._check_open(upload)
        known, bucket = replace(upload, size=size), self.home.multipart if upload.put else None
        if bucket:  # not in the lock, as for `begin`
            part = part_size(size) or LARGEST
            known = replace(known, put=False, multipart=bucket.begin(upload.key), part=part)
        try:
            with locked(self.home.folder / "uploads.lock"):
                self._check(size, upload.caller, here=not upload.put, but=upload.id)
                self._keep(known, upload.version)
        except (RushesError, Conflict):
            if bucket:
                bucket.abort(upload.key, known.multipart)
            raise
        return self.get(upload.id)

    @property
    def bucket_origin(self) -> str:
        """Where browsers send parts to, "" if they send them to us."""
        return self.home.multipart.origin if self.home.multipart else ""

    def get(self, id: str) -> Upload:
        """Where an upload stands.

        Raises:
            NotFound: there is none.
        """
        record = self.home.records.get(UPLOAD, self.home.owner, id)
        if record is None:
            raise NotFound(f"no upload {id[:60]!r}", what="upload")
        return self._of(record)

    @contextmanager
    def writing(self, upload: Upload) -> Iterator[UploadWriter]:
        """Write one part; nobody else can meanwhile.

        Raises:
            Busy: somebody else does.
            Refused: nothing more is taken, or it turned out not to be footage.
        """
        if upload.multipart or upload.put:
            raise Refused("this upload goes directly to the bucket", "Request the addresses of its parts.")
        self._check_open(upload)
        staging = self.staging_file(upload)
        with staging.lock() as file:
            upload = self.get(upload.id)
            self._check_open(upload)
            part = UploadWriter(self, upload, file, file.seek(0, os.SEEK_END))
            if staging.is_unverified:  # also where nothing was written after it: what comes now counts
                part.truncate_to(staging.size())
            try:
                yield part
            finally:
                part.sync()

    def keep_received(self, upload: Upload, digest: Any, expected: bytes) -> Upload | None:
        """Keep what came of a part before its line was cut, if it has this checksum; else it is cut off, and None.

        Raises:
            Busy: somebody else writes.
            Refused: nothing more is taken.
        """
        self._check_open(upload)
        staging = self.staging_file(upload)
        with staging.lock() as file:
            begin = file.seek(staging.size())
            while piece := file.read(1 << 20):
                digest.update(piece)
            part = UploadWriter(self, upload, file, file.tell())
            if digest.digest() != expected:
                part.truncate_to(begin)
                return None
            part.mark_verified()
            return part.finish()

    def missing(self, upload: Upload) -> tuple[Upload, tuple[SignedPart, ...]]:
        """What has to be sent to the bucket next; if nothing is missing, the ledger is told and the job begins.

        Raises:
            Refused: its parts do not go to a bucket, or it is not what was promised.
        """
        upload = self.finish(upload)
        direct = self.direct(upload)
        if direct is None:
            raise Refused("this upload goes through the server", "Send it with PATCH.")
        if upload.state == "open" and direct.is_aborted():
            self.refuse(upload, "was deleted from the bucket before it was complete")
        return upload, direct.missing() if upload.state == "open" else ()

    def finish(self, upload: Upload) -> Upload:
        """If all of it is there, tell the ledger; repeatable, so that a kill in between loses nothing.

        Raises:
            Busy: somebody else has it now.
            Refused: its bytes are not those that were promised.
        """
        upload = self.get(upload.id)
        if not upload.whole:
            return upload
        with self.exclusive(upload):
            return self.tell(upload.id)

    def tell(self, id: str) -> Upload:
        """As `finish`, for whoever has it alone: between the look at its bytes and the ledger nobody changes them."""
        upload = self.get(id)
        if not upload.whole:
            return upload
        with effect("upload"):
            etag = self._collect(upload)
            arrive(self.home, upload.need or upload.key, etag)
        try:
            size = upload.size or upload.offset
            self._keep(replace(upload, state="arrived", size=size), upload.version)
        except Conflict:  # somebody gave it up meanwhile, or told it too
            return self.get(id)
        if self._in_bucket:
            self.staging_file(upload).clear()
        self.sums.pop(id, None)
        return self.get(id)

    def all(self) -> Iterator[Upload]:
        """Every upload there is a record of."""
        return (self._of(record) for record in self.home.all_records(UPLOAD))

    def drop(self, upload: Upload, why: str = "given up") -> None:
        """Forget the bytes of an unfinished upload, and its job; last of all it is on record."""
        self.sums.pop(upload.id, None)
        for command in (JobCommand.CANCEL, JobCommand.FORGET):  # a job of a file that never came helps nobody
            with suppress(Refused, NotFound):
                self.home.ledger.control(upload.job, command)
        if direct := self.direct(upload):
            direct.abort()
        if direct or upload.put:
            self.home.blobs.delete(upload.key)
        self.staging_file(upload).clear()
        self._keep(replace(upload, state="refused", why=why))

    def refuse(self, upload: Upload, why: str) -> None:
        """Drop it and say why.

        Raises:
            Refused: always.
        """
        log.warning("upload refused: %s", why, extra={"job": upload.job})
        self.drop(upload, why)
        raise Refused(f"the file {why}", "Choose another file.")

    def _check_open(self, upload: Upload) -> None:
        if upload.state != "open":
            why = f": {upload.why}" if upload.why else ""
            raise Refused(f"this upload is {upload.state}{why}", "Start a new upload.")

    def _collect(self, upload: Upload) -> str:
        """What came lies where its job looks for it, and is what was promised; answers its ETag."""
        if upload.put:
            etag, size = self._version(upload)
            if not etag:
                raise TryAgain(f"{upload.name} was there and is gone", "Send it again.")
            why = why_not_taken(size, upload, self.home.settings)
        elif direct := self.direct(upload):
            etag, why = direct.complete(upload.sha256)
        else:
            etag, why = "", "" if self._has_promised_hash(upload) else OTHER_BYTES
        if why:
            self.refuse(upload, why)
        return etag or (self._to_bucket(upload) if self._in_bucket else self._to_folder(upload))

    def _has_promised_hash(self, upload: Upload) -> bool:
        """Whether it has the sha256 that was promised; another process may have written after what was hashed here."""
        if not upload.sha256 or self.sum(upload) == upload.sha256:
            return True
        self.sums.pop(upload.id, None)
        return self.sum(upload) == upload.sha256

    def _begun_in_bucket(self, bucket: Multipart, upload: Upload) -> Upload:
        try:
            upload = replace(upload, multipart=bucket.begin(upload.key))
        except RushesError:
            self.home.records.delete(UPLOAD, self.home.owner, upload.id)  # it promises nothing
            raise
        self._keep(upload)
        return upload

    def direct(self, upload: Upload) -> DirectUpload | None:
        """Its parts in the bucket, if that is where they go."""
        bucket, u = self.home.multipart, upload
        if bucket is None or not u.multipart:
            return None
        return DirectUpload(bucket, self.home.blobs, u.key, u.multipart, u.size, u.part)

    def sum(self, upload: Upload) -> str:
        """The sha256 of what is there; only what was not hashed while it came is read again."""
        at, digest = self.sums.get(upload.id, (0, None))
        digest = digest or hashlib.sha256()
        staging = self.staging_file(upload)
        with (staging.part if staging.part.exists() else staging.final).open("rb") as file:
            file.seek(at)
            while piece := file.read(1 << 20):
                digest.update(piece)
                at += len(piece)
        self.sums[upload.id] = (at, digest)
        return str(digest.hexdigest())

    def _expected(self, label: str, ending: str, source: Fingerprint, wanted: JobRequest) -> UploadJob:
        """The job that will wait, and the key of its file; in a bucket, the file is promised there."""
        if self._in_bucket:
            return plan_upload_job(self.home, label if label.lower().endswith(ending) else label + ending, wanted)
        spec = job_spec(self.home, source, wanted)
        request = request_id_of(spec, self.home.specs)
        job = job_id(spec.owner, request)
        return UploadJob(job, upload_key(job, ending), request, spec, label, wanted)

    def _to_folder(self, upload: Upload) -> str:
        self.staging_file(upload).move_to_final(upload.mtime_ns)
        return f"{upload.size}-{upload.mtime_ns}"

    def _to_bucket(self, upload: Upload) -> str:
        owner, blobs = self.home.owner, self.home.blobs
        blob = blobs.put(owner, self.staging_file(upload).part)
        blobs.publish(upload.key, owner, blob.sha256)
        return self._version(upload)[0] or blob.sha256  # as a storage event names it, so that both count once

    @property
    def _in_bucket(self) -> bool:
        """Whether workers look for it in a bucket; what comes is gathered here first."""
        return address(self.home.blobs, "input/any").startswith(BUCKETS)

    def _check(self, size: int, caller: str, *, here: bool, but: str = "") -> None:
        s = self.home.settings
        if s.store and not s.shared and not self._in_bucket:
            hint = "Put the file into a bucket that they can read."
            raise Refused("other machines of this fleet cannot read uploads", hint)
        check_upload(size, s)
        promised = [upload for upload in self._promised() if upload.id != but]
        check_caller(size, [upload for upload in promised if upload.caller == caller], s)
        if here:
            make_private(self.folder)
            disk = os.statvfs(self.folder)
            check_disk(size, [u for u in promised if not (u.part or u.put)], disk.f_bavail * disk.f_frsize, s)

    def _promised(self) -> list[Upload]:
        """Uploads that are open. No bucket is asked: all of what goes there counts until it is whole."""
        kept = (Upload(**record.doc) for record in self.home.all_records(UPLOAD))
        return [u if u.part or u.put else replace(u, offset=self._there(u)) for u in kept if u.state == "open"]

    @property
    def folder(self) -> Path:
        """Where files grow that come through here."""
        return Path(os.path.realpath(self.home.folder)) / "uploads"

    def staging_file(self, upload: Upload) -> StagingFile:
        """Where its bytes come to, if they come through here."""
        return StagingFile(self.folder / upload.path)

    def exclusive(self, upload: Upload) -> AbstractContextManager[object]:
        """Nobody else writes meanwhile; a bucket, and a file that is in its place, need nothing for it."""
        staging = self.staging_file(upload)
        return staging.lock() if staging.part.exists() else nullcontext()

    def _there(self, upload: Upload) -> int:
        if upload.state != "open":
            return upload.size if upload.state == "arrived" else 0
        if upload.put:
            return self._version(upload)[1]
        if direct := self.direct(upload):
            return direct.size_received()
        return self.staging_file(upload).size()

    def _version(self, upload: Upload) -> tuple[str, int]:
        """ETag and size of what lies at its key in the bucket."""
        there = self.home.blobs.read(upload.key, 0, 1)
        return (there.version, there.size) if there else ("", 0)

    def _of(self, record: Record) -> Upload:
        upload = Upload(**record.doc, version=record.version)
        return replace(upload, offset=self._there(upload))

    def _keep(self, upload: Upload, expected: int | None = None) -> None:
        doc = {name: getattr(upload, name) for name in upload.__slots__ if name not in ("offset", "version")}
        self.home.records.put(UPLOAD, self.home.owner, upload.id, doc, expected)


def _label_of(name: str) -> tuple[str, str]:
    """The name for people, and an ending that is that of footage or `.bin`."""
    ending = PurePosixPath(name).suffix.lower()
    ending = ending if ending in VIDEO + AUDIO else ".bin"
    return clean_text(PurePosixPath(name.replace("\\", "/")).name)[:200] or f"upload{ending}", ending


def _id_of(job: str) -> str:
    """The id of an upload that goes to the bucket as a whole."""
    return f"up_{job.removeprefix('job_')}"
