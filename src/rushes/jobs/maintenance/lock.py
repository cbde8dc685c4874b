"""One caretaker of a home at a time: gc must not clear what a backup is about to copy."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rushes.domain.errors import Refused


@contextmanager
def alone(home: Path) -> Iterator[None]:
    """Hold the home's lock; it is let go with the process.

    Raises:
        Refused: somebody else clears up or makes a backup now.
    """
    with (home / ".care.lock").open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as e:
            raise Refused("gc or a backup is already running in this home", "Wait until it is finished.") from e
        yield
