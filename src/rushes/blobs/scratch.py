"""A bounded folder of copies on this machine, shared by its processes: what was used longest ago goes first."""

import contextlib
import errno
import fcntl
import os
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from rushes.domain.errors import NoRoom

_TEMP = ".temp-"
_IN_USE = 60.0  # seconds since it was asked for: whoever asked may not have opened it yet


class Scratch:
    """Copies by name; each is complete and synced before it has its name, so that one found is one to trust."""

    def __init__(self, folder: Path, most: int) -> None:
        """`most` is how many bytes may lie here, besides what was asked for within a minute."""
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._most = most
        self.tidy()

    def copy(self, name: str, size: int, fill: Callable[[BinaryIO], None]) -> Path:
        """A file of this name and size, filled if it is not there; nothing is left of one that cannot be.

        Raises:
            NoRoom: the disk is full.
        """
        path = self._folder / name
        with contextlib.suppress(FileNotFoundError):
            os.utime(path)
            if path.stat().st_size == size:
                return path
        self._make_room(size)
        with self._temp() as file:
            fill(file)
            file.flush()
            os.fsync(file.fileno())
            Path(file.name).rename(path)
        return path

    def drop(self, name: str) -> None:
        """Forget a copy."""
        (self._folder / name).unlink(missing_ok=True)

    def room(self) -> int:
        """Free bytes of the disk."""
        disk = os.statvfs(self._folder)
        return disk.f_bavail * disk.f_frsize

    def tidy(self) -> int:
        """Delete what processes that are gone did not finish (a live one holds a lock on its own); how many."""
        return sum(_abandoned(path) for path in self._folder.glob(f"{_TEMP}*"))

    def _make_room(self, size: int) -> None:
        found = sorted((e.stat().st_mtime, e.stat().st_size, e.path) for e in _entries(self._folder))
        over = sum(entry[1] for entry in found) + size - self._most
        recent = time.time() - _IN_USE
        for used, freed, path in found:
            if over <= 0 or used > recent:
                return
            Path(path).unlink(missing_ok=True)
            over -= freed

    @contextlib.contextmanager
    def _temp(self) -> Iterator[BinaryIO]:
        path = self._folder / f"{_TEMP}{secrets.token_hex(8)}"
        with contextlib.ExitStack() as held:
            held.callback(path.unlink, missing_ok=True)
            file = held.enter_context(path.open("xb"))
            fcntl.flock(file, fcntl.LOCK_EX)
            try:
                yield file
            except OSError as e:
                if e.errno in {errno.ENOSPC, errno.EDQUOT}:
                    raise NoRoom("the disk for cached copies of remote files is full") from e
                raise


def _entries(folder: Path) -> list["os.DirEntry[str]"]:
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):  # another process made room as well
                entry.stat()
                found += [entry] if not entry.name.startswith(".") else []
    return found


def _abandoned(path: Path) -> bool:
    with contextlib.suppress(FileNotFoundError, BlockingIOError), path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()
        return True
    return False
