"""Watching buckets: one that cannot be seen is told, once as an error and else when that changes."""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from click.testing import CliRunner

from rushes.bucket.client import connect
from rushes.bucket.location import BucketLocation
from rushes.domain.errors import Refused, StoreMissing, TryAgain
from rushes.home import Home
from rushes.jobs.intake import IntakeResult
from rushes.library import JobRequest, Library
from rushes.library.watching import watch
from rushes.library.watching.event_listener import EventListener
from rushes.library.watching.paths import PATH
from rushes.sources.port import FoundFile, StorageEvent
from rushes.surfaces.cli.main import main
from rushes.uploads.service import Uploads
from rushes.uploads.staging import Upload
from tests.servers_aws import make_bucket

PROBE = JobRequest(only=("probe",))


@pytest.fixture
def home(tmp_path: Path, ministack_s3: BucketLocation) -> Path:
    """A home that reaches the server; its own results are in a folder."""
    place, home = ministack_s3, tmp_path / "home"
    home.mkdir(0o700)
    lines = {"s3_endpoint": place.endpoint, "s3_key": place.key, "s3_secret": place.secret}
    (home / "rushes.toml").write_text("".join(f'{name} = "{value}"\n' for name, value in lines.items()))
    return home


@pytest.mark.parametrize(("blobs", "argument"), [("", "s3://nowhere/films"), ("s3://nowhere/home", "")])
def test_once_ends_with_the_reason_and_what_to_do(home: Path, blobs: str, argument: str) -> None:
    with (home / "rushes.toml").open("a") as file:
        file.write(f'blobs = "{blobs}"\n')
    shown = CliRunner().invoke(main, ["--home", str(home), "watch", *argument.split(), "--once"])
    assert shown.exit_code == StoreMissing.exit_code
    assert "the bucket does not exist" in shown.stderr
    assert "Create it" in shown.stderr


