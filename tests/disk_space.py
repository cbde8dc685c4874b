"""A disk that says how much room it has as a test wants."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from rushes.blobs import local_disk


def report_free_bytes(patch: pytest.MonkeyPatch, free: Callable[[], int]) -> None:
    """From now on blob stores of this process report so many free bytes."""
    disk = SimpleNamespace(statvfs=lambda _folder: SimpleNamespace(f_bavail=free(), f_frsize=1))
    patch.setattr(local_disk, "os", disk)
