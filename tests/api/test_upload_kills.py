"""Uploads and kills: whatever is cut short, the bytes are those that were promised and nothing is left behind."""

import asyncio
import base64
import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from rushes.domain.errors import RushesError
from rushes.domain.task import TaskState
from rushes.ledger.sqlite import SqliteLedger
from rushes.library import JobRequest, Library
from rushes.uploads import expiry
from rushes.uploads.expected import UploadJob
from rushes.uploads.service import Uploads
from rushes.uploads.staging import StagingFile, Upload, UploadBusy
from rushes.uploads.writer import UploadWriter
from tests.api.kit import Serving
from tests.api.test_uploads import begin, offset, probe_state, send

FILM = b"\0\0\0\x18ftypmp42" + bytes(range(256)) * 100
OTHER = FILM[:100] + bytes(len(FILM) - 100)


class Killed(BaseException):
    """Nothing of the process is left."""


@pytest.fixture
def uploads(home: Path) -> Iterator[Uploads]:
    with Library(home) as library:
        yield Uploads(library.home)


def dying(monkeypatch: pytest.MonkeyPatch, where: type, name: str) -> None:
    def die(*_args: object) -> None:
        raise Killed

    monkeypatch.setattr(where, name, die)


def give_up(uploads: Uploads, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the next process does, when nobody has gone on for a week."""
    monkeypatch.undo()
    monkeypatch.setattr(expiry, "EXPIRE_SECONDS", -1.0)
    monkeypatch.setattr(expiry, "LOST_SECONDS", -1.0)
    expiry.expire(Uploads(uploads.home))
    assert [p for p in (uploads.home.folder / "uploads").rglob("*") if p.is_file()] == []


def test_nobody_writes_while_a_film_is_put_in_its_place(server: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    settle, answers = StagingFile.move_to_final, list[int]()

    def second(self: StagingFile, mtime_ns: int) -> None:
        if not answers:
            answers.append(0)
            answers.append(httpx.put(f"{server.url}{place}", content=OTHER, timeout=60).status_code)
            answers.append(httpx.head(f"{server.url}{place}", timeout=60).status_code)
        settle(self, mtime_ns)

    monkeypatch.setattr(StagingFile, "move_to_final", second)
    place, _ = begin(server, FILM, sha256=hashlib.sha256(FILM).hexdigest())
    assert server.http.put(place, content=FILM).status_code == 204
    assert answers == [0, 423, 200]
    (film,) = (server.library.home.folder / "uploads").rglob("source.mp4")
    assert film.read_bytes() == FILM
    assert server.get(place)["state"] == "arrived"


def test_a_lock_on_a_file_that_has_gone_to_its_place_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    film = StagingFile(tmp_path / "up_1" / "source.mp4")
    film.make()
    flock = fcntl.flock

    def late(*args: Any) -> None:
        film.move_to_final(0)
        flock(*args)

    monkeypatch.setattr(fcntl, "flock", late)
    with pytest.raises(UploadBusy), film.lock():
        pass


def test_an_upload_given_up_while_it_arrives_is_given_up(uploads: Uploads, monkeypatch: pytest.MonkeyPatch) -> None:
    going = uploads.begin("a.mp4", len(FILM), JobRequest())
    settle = StagingFile.move_to_final

    def dropped(self: StagingFile, mtime_ns: int) -> None:
        settle(self, mtime_ns)
        uploads.drop(uploads.get(going.id))

    monkeypatch.setattr(StagingFile, "move_to_final", dropped)
    with uploads.writing(going) as part:
        part.write(FILM)
        assert part.finish().state == "refused"
    assert uploads.home.ledger.jobs("me").rows == ()
    assert list((uploads.home.folder / "uploads").iterdir()) == []


@pytest.mark.parametrize(("where", "name"), [(SqliteLedger, "control"), (StagingFile, "clear"), (Uploads, "_keep")])
def test_a_kill_while_an_upload_is_given_up_leaves_nothing(
    uploads: Uploads, where: type, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    going = uploads.begin("a.mp4", len(FILM), JobRequest())
    with uploads.writing(going) as part:
        part.write(FILM[:1000])
    dying(monkeypatch, where, name)
    with pytest.raises(Killed):
        uploads.drop(going)
    give_up(uploads, monkeypatch)
    assert uploads.get(going.id).state == "refused"
    assert uploads.home.ledger.jobs("me").rows == ()


@pytest.mark.parametrize(("where", "name"), [(Uploads, "_keep"), (StagingFile, "make"), (UploadJob, "submit")])
def test_a_kill_while_an_upload_begins_leaves_nothing(
    uploads: Uploads, where: type, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dying(monkeypatch, where, name)
    with pytest.raises(Killed):
        uploads.begin("a.mp4", len(FILM), JobRequest())
    give_up(uploads, monkeypatch)
    assert [u.state for u in uploads.all()] in ([], ["refused"])
    assert uploads.home.ledger.jobs("me").rows == ()


def test_bytes_of_no_open_upload_are_cleared_after_a_week(uploads: Uploads) -> None:
    going = uploads.begin("a.mp4", len(FILM), JobRequest())
    old, young = (StagingFile(uploads.home.folder / "uploads" / id / "source.mp4") for id in ("up_old", "up_young"))
    for stray in (old, young):
        stray.make()
    os.utime(old.part, (0, 0))
    expiry.expire(uploads)
    assert not old.part.parent.exists()
    assert young.part.exists()
    assert uploads.staging_file(going).part.exists()


def test_what_is_not_on_this_disk_is_given_up_later(uploads: Uploads, monkeypatch: pytest.MonkeyPatch) -> None:
    going = uploads.begin("a.mp4", len(FILM), JobRequest())
    uploads.staging_file(going).clear()
    monkeypatch.setattr(expiry, "EXPIRE_SECONDS", -1.0)
    expiry.expire(uploads)
    assert uploads.get(going.id).state == "open"  # another server may have it
    monkeypatch.setattr(expiry, "LOST_SECONDS", -1.0)
    expiry.expire(uploads)
    assert uploads.get(going.id).state == "refused"


def test_who_goes_on_at_the_last_moment_is_not_given_up(uploads: Uploads, monkeypatch: pytest.MonkeyPatch) -> None:
    going = uploads.begin("a.mp4", len(FILM), JobRequest())
    monkeypatch.setattr(expiry, "EXPIRE_SECONDS", -1.0)
    alone = Uploads.exclusive

    def late(self: Uploads, old: Upload) -> AbstractContextManager[object]:
        with self.writing(old) as part:
            part.write(FILM)
            part.finish()
        return alone(self, old)

    monkeypatch.setattr(Uploads, "exclusive", late)
    expiry.expire(uploads)
    assert uploads.get(going.id).state == "arrived"
    assert uploads.staging_file(going).final.read_bytes() == FILM


def test_gc_tells_the_ledger_of_what_is_whole(server: Serving) -> None:
    place, job = begin(server, FILM)
    going: Uploads = server.library.uploads
    with going.writing(going.get(place.rpartition("/")[2])) as part:
        part.write(FILM)
    server.library.maintenance.gc()
    assert server.get(place)["state"] == "arrived"
    assert probe_state(server, job) is TaskState.READY


def test_what_was_lost_from_the_disk_begins_again(uploads: Uploads) -> None:
    going = uploads.begin("a.mp4", len(FILM), JobRequest())
    uploads.staging_file(going).clear()
    with uploads.writing(going) as part:
        part.write(FILM)
        assert part.finish().state == "arrived"


def test_a_part_that_cannot_be_taken_is_taken_back_when_it_has_a_checksum(server: Serving) -> None:
    data = FILM + bytes(2 << 20)
    place, _ = begin(server, data[:-1])
    sum = "sha256 " + base64.b64encode(hashlib.sha256(data).digest()).decode()
    assert send(server, place, 0, data, **{"Upload-Checksum": sum}).status_code == 413
    assert offset(server, place) == 0


def test_bytes_that_were_not_checked_before_a_kill_do_not_count(uploads: Uploads) -> None:
    going = uploads.begin("a.mp4", len(FILM), JobRequest())
    with uploads.writing(going) as part:
        part.write(FILM[:1000])
        part.mark_unverified()
        part.write(OTHER[1000:])  # and here it is killed
    again = Uploads(uploads.home)
    assert again.finish(going).offset == 1000
    with again.writing(going) as part:
        assert part.offset == 1000
        part.mark_unverified()
        part.write(FILM[1000:])
        part.mark_verified()
        assert part.finish().state == "arrived"
    assert again.staging_file(going).final.read_bytes() == FILM


def test_what_came_of_a_part_before_a_cut_counts_if_the_sender_names_its_checksum(server: Serving) -> None:
    place, _ = begin(server, FILM)
    assert send(server, place, 0, FILM[:1000]).status_code == 204
    for after in (FILM[1000:9000], b"from a bad line" * 100):
        with server.library.uploads.writing(server.library.uploads.get(place.rpartition("/")[2])) as part:
            part.mark_unverified()
            part.write(after)  # and the line is cut
        head = server.http.head(place).headers
        assert (head["upload-offset"], head["rushes-received"]) == ("1000", str(1000 + len(after)))
        summed = base64.b64encode(hashlib.sha256(FILM[1000 : 1000 + len(after)]).digest()).decode()
        answer = server.http.post(f"{place}/received", headers={"Upload-Checksum": f"sha256 {summed}"})
        good = after[0] == FILM[1000]
        assert answer.status_code == (204 if good else 460)
        assert answer.headers["upload-offset"] == ("9000" if good else "1000")
        with server.library.uploads.writing(server.library.uploads.get(place.rpartition("/")[2])) as part:
            part.truncate_to(1000)
    assert server.http.post(f"{place}/received").status_code == 400
    assert send(server, place, 1000, FILM[1000:]).status_code == 204


def test_a_part_that_was_cut_before_its_first_byte_casts_no_doubt_on_the_next(uploads: Uploads) -> None:
    going = uploads.begin("a.mp4", len(FILM), JobRequest())
    with uploads.writing(going) as part:
        part.write(FILM[:1000])
        part.mark_unverified()  # and here the line is cut
    with uploads.writing(going) as part:
        part.write(FILM[1000:5000])
    assert uploads.get(going.id).offset == 5000
    with uploads.writing(going) as part:
        assert part.offset == 5000


def test_a_mark_that_was_cut_short_doubts_nothing(uploads: Uploads) -> None:
    going = uploads.begin("a.mp4", len(FILM), JobRequest())
    with uploads.writing(going) as part:
        part.write(FILM[:1000])
    uploads.staging_file(going).final.with_suffix(".sure").write_text("10")
    assert uploads.get(going.id).offset == 1000
    with uploads.writing(going) as part:
        assert part.offset == 1000


def test_a_late_writer_is_told_that_it_has_arrived(uploads: Uploads) -> None:
    going = uploads.begin("a.mp4", len(FILM), JobRequest())
    with uploads.writing(going) as part:
        part.write(FILM)
        part.finish()
    with pytest.raises(RushesError), uploads.writing(going):
        pass


def test_nothing_of_an_upload_waits_on_the_loop(server: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    on_loop: list[str] = []

    def told(where: type, name: str) -> None:
        real = getattr(where, name)

        def call(*args: Any) -> Any:
            with suppress(RuntimeError):  # in a thread no loop runs
                asyncio.get_running_loop()
                on_loop.append(name)
            return real(*args)

        monkeypatch.setattr(where, name, call)

    for where, name in (
        (Uploads, "get"),
        (StagingFile, "lock"),
        (UploadWriter, "truncate_to"),
        (UploadWriter, "sync"),
        (UploadWriter, "write"),
    ):
        told(where, name)
    place, _ = begin(server, FILM)
    wrong = "sha256 " + base64.b64encode(hashlib.sha256(OTHER).digest()).decode()
    assert send(server, place, 0, FILM, **{"Upload-Checksum": wrong}).status_code == 460
    assert server.http.put(place, content=FILM).status_code == 204
    assert on_loop == []
