"""Copies of far files on this machine: those that were used long ago go first."""

import os
import time
from pathlib import Path
from typing import BinaryIO

import pytest

from rushes.blobs.local_cache import LocalCache


@pytest.fixture
def cache(tmp_path: Path) -> LocalCache:
    return LocalCache(tmp_path / "copies", most=10)


def copy(cache: LocalCache, name: str, size: int = 4) -> Path:
    def fill(file: BinaryIO) -> None:
        file.write(b"x" * size)

    return cache.copy(name, size, fill)


def age(path: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


def test_a_copy_that_is_asked_for_again_counts_as_used(cache: LocalCache) -> None:
    first, second = copy(cache, "first"), copy(cache, "second")
    age(first, 7200)
    age(second, 3600)
    copy(cache, "first")
    age(first, 1800)
    copy(cache, "third")
    assert sorted(path.name for path in cache.folder.glob("[a-z]*")) == ["first", "third"]
    age(first, 7200)
    copy(cache, "first")
    assert time.time() - first.stat().st_mtime < 600


def test_a_copy_that_another_process_removes_meanwhile_is_passed_over(cache: LocalCache) -> None:
    (cache.folder / "gone").symlink_to("nowhere")
    assert copy(cache, "first").read_bytes() == b"xxxx"
