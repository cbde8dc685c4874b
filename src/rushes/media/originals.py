"""Originals in folders: opened through no link, and compared by the descriptor that is read, never by the path."""

import hashlib
import os
import stat
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path, PurePath
from typing import BinaryIO

from rushes.domain.errors import BadMedia, SourceChanged, SourceMissing
from rushes.domain.text import clean_text
from rushes.domain.video import Fingerprint
from rushes.files import open_without_links


@dataclass(frozen=True, slots=True)
class LocalOriginal:
    """An original in a folder of this machine; each open is of the file that was taken in, or of its exact copy."""

    top: Path  # the folder that a relative path begins in; it may be reached through a link
    taken_in: Fingerprint
    sha256: str = ""  # its content, once that is known

    @property
    def name(self) -> str:
        """What people call it."""
        return clean_text(PurePath(self.taken_in.path).name)

    def open(self) -> BinaryIO:
        """The file, open to be read.

        Raises:
            SourceMissing: it is missing, may not be read, or can only be reached through a link.
            SourceChanged: it is another file by size, time of change, or inode and content.
            BadMedia: it is no regular file.
        """
        file = self._descriptor()
        try:
            self._compare(os.fstat(file), file)
        except BaseException:
            os.close(file)
            raise
        return os.fdopen(file, "rb")

    def seems_unchanged(self) -> bool:
        """Whether size and time of change are those that were taken in; its bytes are not looked at."""
        try:
            file = self._descriptor()
        except SourceMissing:
            return False
        try:
            return self._same_times(os.fstat(file))
        finally:
            os.close(file)

    def _descriptor(self) -> int:
        try:
            return open_without_links(self.top, self.taken_in.path)
        except OSError as e:
            raise SourceMissing(f"{self.name}: {e.strerror}") from e

    def _same_times(self, now: os.stat_result) -> bool:
        size = self.taken_in.size or now.st_size  # 0: an upload whose size nobody knew when its job was submitted
        return (now.st_size, now.st_mtime_ns) == (size, self.taken_in.mtime_ns)

    def _compare(self, now: os.stat_result, file: int) -> None:
        """A copy that kept its times has another inode: then its content decides, where that is known."""
        if not stat.S_ISREG(now.st_mode):
            raise BadMedia(f"{self.name} is not a regular file", "Folders, pipes and devices cannot be read.")
        same = self._same_times(now)
        if same and self.taken_in.inode not in (0, now.st_ino):  # 0: an upload, whose job is older than its file
            version = _Version(now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns, file)
            same = bool(self.sha256) and _sha256(version) == self.sha256
        if not same:
            raise SourceChanged(f"{self.name} has changed since it was added")


@dataclass(frozen=True, slots=True)
class _Version:
    """The bytes of a file at a time, as far as the file system can tell."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    file: int = field(compare=False)


@lru_cache(maxsize=1024)
def _sha256(version: _Version) -> str:
    sha, at = hashlib.sha256(), 0
    while block := os.pread(version.file, 1 << 20, at):
        sha.update(block)
        at += len(block)
    return sha.hexdigest()
