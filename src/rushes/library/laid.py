"""Laying a finished file where somebody wants it: all of it or nothing."""

import errno
import os
import shutil
from pathlib import Path

from rushes.domain.errors import NoRoom
from rushes.jobs.submit import display_name
from rushes.telemetry import effect


def lay(source: Path, target: Path) -> None:
    """Copy a file there in one step; half a copy is taken away, or written over by the next one if we are killed.

    Raises:
        NoRoom: it does not fit.
    """
    half = target.with_name(f".{display_name(target.name)}.part")
    try:
        with source.open("rb") as given, half.open("wb") as out:
            shutil.copyfileobj(given, out)
            out.flush()
            os.fsync(out.fileno())  # else a power cut may leave the name with nothing behind it
        with effect("publish"):
            half.replace(target)
    except OSError as e:
        if e.errno == errno.ENOSPC:
            raise NoRoom(f"there is no room for {target.name}") from e
        raise
    finally:
        half.unlink(missing_ok=True)
