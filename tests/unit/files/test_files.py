"""Files are there whole or not at all, names are given once, and locks end with their process."""

import contextlib
import errno
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pytest

from rushes import files
from rushes.domain.errors import NoRoom
from rushes.files import (
    copy_whole,
    create_locked,
    link_once,
    locked,
    remove_abandoned,
    replacing,
    sync,
    sync_path,
    try_lock,
    write_whole,
)

HOLDER = """
import sys, time
from pathlib import Path
from rushes.files import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_file_is_copied_whole_over_what_a_killed_process_left(tmp_path: Path) -> None:
    (tmp_path / "blob").write_bytes(b"film")
    (tmp_path / ".x.mp4.0a.part").write_bytes(b"half of one by somebody who was killed")
    copy_whole(tmp_path / "blob", tmp_path / "x.mp4")
    assert (tmp_path / "x.mp4").read_bytes() == b"film"
    assert {f.name for f in tmp_path.iterdir()} == {"blob", "x.mp4"}


@pytest.mark.parametrize(("number", "raised"), [(errno.ENOSPC, NoRoom), (errno.EIO, OSError)])
def test_a_copy_that_fails_leaves_nothing(
    number: int, raised: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(_given: BinaryIO, out: BinaryIO) -> None:
        out.write(b"half")
        raise OSError(number, os.strerror(number))

    (tmp_path / "blob").write_bytes(b"film")
    monkeypatch.setattr(shutil, "copyfileobj", half)  # a full disk is hard to come by
    with pytest.raises(raised, match=os.strerror(number) if raised is OSError else "no disk space"):
        copy_whole(tmp_path / "blob", tmp_path / "x.mp4")
    assert [f.name for f in tmp_path.iterdir()] == ["blob"]


def test_what_was_there_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    target = tmp_path / "settings"
    target.write_text("old")
    with contextlib.suppress(KeyboardInterrupt), replacing(target) as part:
        part.write_text("half")
        raise KeyboardInterrupt
    assert target.read_text() == "old"
    write_whole(target, b"new", mode=0o600)
    assert (target.read_text(), target.stat().st_mode & 0o777) == ("new", 0o600)
    assert [f.name for f in tmp_path.iterdir()] == ["settings"]


def test_bytes_are_on_disk_before_the_name_and_the_name_before_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    real = Path.replace

    def rename(self: Path, target: Path) -> Path:
        order.append("name")
        return real(self, target)

    @contextlib.contextmanager
    def commit() -> Iterator[None]:
        order.append("before")
        yield
        order.append("after")

    monkeypatch.setattr(files, "sync_path", lambda path: order.append(path.name))
    monkeypatch.setattr(Path, "replace", rename)
    with replacing(tmp_path / "a", commit()) as part:
        part.write_bytes(b"whole")
    assert (order[0][:3], order[1:]) == (".a.", ["before", "name", "after", tmp_path.name])


def test_two_that_write_one_file_at_the_same_time_do_not_mix_their_bytes(tmp_path: Path) -> None:
    target = tmp_path / "film.mp4"
    with replacing(target) as first:
        first.write_bytes(b"one" * 9)
        with replacing(target) as second:
            second.write_bytes(b"half")
            write_whole(target, b"three")
            second.write_bytes(b"two")
            assert first.read_bytes() == b"one" * 9
        assert target.read_bytes() == b"two"
    assert target.read_bytes() == b"one" * 9
    assert [f.name for f in tmp_path.iterdir()] == ["film.mp4"]


def test_sync_flushes_first(tmp_path: Path) -> None:
    with (tmp_path / "a").open("wb") as file:
        file.write(b"buffered")
        sync(file)
        assert (tmp_path / "a").read_bytes() == b"buffered"
    sync_path(tmp_path)
    with pytest.raises(FileNotFoundError):
        sync_path(tmp_path / "missing")


@pytest.mark.parametrize("links", [True, False], ids=["links", "no links"])
def test_a_name_is_given_once(links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_some: object, **_more: object) -> None:
        raise OSError(errno.EPERM, "no links here")

    if not links:
        monkeypatch.setattr(os, "link", refuse)
    for name in ("first", "second"):
        (tmp_path / name).write_text(name)
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        assert [link_once(name, "target", folder, folder) for name in ("first", "second")] == [True, False]
    finally:
        os.close(folder)
    assert (tmp_path / "target").read_text() == "first"


def test_an_error_that_is_not_about_links_is_raised(tmp_path: Path) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        with pytest.raises(FileNotFoundError):
            link_once("missing", "target", folder, folder)
    finally:
        os.close(folder)


def test_a_lock_is_over_with_its_process(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    with locked(path, 0.05) as mine:
        assert not mine
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    holder.stdout.close()
    with locked(path, 0.0) as mine:
        assert mine
    with locked(path) as mine:
        assert mine


def test_a_file_of_a_live_writer_is_left_alone(tmp_path: Path) -> None:
    file = create_locked(tmp_path / "temp")
    assert file is not None
    assert not remove_abandoned(tmp_path / "temp")
    os.close(file)
    assert remove_abandoned(tmp_path / "temp")
    assert not remove_abandoned(tmp_path / "temp")


def test_a_file_that_was_taken_for_abandoned_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "wait_for_lock", lambda _file: (tmp_path / "temp").unlink())
    assert create_locked(tmp_path / "temp") is None


def test_two_holders_of_one_open_file_each_need_their_own(tmp_path: Path) -> None:
    with (tmp_path / "a").open("w") as one, (tmp_path / "a").open("w") as other:
        assert [try_lock(one), try_lock(other), try_lock(one)] == [True, False, True]
