"""Files of a blob folder: complete and synced before they get a name, and named at most once."""

import contextlib
import hashlib
import io
import os
import secrets
import stat
import time
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from rushes.files import PRIVATE_BLOB, create_locked, link_once, write_all

_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class Temp:
    """A complete, synced file that nobody sees yet."""

    folder: int
    name: str
    sha256: str = ""
    size: int = 0


def reader(source: Path | bytes) -> BinaryIO:
    """What is to be stored, as a file."""
    return io.BytesIO(source) if isinstance(source, bytes) else source.open("rb")


def new_temp(temps: int) -> tuple[str, int]:
    """A new file of this process, which a lock says is alive."""
    while True:
        name = secrets.token_hex(12)
        file = create_locked(name, PRIVATE_BLOB, temps)  # read only: published names share its bytes
        if file is not None:
            return name, file


def copied(source: BinaryIO, file: int) -> tuple[str, int]:
    """Copy all of it; its hash and size."""
    digest, size = hashlib.sha256(), 0
    while piece := source.read(_PIECE):
        digest.update(piece)
        size += len(piece)
        write_all(file, piece)
    return digest.hexdigest(), size


def sha256_of(file: BinaryIO) -> str:
    """The hash of all of it."""
    digest = hashlib.sha256()
    while piece := file.read(_PIECE):
        digest.update(piece)
    return digest.hexdigest()


def placed(temp: Temp, folder: int) -> bool:
    """Give a blob its name, or find it there, and make it young, so that gc leaves it alone; not if gc was faster."""
    if not link_once(temp.name, temp.sha256, temp.folder, folder):
        there = look(folder, temp.sha256)
        if there is None or there.st_size != temp.size:  # a link, or cut short
            os.rename(temp.name, temp.sha256, src_dir_fd=temp.folder, dst_dir_fd=folder)
    with contextlib.suppress(FileNotFoundError):
        os.utime(temp.sha256, dir_fd=folder, follow_symlinks=False)
        return True
    return False


def put_back(taken: Temp, folder: int, name: str) -> None:
    """Give a file that was taken away its name again, unless there is a new one by now."""
    link_once(taken.name, name, taken.folder, folder)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(taken.name, dir_fd=taken.folder)


def age_of(found: os.stat_result) -> float:
    """Seconds since a file was stored."""
    return max(0.0, time.time() - found.st_mtime)


def look(folder: int, name: str) -> os.stat_result | None:
    """What there is of a file, None if it is none."""
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return found if stat.S_ISREG(found.st_mode) else None
