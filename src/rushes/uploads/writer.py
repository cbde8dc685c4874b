"""Writing an upload through the server: one part at a time, checked as it arrives."""

import hashlib
import os
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol

from rushes.domain.errors import OverLimit
from rushes.files import sync
from rushes.home import Home
from rushes.uploads.direct import HEAD, describe_non_footage
from rushes.uploads.limits import check_disk, check_upload
from rushes.uploads.staging import StagingFile, Upload


class UploadReceiver(Protocol):
    """Who keeps uploads: where their bytes go, and who is told of them."""

    home: Home
    sums: dict[str, tuple[int, Any]]  # running hashes

    def staging_file(self, upload: Upload) -> StagingFile:
        """Where its bytes come to."""

    def set_size(self, upload: Upload, size: int) -> Upload:
        """Now its size is known."""

    def tell(self, id: str) -> Upload:
        """If all of it is there, tell the ledger."""

    def drop(self, upload: Upload, why: str = "") -> None:
        """Forget its bytes and its job."""

    def refuse(self, upload: Upload, why: str) -> None:
        """Drop it and say why. Raises Refused, always."""


@dataclass(slots=True)
class UploadWriter:
    """One part while it is written: size and kind are checked as the bytes come."""

    uploads: UploadReceiver
    upload: Upload
    file: BinaryIO
    offset: int

    def write(self, data: bytes) -> None:
        """Append.

        Raises:
            OverLimit: more than was promised; where nothing was, more than is taken, and the upload is over.
            Refused: it is no footage; the upload is over.
        """
        if not self.upload.size:
            self._check_growth(len(data))
        elif self.offset + len(data) > self.upload.size:
            raise OverLimit("more data than announced", "Start a new upload with the correct length.")
        before = self.offset
        self.file.seek(before)
        self.file.write(data)
        self.offset += len(data)
        self._hash(before, data)
        if before < HEAD and (self.offset >= HEAD or self.offset == self.upload.size):
            self._look()

    def mark_unverified(self) -> None:
        """What is written from here on counts only when `trust` or `back_to` is said, whoever is killed before."""
        self.uploads.staging_file(self.upload).mark_unverified(self.offset)

    def mark_verified(self) -> None:
        """What was written is what was sent."""
        self.sync()
        self.uploads.staging_file(self.upload).mark_verified()

    def truncate_to(self, offset: int) -> None:
        """Take back what was written after an offset: it is not what was sent."""
        self.file.flush()
        self.file.truncate(offset)
        self.offset = offset
        self.uploads.sums.pop(self.upload.id, None)
        self.mark_verified()

    def finish(self) -> Upload:
        """As `Uploads.finish`, before anybody else can write."""
        self.sync()
        return self.uploads.tell(self.upload.id)

    def end(self) -> None:
        """What came is all of it, if nobody has said how much it would be."""
        self.sync()
        self.upload = self.uploads.set_size(self.upload, self.offset)

    def sync(self) -> None:
        """What was written survives a power cut."""
        sync(self.file)

    def _hash(self, before: int, data: bytes) -> None:
        at, digest = self.uploads.sums.get(self.upload.id, (0, hashlib.sha256()))
        if self.upload.sha256 and at == before:
            digest.update(data)
            self.uploads.sums[self.upload.id] = (self.offset, digest)

    def _check_growth(self, more: int) -> None:
        """What was never promised has to fit as it comes."""
        disk, settings = os.fstatvfs(self.file.fileno()), self.uploads.home.settings
        try:
            check_upload(self.offset + more, settings)
            check_disk(more, (), disk.f_bavail * disk.f_frsize, settings)
        except OverLimit as e:
            self.uploads.drop(self.upload, str(e))
            raise

    def _look(self) -> None:
        self.file.seek(0)
        if why := describe_non_footage(self.file.read(HEAD)):
            self.uploads.refuse(self.upload, why)
