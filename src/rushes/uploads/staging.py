"""The state of an upload, and its staging file, which one request at a time may write.

While a part with a checksum comes, `source.sure` says how many bytes are verified; what a cut or a kill left after them
counts when the sender names its checksum, else it is cut off.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from rushes.domain.errors import RushesError
from rushes.files import make_private, open_private, sync, sync_path, try_lock


@dataclass(frozen=True, slots=True)
class Upload:
    """One upload: what was promised, and how much of it is there."""

    id: str
    name: str
    size: int  # 0 until it is known
    job: str
    key: str
    path: str  # beside the home's other uploads
    mtime_ns: int  # given to the file at the end: the job was told before there was a file
    sha256: str = ""
    state: str = "open"  # open, arrived or refused
    why: str = ""
    multipart: str = ""  # its id in the bucket that its parts go to, and the size of each
    part: int = 0
    caller: str = ""  # whose account promised it
    put: bool = False  # its file comes to the bucket by one signed PUT
    need: str = ""  # what its job waits for, if that is not its key: bytes that are not checked meet no need
    offset: int = 0
    version: int = 0  # of its record

    @property
    def whole(self) -> bool:
        """Whether all of it is there and the ledger may not know yet."""
        return self.state == "open" and self.offset >= (self.size or 1) and (self.size > 0 or self.put)


class UploadBusy(RushesError):
    """Another request writes to this upload now."""

    hint = "Get the offset with HEAD, then continue from there."


@dataclass(frozen=True, slots=True)
class StagingFile:
    """One such film; `final` is where its job looks for it."""

    final: Path

    @property
    def part(self) -> Path:
        """Where its bytes are gathered."""
        return self.final.with_suffix(".part")

    def make(self) -> None:
        """Make room for the first byte."""
        make_private(self.part.parent.parent)
        make_private(self.part.parent)
        os.close(open_private(self.part, os.O_WRONLY))
        sync_path(self.part.parent)
        sync_path(self.part.parent.parent)

    @contextmanager
    def lock(self) -> Iterator[BinaryIO]:
        """Its bytes, for whoever has them alone; what was lost begins again.

        Raises:
            Busy: somebody else has them, or has just put them where they belong.
        """
        if not self.part.exists() and not self.final.exists():
            self.make()
        try:
            file = self.part.open("r+b")
        except FileNotFoundError as e:
            raise UploadBusy("data of this upload is arriving now") from e
        with file:
            if not try_lock(file):
                raise UploadBusy("another request is writing to this upload")
            if not self._leads_to(file):
                raise UploadBusy("data of this upload is arriving now")
            yield file

    def size(self) -> int:
        """How many bytes are there and count."""
        for place in (self.part, self.final):
            with suppress(OSError):
                size = place.stat().st_size
                return min(size, self._sure_of(size))
        return 0

    def received(self) -> int:
        """How many bytes are there, also of a part that was cut off before its checksum could be compared."""
        with suppress(OSError):
            return self.part.stat().st_size
        return self.size()

    def age(self) -> float | None:
        """Seconds since the last byte came; None if there is none on this disk."""
        return _age(self.part)

    def mark_unverified(self, offset: int) -> None:
        """What is written after this offset does not count until `trust`."""
        with os.fdopen(open_private(self._sure, os.O_WRONLY | os.O_TRUNC), "w") as file:
            file.write(f"{offset}\n")
            sync(file)
        sync_path(self.final.parent)

    @property
    def is_unverified(self) -> bool:
        """Whether somebody was cut off between `doubt` and `trust`."""
        return self._sure.exists()

    def mark_verified(self) -> None:
        """All that is written counts."""
        self._sure.unlink(missing_ok=True)

    def move_to_final(self, mtime_ns: int) -> None:
        """It is whole: put it where its job looks for it, with the time that the job was told."""
        if not self.final.exists():
            os.utime(self.part, ns=(mtime_ns, mtime_ns))
            self.part.rename(self.final)
            sync_path(self.final.parent)

    def clear(self) -> None:
        """Delete all of it."""
        for place in (self.part, self.final, self._sure):
            place.unlink(missing_ok=True)
        with suppress(OSError):
            self.final.parent.rmdir()

    @property
    def _sure(self) -> Path:
        return self.final.with_suffix(".sure")

    def _sure_of(self, size: int) -> int:
        """A mark that a kill cut short was made before there was anything to doubt."""
        with suppress(OSError):
            text = self._sure.read_text()
            return int(text) if text.endswith("\n") else size
        return size

    def _leads_to(self, file: BinaryIO) -> bool:
        with suppress(OSError):
            return os.path.samestat(os.fstat(file.fileno()), self.part.stat())
        return False


def clear_strays(folder: Path, keep: frozenset[str], seconds: float) -> int:
    """Delete unfinished files that nobody goes on with (`keep`: the uploads that are open); answers how many."""
    marks = [*folder.glob("*/source.part"), *folder.glob("*/source.sure")]
    old = [path for path in marks if path.parent.name not in keep and (_age(path) or 0.0) > seconds]
    for path in old:
        path.unlink(missing_ok=True)
        with suppress(OSError):
            path.parent.rmdir()
    return len(old)


def _age(path: Path) -> float | None:
    with suppress(OSError):
        return time.time() - path.stat().st_mtime
    return None