def test_without_once_it_is_told_when_it_changes_and_tried_again(
    home: Path, ministack_s3: BucketLocation, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = replace(ministack_s3, bucket="later")
    monkeypatch.setattr(logging.getLogger("rushes"), "propagate", False)  # else it is heard twice
    logging.getLogger("rushes").addHandler(caplog.handler)

    def made() -> None:
        make_bucket(place.endpoint, place.bucket)
        connect(place).put("a.mp4", b"film")

    deeds: list[Callable[[], None]] = [lambda: None, made, lambda: None]
    pause = lambda _seconds: bool(deeds) and (deeds.pop(0)() or True)  # noqa: E731 - does something, then goes on
    with Library(home) as library:
        told = list(library.watch([place.url], PROBE, pause=pause))
    logging.getLogger("rushes").removeHandler(caplog.handler)
    assert [(type(one.error), one.created) for one in told] == [(StoreMissing, False), (type(None), True)]
    said = [record.message for record in caplog.records]
    assert [("bucket does not exist" in line, "readable again" in line) for line in said] == [
        (True, False),
        (False, True),
    ]


def test_other_places_are_taken_in_before_once_ends(home: Path, tmp_path: Path) -> None:
    (tmp_path / "films").mkdir()
    (tmp_path / "films" / "a.mp4").write_bytes(b"film")
    with Library(home) as library:
        found = library.watch(["s3://nowhere", tmp_path / "films"], PROBE, once=True, pause=lambda _s: True)
        assert next(iter(found)).created
        with pytest.raises(StoreMissing, match="nowhere"):
            list(found)


def test_a_bad_file_is_no_error_of_its_place(home: Path, ministack_s3: BucketLocation) -> None:
    place = replace(ministack_s3, prefix="bad")
    connect(place).put("empty.mp4", b"")
    with Library(home) as library:
        assert list(library.watch([place.url], PROBE, once=True)) == []


def test_the_bucket_is_not_asked_for_every_open_upload_at_every_look(
    home: Path, ministack_s3: BucketLocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (home / "rushes.toml").open("a") as file:
        file.write(f'blobs = "{ministack_s3.url}/straight"\n')
    with Library(home) as library:
        Uploads(library.home).begin("a.mp4", 100, PROBE, direct=True)
        assert library.home.multipart
        asked = Mock(wraps=library.home.multipart.parts)
        monkeypatch.setattr(type(library.home.multipart), "parts", asked)
        looks = iter(range(10))
        list(library.watch((), PROBE, pause=lambda _seconds: next(looks, None) is not None))
        assert asked.call_count == 1


def test_a_home_in_a_bucket_can_be_watched_without_places(home: Path, ministack_s3: BucketLocation) -> None:
    with Library(home) as library, pytest.raises(Refused, match="no folder or bucket to watch"):
        list(library.watch((), PROBE, once=True))
    with (home / "rushes.toml").open("a") as file:
        file.write(f'blobs = "{ministack_s3.url}/awaited"\n')
    with Library(home) as library:
        promised = library.expect_upload("a.mp4", PROBE)
        connect(ministack_s3).put(f"awaited/{promised.key}", b"film")
        assert list(library.watch((), PROBE, once=True)) == []
        assert [task.state for task in library.home.ledger.tasks(promised.job.id).rows] == ["ready"]


def test_a_worker_begins_before_all_is_taken_in_and_ends_before_it_too(
    home: Path, ministack_s3: BucketLocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A prefix may have thousands of films, and a machine that is taken away two minutes."""
    place = replace(ministack_s3, prefix="many")
    for n in range(3):
        connect(place).put(f"{n}.mp4", b"film")
    ends, began, taken = threading.Event(), threading.Event(), list[str]()

    class Over(threading.Event):
        def set(self) -> None:
            super().set()
            ends.set()

    def slowly(_home: Home, found: Sequence[FoundFile], _wanted: JobRequest) -> Iterator[IntakeResult]:
        for one in found:
            began.set()
            assert ends.wait(60)
            taken.append(one.path)
            yield IntakeResult(one.path)

    monkeypatch.setattr(watch, "threading", SimpleNamespace(Event=Over, Thread=threading.Thread))
    monkeypatch.setattr(watch, "take_in", slowly)
    with Library(home) as library, library.watching(place.url, first=False):
        assert began.wait(60)
        assert taken == []
    assert len(taken) == 1


def test_a_watched_bucket_is_looked_at_after_an_error(
    home: Path, ministack_s3: BucketLocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker would go on without new films, and nobody would see why."""
    errors, again = [Refused("no such model"), OverflowError("what?")], threading.Event()

    def looking(*_args: object, **_named: object) -> Iterator[IntakeResult]:
        if errors:
            raise errors.pop()
        again.set()
        yield IntakeResult("film")

    monkeypatch.setattr(watch, "PREFIX_SECONDS", 0.01)
    monkeypatch.setattr(watch, "watch", looking)
    with Library(home) as library, library.watching(ministack_s3.url, first=False):
        assert again.wait(20)


def test_an_event_of_a_place_that_asks_for_the_impossible_reaches_the_others(
    home: Path, ministack_s3: BucketLocation
) -> None:
    place = replace(ministack_s3, bucket="told")
    make_bucket(place.endpoint, place.bucket)
    connect(place).put("films/a.mp4", b"film")
    with Library(home) as library:
        library.paths.add("s3://told/films", PROBE)
        for name in "ab":  # in the order of their ids, they come before it
            wanted = {"options": {"transcribe": {"model_name": "medium"}}}
            library.home.records.put(PATH, library.home.owner, f"path_{name}", {"path": "s3://told/films", **wanted})
        keys = ("films//odd.mp4", "films/\n.mp4", "films/a.mp4")
        EventListener(library.home).deal(StorageEvent("told", key) for key in keys)
        assert [job.name for job in library.jobs.page().rows] == ["a.mp4"]


def test_an_upload_that_is_deleted_while_it_is_looked_at_is_awaited_again(
    home: Path, ministack_s3: BucketLocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (home / "rushes.toml").open("a") as file:
        file.write(f'blobs = "{ministack_s3.url}/deleted"\n')
    looks, real = list[str](), Uploads._version

    def version(uploads: Uploads, upload: Upload) -> tuple[str, int]:
        looks.append(upload.id)
        if len(looks) == 3:
            uploads.home.blobs.delete(upload.key)
        return real(uploads, upload)

    with Library(home) as library:
        upload = library.uploads.begin("a.mp4", 4, PROBE, direct=True, whole=True)
        assert upload.put
        connect(ministack_s3.below("deleted")).put(upload.key, b"film")
        monkeypatch.setattr(Uploads, "_version", version)
        with pytest.raises(TryAgain):
            library.uploads.finish(upload)
        assert library.uploads.get(upload.id).state == "open"
