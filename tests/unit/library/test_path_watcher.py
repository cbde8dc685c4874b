"""The remembered places of a server, look after look."""

import threading
from contextlib import suppress
from pathlib import Path

import pytest

from rushes.domain.errors import Refused
from rushes.home import Home
from rushes.jobs.intake import JobRequest
from rushes.library.watching import path_watcher
from rushes.library.watching.path_watcher import PathWatcher
from rushes.library.watching.paths import PATH, Paths
from rushes.library.watching.watched_places import WATCHED, announce_places, watched_places
from rushes.wiring import open_home
from tests.unit.media_files import plain


def test_a_place_whose_model_is_gone_hides_no_other(tmp_path: Path) -> None:
    home, good = open_home(tmp_path / "home"), tmp_path / "good"
    good.mkdir()
    plain(good / "film.mp4", 1)
    Paths(home).add(str(good), JobRequest())
    for name in "abcdef":  # in the order of their ids, some come before it
        place = {"path": str(tmp_path / name), "options": {"transcribe": {"model_name": "medium"}}}
        home.records.put(PATH, home.owner, f"path_{name}", place)
    watcher, refused = PathWatcher(home), 0
    for _ in range(3):  # a file is taken once it has stood still
        with suppress(Refused):
            watcher.look()
            refused -= 1
        refused += 1
    assert refused == 3, "it is told"
    assert [job.name for job in home.ledger.jobs(home.owner).rows] == ["film.mp4"]


def test_an_address_that_names_no_bucket_is_refused_and_one_that_is_remembered_hides_no_other(tmp_path: Path) -> None:
    home = open_home(tmp_path / "home")
    with pytest.raises(Refused, match="not a bucket"):
        Paths(home).add("s3://")
    plain(tmp_path / "film.mp4", 1)
    for name, path in (("a", "s3://"), ("b", str(tmp_path / "film.mp4")), ("c", "s3://")):
        home.records.put(PATH, home.owner, f"path_{name}", {"path": path})
    watcher = PathWatcher(home)
    for _ in range(3):
        with pytest.raises(Refused, match="not a bucket"):
            watcher.look()
    assert [job.name for job in home.ledger.jobs(home.owner).rows] == ["film.mp4"]


def test_the_places_are_looked_at_after_an_error_that_nobody_expected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, again = [OverflowError("what?")], threading.Event()

    def look(_watcher: PathWatcher) -> None:
        if looks:
            raise looks.pop()
        again.set()

    monkeypatch.setattr(path_watcher, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(PathWatcher, "look", look)
    watcher = PathWatcher(open_home(tmp_path / "home"))
    watcher.start()
    try:
        assert again.wait(20)
    finally:
        watcher.stop()


def test_a_place_that_is_announced_again_is_not_forgotten_for_having_been_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = open_home(tmp_path / "home")
    announce_places(home, ["s3://bucket/films"], JobRequest(), -1.0)
    late = [*home.all_records(WATCHED)]
    announce_places(home, ["s3://bucket/films"], JobRequest(), 600.0)
    with monkeypatch.context() as patch:
        patch.setattr(Home, "all_records", lambda _home, kind: late if kind == WATCHED else [])
        assert list(watched_places(home)) == []
    assert [place for place, _ in watched_places(home)] == ["s3://bucket/films"]
