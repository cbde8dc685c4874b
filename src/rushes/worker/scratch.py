"""Scratch folders: one per attempt, locked while its process lives, so that leftovers are recognised."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from rushes.files import make_private, try_lock, wait_for_lock


@contextlib.contextmanager
def scratch(root: Path) -> Iterator[Path]:
    """A new folder, gone when the attempt is over."""
    make_private(root)
    folder, lock = _locked(root)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def clear(root: Path) -> int:
    """Remove the folders whose process is gone; answers how many."""
    gone = 0
    for folder in root.glob("[0-9]*-*") if root.is_dir() else ():
        with contextlib.suppress(OSError):  # it is in use, or another process clears it too
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                if try_lock(lock):
                    shutil.rmtree(folder, ignore_errors=True)
                    gone += 1
            finally:
                os.close(lock)
    return gone


def _locked(root: Path) -> tuple[Path, int]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=root))
        with contextlib.suppress(FileNotFoundError):  # cleared between the two calls
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            wait_for_lock(lock)
            if folder.is_dir():
                return folder, lock
            os.close(lock)
