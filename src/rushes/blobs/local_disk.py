"""The local disk of a blob store: its free space, and unfinished files."""

import os

from rushes.blobs.port import AttemptBlobs, Blobs
from rushes.domain.errors import StoreAway
from rushes.files import remove_abandoned

TEMP = ".temp"  # the folder of unfinished files in the store's folder


def free_bytes(blobs: AttemptBlobs) -> int | None:
    """Free bytes of the disk that the store writes on, None where there is none."""
    if blobs.folder is None:
        return None
    try:
        disk = os.statvfs(blobs.folder)
    except OSError as error:
        raise StoreAway(f"measuring free space: {error.strerror or error}") from error
    return disk.f_bavail * disk.f_frsize


def remove_unfinished(blobs: Blobs) -> int:
    """Delete unfinished files of processes that are gone (a live one holds a lock on its own); answers how many."""
    temp = blobs.folder / TEMP if blobs.folder else None
    if temp is None or not temp.is_dir():
        return 0
    try:
        return sum(remove_abandoned(path) for path in temp.iterdir())
    except OSError as error:
        raise StoreAway(f"removing unfinished files: {error.strerror or error}") from error
