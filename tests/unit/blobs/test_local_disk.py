"""The disk that a blob store writes on: how much is free, and what killed processes left on it."""

from pathlib import Path

from rushes.blobs.folder import FolderBlobs
from rushes.blobs.local_disk import TEMP, free_bytes, remove_unfinished
from tests.memory_blobs import MemoryBlobs


def test_a_store_without_a_disk_has_no_free_space_and_nothing_unfinished() -> None:
    assert free_bytes(MemoryBlobs()) is None
    assert remove_unfinished(MemoryBlobs()) == 0


def test_what_a_process_that_is_gone_left_unfinished_goes_and_is_counted(tmp_path: Path) -> None:
    blobs = FolderBlobs(tmp_path)
    assert (free_bytes(blobs) or 0) > 0
    for left in (tmp_path / TEMP).glob("*"):
        left.unlink()
    assert remove_unfinished(blobs) == 0
    (tmp_path / TEMP).mkdir(exist_ok=True)
    for name in ("a", "b"):
        (tmp_path / TEMP / name).write_bytes(b"half of it")
    assert remove_unfinished(blobs) == 2
    assert not list((tmp_path / TEMP).iterdir())
