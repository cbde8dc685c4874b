"""Doing the work here and now, with films that are none: what is heard on the way, and how it ended."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_worker import films

from rushes.blobs.folder import FolderBlobs
from rushes.domain.errors import NoRoom
from rushes.library import Library, Wish
from rushes.worker.happenings import Room

PROBE = Wish(only=("probe",))


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with Library(tmp_path / "home") as library:
        yield library


def test_a_run_that_waits_for_room_says_so_and_goes_on_by_itself(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[Room] = []
    monkeypatch.setattr(FolderBlobs, "room", lambda _self: 1 << 50 if heard else 7)
    ran = library.run(films(tmp_path, 1), PROBE, on_room=heard.append)
    assert heard[0] == Room(enough=False, free=7, kept=library.house.settings.reserve_mb * 2**20)
    assert heard[-1].enough
    assert ran.exit_code == 7, "it is no film"


def test_where_there_is_no_room_nothing_is_tried_out(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FolderBlobs, "room", lambda _self: 7)
    with pytest.raises(NoRoom):
        library.estimate(films(tmp_path, 1), PROBE)
