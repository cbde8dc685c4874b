"""What was answered about an upload survives a power cut: bytes and names are synced before anybody is told of them."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from rushes.jobs.intake import JobRequest
from rushes.ledger.port import Arrival
from rushes.library import Library
from rushes.uploads.service import Uploads
from tests.acceptance.conftest import draw


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was synced and renamed, in order, by the names of the files."""
    found: list[str] = []
    sync, rename = os.fsync, Path.rename

    def synced(file: int | IO[bytes]) -> None:
        sync(file)
        number = file if isinstance(file, int) else file.fileno()
        found.append(f"sync {Path('/proc/self/fd', str(number)).readlink().name}")

    def renamed(self: Path, target: Path) -> Path:
        found.append(f"{self.name} becomes {target.name}")
        return rename(self, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "rename", renamed)
    return found


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, events: list[str]) -> Iterator[Library]:
    with Library(tmp_path / "home") as library:
        ledger = library.home.ledger
        arrived = ledger.arrived

        def told(key: str, etag: str) -> Arrival:
            events.append("the ledger is told")
            return arrived(key, etag)

        monkeypatch.setattr(ledger, "arrived", told)
        yield library


def test_every_byte_and_name_of_an_upload_is_on_disk_before_it_is_told(
    library: Library, tmp_path: Path, events: list[str]
) -> None:
    film = draw(tmp_path / "film.mp4", 1).read_bytes()
    uploads: Uploads = library.uploads
    upload = uploads.begin("film.mp4", len(film), JobRequest(only=("probe",)))
    assert events[-2:] == [f"sync {upload.id}", "sync uploads"], "the names of file and folder"
    for data in (film[:1000], film[1000:]):
        events.clear()
        with uploads.writing(upload) as part:
            part.write(data)
        assert events[-1] == "sync source.part", "before the answer says where it stands"
    events.clear()
    uploads.finish(upload)
    last = [one for one in events if one.startswith(("source", "the ledger", f"sync {upload.id}"))]
    assert last == ["source.part becomes source.mp4", f"sync {upload.id}", "the ledger is told"]


def test_what_does_not_count_yet_is_marked_on_disk_before_it_is_written(library: Library, events: list[str]) -> None:
    upload = library.uploads.begin("film.mp4", 5000, JobRequest(only=("probe",)))
    with library.uploads.writing(upload) as part:
        events.clear()
        part.mark_unverified()
        assert events == ["sync source.sure", f"sync {upload.id}"]
        part.write(b"x" * 10)
        events.clear()
        part.mark_verified()
        assert events[0] == "sync source.part", "first the bytes, then what says that they count"
