"""One caretaker of a home at a time: gc must not clear what a backup is about to copy."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rushes.domain.errors import Refused
from rushes.files import locked


@contextmanager
def maintenance_lock(home: Path) -> Iterator[None]:
    """Hold the home's lock; it is let go with the process.

    Raises:
        Refused: somebody else clears up or makes a backup now.
    """
    with locked(home / ".care.lock", 0.0) as mine:
        if not mine:
            raise Refused("gc or a backup is already running in this home", "Wait until it is finished.")
        yield
