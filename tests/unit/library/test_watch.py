"""Watching a place: what is new is given once, and only when it has stopped growing."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from rushes.domain.errors import NotFound, Refused, StoreAway
from rushes.library import JobRequest, Library
from rushes.sources.folder import Folder
from rushes.sources.watch import WatchedSource

PROBE = JobRequest(only=("probe",))


def names(watched: WatchedSource) -> list[str]:
    return [found.name for found in watched.new()]


def test_a_file_is_taken_when_two_looks_agree_and_only_once(tmp_path: Path) -> None:
    watched = WatchedSource(Folder(tmp_path))
    assert names(watched) == []
    film = tmp_path / "a.mp4"
    film.write_bytes(b"be")
    assert names(watched) == []
    film.write_bytes(b"begin")
    assert names(watched) == []
    assert names(watched) == ["a.mp4"]
    assert names(watched) == []


def test_a_file_that_was_written_again_is_new(tmp_path: Path) -> None:
    film = tmp_path / "a.mp4"
    film.write_bytes(b"one")
    watched = WatchedSource(Folder(tmp_path))
    assert [names(watched), names(watched)] == [[], ["a.mp4"]]
    film.write_bytes(b"another")
    assert [names(watched), names(watched)] == [[], ["a.mp4"]]


def test_the_same_size_at_another_time_is_still_growing(tmp_path: Path) -> None:
    film = tmp_path / "a.mp4"
    film.write_bytes(b"copied in place")
    watched = WatchedSource(Folder(tmp_path))
    names(watched)
    os.utime(film, ns=(1, 1))
    assert names(watched) == []
    assert names(watched) == ["a.mp4"]


@pytest.mark.parametrize("name", ["a.mp4.part", "a.mp4.crdownload", "a.tmp", ".a.mp4", ".a.mp4.Xy12", "empty.mp4"])
def test_partial_and_hidden_files_are_left_alone(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"" if name == "empty.mp4" else b"half")
    watched = WatchedSource(Folder(tmp_path))
    assert [names(watched), names(watched)] == [[], []]


@dataclass
class Pauses:
    """Does something in each pause; after the last it is time to stop."""

    deeds: list[Callable[[], object]]
    seconds: list[float] = field(default_factory=list)

    def __call__(self, seconds: float) -> bool:
        self.seconds.append(seconds)
        if not self.deeds:
            return False
        self.deeds.pop(0)()
        return True


def test_a_library_takes_in_what_appears_and_knows_a_file_that_was_moved(tmp_path: Path) -> None:
    folder = tmp_path / "films"
    folder.mkdir()
    film, moved = folder / "a.mp4", folder / "moved" / "b.mp4"
    moved.parent.mkdir()
    pauses = Pauses([lambda: film.write_bytes(b"film"), lambda: None, lambda: film.rename(moved), lambda: None])
    with Library(tmp_path / "home") as library:
        added = list(library.watch([folder], PROBE, pause=pauses))
        assert [(Path(a.path).name, a.created) for a in added] == [("a.mp4", True), ("b.mp4", True)]
        assert [j.name for j in library.jobs.page().rows] == ["b.mp4", "a.mp4"]
        again = list(library.watch([folder], PROBE, once=True, pause=Pauses([lambda: None])))
        assert [(Path(a.path).name, a.created) for a in again] == [("b.mp4", False)]


def state(library: Library, name: str) -> str:
    (job,) = [j for j in library.jobs.page().rows if j.name == name]
    return job.state


def test_the_job_of_a_file_that_was_moved_before_it_was_read_ends(tmp_path: Path) -> None:
    folder = tmp_path / "films"
    (folder / "sub").mkdir(parents=True)
    film, moved = folder / "a.mp4", folder / "sub" / "moved.mp4"
    film.write_bytes(b"film")
    with Library(tmp_path / "home") as library:
        states: list[tuple[str, ...]] = []

        def note() -> None:
            states.append((state(library, "a.mp4"), state(library, "moved.mp4")))

        pauses = Pauses(
            [
                lambda: None,
                lambda: film.rename(moved),
                note,
                lambda: moved.rename(film),
                note,
            ]
        )
        list(library.watch([folder], PROBE, pause=pauses))
    assert states == [("cancelled", "created"), ("created", "cancelled")]


def test_a_job_that_looked_for_its_moved_file_in_vain_is_no_dead_letter(tmp_path: Path) -> None:
    folder = tmp_path / "films"
    folder.mkdir()
    film, moved = folder / "a.mp4", folder / "moved.mp4"
    film.write_bytes(b"film")

    def worked() -> None:
        film.rename(moved)
        library.work(slots=1, until_idle=True)
        assert [group.kind for group in library.jobs.failed.groups()] == ["SourceMissing"]

    with Library(tmp_path / "home") as library:
        list(library.watch([folder], PROBE, pause=Pauses([lambda: None, worked])))
        assert library.jobs.failed.groups() == ()
        assert state(library, "moved.mp4") == "created"


@pytest.mark.parametrize("order", [("old", "new"), ("new", "old")])
def test_a_move_from_one_place_to_another_is_a_move(tmp_path: Path, order: tuple[str, str]) -> None:
    for name in order:
        (tmp_path / name).mkdir()
    film, moved = tmp_path / "old" / "a.mp4", tmp_path / "new" / "moved.mp4"
    film.write_bytes(b"film")
    with Library(tmp_path / "home") as library:
        pauses = Pauses([lambda: None, lambda: film.rename(moved), lambda: None])
        list(library.watch([tmp_path / name for name in order], PROBE, pause=pauses))
        assert (state(library, "a.mp4"), state(library, "moved.mp4")) == ("cancelled", "created")


@pytest.mark.parametrize("worked", [False, True])
def test_a_move_while_nobody_watched_is_a_move(tmp_path: Path, worked: bool) -> None:
    folder = tmp_path / "films"
    folder.mkdir()
    film, moved = folder / "a.mp4", folder / "moved.mp4"
    film.write_bytes(b"film")
    with Library(tmp_path / "home") as library:
        list(library.watch([folder], PROBE, once=True, pause=Pauses([lambda: None])))
        film.rename(moved)
        if worked:
            library.work(slots=1, until_idle=True)
        list(library.watch([folder], PROBE, once=True, pause=Pauses([lambda: None])))
        assert state(library, "a.mp4") == ("failed" if worked else "cancelled")
        assert state(library, "moved.mp4") == "created"
        assert library.jobs.failed.groups() == ()


def test_what_else_was_asked_of_a_moved_file_is_not_done_by_its_new_job(tmp_path: Path) -> None:
    folder = tmp_path / "films"
    folder.mkdir()
    film = folder / "a.mp4"
    film.write_bytes(b"film")
    with Library(tmp_path / "home") as library:
        list(library.watch([folder], JobRequest(only=("probe",), chunk="30"), once=True, pause=Pauses([lambda: None])))
        film.rename(folder / "moved.mp4")
        list(library.watch([folder], PROBE, once=True, pause=Pauses([lambda: None])))
        assert (state(library, "a.mp4"), state(library, "moved.mp4")) == ("created", "created")


def test_a_ledger_that_is_away_while_a_file_is_moved_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "films"
    folder.mkdir()
    film, moved = folder / "a.mp4", folder / "moved.mp4"
    film.write_bytes(b"film")
    with Library(tmp_path / "home") as library:
        answers, control = [StoreAway("the ledger is away")], library.home.ledger.control

        def away(*asked: Any) -> Any:
            if answers:
                raise answers.pop()
            return control(*asked)

        monkeypatch.setattr(library.home.ledger, "control", away)
        list(library.watch([folder], PROBE, pause=Pauses([lambda: None, lambda: film.rename(moved), lambda: None])))
        assert not answers
        assert (state(library, "a.mp4"), state(library, "moved.mp4")) == ("cancelled", "created")


def test_a_link_to_a_file_that_stays_is_no_move(tmp_path: Path) -> None:
    folder = tmp_path / "films"
    folder.mkdir()
    film = folder / "a.mp4"
    film.write_bytes(b"film")
    with Library(tmp_path / "home") as library:
        pauses = Pauses([lambda: None, lambda: (folder / "b.mp4").hardlink_to(film), lambda: None])
        list(library.watch([folder], PROBE, pause=pauses))
        assert (state(library, "a.mp4"), state(library, "b.mp4")) == ("created", "created")


def test_once_takes_what_is_there_and_stops_and_leaves_what_grows(tmp_path: Path) -> None:
    folder = tmp_path / "films"
    folder.mkdir()
    (folder / "a.mp4").write_bytes(b"whole")
    growing = folder / "b.mp4"
    growing.write_bytes(b"gro")
    with Library(tmp_path / "home") as library:
        pauses = Pauses([lambda: growing.write_bytes(b"growing")])
        assert [Path(a.path).name for a in library.watch([folder], PROBE, once=True, pause=pauses)] == ["a.mp4"]
        assert len(pauses.seconds) == 1


def test_places_come_from_the_settings_and_a_place_that_is_not_there_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "films").mkdir()
    (tmp_path / "films" / "a.mp4").write_bytes(b"film")
    monkeypatch.setenv("RUSHES_SOURCES", str(tmp_path / "films"))
    with Library(tmp_path / "home") as library:
        assert len(list(library.watch((), PROBE, once=True, pause=lambda _s: True))) == 1
        with pytest.raises(NotFound, match="nowhere"):
            list(library.watch([tmp_path / "nowhere"]))
    monkeypatch.delenv("RUSHES_SOURCES")
    with Library(tmp_path / "home") as library, pytest.raises(Refused, match="no folder or bucket to watch"):
        list(library.watch())
