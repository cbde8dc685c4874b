"""A bounded folder of copies on this machine, shared by its processes: the least recently used go first."""

import contextlib
import os
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from rushes.blobs.local_disk import TEMP
from rushes.domain.errors import NoRoom
from rushes.files import DISK_FULL, PRIVATE_FILE, create_locked, make_private, remove_abandoned, sync

_IN_USE = 60.0  # seconds since it was asked for: whoever asked may not have opened it yet


class LocalCache:
    """Copies by name; each is complete and synced before it has its name, so that one found is one to trust."""

    def __init__(self, folder: Path, most: int) -> None:
        """`most` is how many bytes may lie here, besides what was asked for within a minute."""
        make_private(folder)
        make_private(folder / TEMP)
        self.folder = folder
        self._most = most
        for left in (folder / TEMP).iterdir():
            remove_abandoned(left)

    def copy(self, name: str, size: int, fill: Callable[[BinaryIO], None]) -> Path:
        """A file of this name and size, filled if it is not there; nothing is left of one that cannot be.

        Raises:
            NoRoom: the disk is full.
        """
        path = self.folder / name
        with contextlib.suppress(FileNotFoundError):
            os.utime(path)
            if path.stat().st_size == size:
                return path
        self._make_room(size)
        with self._temp() as (temp, file):
            fill(file)
            sync(file)
            temp.rename(path)
        return path

    def drop(self, name: str) -> None:
        """Forget a copy."""
        (self.folder / name).unlink(missing_ok=True)

    def _make_room(self, size: int) -> None:
        found = sorted((e.stat().st_mtime, e.stat().st_size, e.path) for e in _entries(self.folder))
        over = sum(entry[1] for entry in found) + size - self._most
        recent = time.time() - _IN_USE
        for used, freed, path in found:
            if over <= 0 or used > recent:
                return
            Path(path).unlink(missing_ok=True)
            over -= freed

    @contextlib.contextmanager
    def _temp(self) -> Iterator[tuple[Path, BinaryIO]]:
        path = self.folder / TEMP / secrets.token_hex(8)
        while (file := create_locked(path, PRIVATE_FILE)) is None:
            pass  # another process took it for abandoned before it was locked: once is rare
        try:
            with os.fdopen(file, "wb") as out:
                yield path, out
        except OSError as e:
            if e.errno in DISK_FULL:
                raise NoRoom("the disk for cached copies of remote files is full") from e
            raise
        finally:
            path.unlink(missing_ok=True)


def _entries(folder: Path) -> list["os.DirEntry[str]"]:
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):  # another process made room as well
                entry.stat()
                found += [entry] if not entry.name.startswith(".") else []
    return found
