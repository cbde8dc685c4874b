"""Films that come through the server: each grows in a folder of its own, and only one request at a time has it.

While a part with a checksum comes, `source.sure` says up to where the bytes are known to be right; what a killed
process left behind that place does not count and is taken back.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from rushes.domain.errors import RushesError


class Busy(RushesError):
    """Another request writes to this upload now."""

    hint = "Ask where it stands (HEAD), then go on from there."


@dataclass(frozen=True, slots=True)
class Landing:
    """One such film; `final` is where its job looks for it."""

    final: Path

    @property
    def part(self) -> Path:
        """Where its bytes are gathered."""
        return self.final.with_suffix(".part")

    def make(self) -> None:
        """Make room for the first byte."""
        self.part.parent.mkdir(parents=True, exist_ok=True)
        self.part.touch()

    @contextmanager
    def alone(self) -> Iterator[BinaryIO]:
        """Its bytes, for whoever has them alone; what was lost begins again.

        Raises:
            Busy: somebody else has them, or has just put them where they belong.
        """
        if not self.part.exists() and not self.final.exists():
            self.make()
        try:
            file = self.part.open("r+b")
        except FileNotFoundError as e:
            raise Busy("this upload is just arriving") from e
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as e:
                raise Busy("another request writes to this upload now") from e
            if not self._leads_to(file):
                raise Busy("this upload is just arriving")
            yield file

    def there(self) -> int:
        """How many bytes are there and count."""
        for place in (self.part, self.final):
            with suppress(OSError):
                size = place.stat().st_size
                return min(size, self._sure_of(size))
        return 0

    def age(self) -> float | None:
        """Seconds since the last byte came; None if there is none on this disk."""
        with suppress(OSError):
            return time.time() - self.part.stat().st_mtime
        return None

    def doubt(self, offset: int) -> None:
        """What is written after this offset does not count until `trust`."""
        with self._sure.open("w") as file:
            file.write(f"{offset}\n")
            file.flush()
            os.fsync(file.fileno())
        sync(self.final.parent)

    @property
    def doubted(self) -> bool:
        """Whether somebody was cut off between `doubt` and `trust`."""
        return self._sure.exists()

    def trust(self) -> None:
        """All that is written counts."""
        self._sure.unlink(missing_ok=True)

    def settle(self, mtime_ns: int) -> None:
        """It is whole: put it where its job looks for it, with the time that the job was told."""
        if not self.final.exists():
            os.utime(self.part, ns=(mtime_ns, mtime_ns))
            self.part.rename(self.final)
            sync(self.final.parent)

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
    old = [path for path in marks if path.parent.name not in keep and _age(path) > seconds]
    for path in old:
        path.unlink(missing_ok=True)
        with suppress(OSError):
            path.parent.rmdir()
    return len(old)


def sync(folder: Path) -> None:
    """A name in it survives a power cut."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _age(path: Path) -> float:
    with suppress(OSError):
        return time.time() - path.stat().st_mtime
    return 0.0
