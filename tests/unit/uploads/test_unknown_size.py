"""An upload of which nobody has said how large it is has the limits of every other."""

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from rushes.domain.errors import NotFound, OverLimit
from rushes.jobs.intake import JobRequest
from rushes.library import Library
from rushes.uploads import limits as promises

FILM = b"\0\0\0\x18ftypmp42" + bytes(9_000)


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with Library(tmp_path / "home", options={"upload_gb": (1, "the test")}) as library:
        yield library


def check_refusal(library: Library, more: bytes, why: str) -> None:
    """What comes after the head of a film is refused, and nothing of it is left."""
    upload = library.uploads.begin("film.mp4", 0, JobRequest(only=("probe",)))
    with library.uploads.writing(upload) as part:
        part.write(FILM)
        assert library.uploads.staging_file(upload).size() == len(FILM)
        with pytest.raises(OverLimit, match=why):
            part.write(more)
    assert library.uploads.get(upload.id).state == "refused"
    assert not any(path.is_file() for path in (library.folder / "uploads").rglob("*"))
    with pytest.raises(NotFound):
        library.jobs.get(upload.job)


def test_it_is_refused_once_it_is_too_large(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(promises, "_GB", 10_000)
    check_refusal(library, bytes(1_000), "larger than 1 GB")


def test_it_is_refused_once_the_disk_is_nearly_full(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    room = library.settings.reserve_mb * 2**20 + len(FILM)
    monkeypatch.setattr(os, "fstatvfs", lambda _file: SimpleNamespace(f_bavail=room, f_frsize=1))
    check_refusal(library, FILM + b"x", "not enough disk space")
