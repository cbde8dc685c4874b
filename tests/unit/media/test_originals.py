"""An original is opened once, through no link, and is the very file that was taken in, or has its content."""

import hashlib
import os
from pathlib import Path

import pytest

from rushes.domain.errors import BadMedia, RushesError, SourceChanged, SourceMissing
from rushes.domain.video import Fingerprint
from rushes.media.open import open_footage
from rushes.media.originals import LocalOriginal
from tests.unit.media_files import plain

FILM, SECRET = b"film of Ada" * 100, b"what she hid" * 100
HASH = hashlib.sha256(FILM).hexdigest()


def place(path: Path, data: bytes = FILM[:1100]) -> Path:
    """Files of one size and one time of change, so that only their inodes and bytes differ."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data[:1100])
    os.utime(path, ns=(10**18, 10**18))
    return path


def taken_in(top: Path, path: Path, sha256: str = HASH) -> LocalOriginal:
    found = path.stat()
    name = str(path.relative_to(top)) if path.is_relative_to(top) else str(path)
    return LocalOriginal(top, Fingerprint(name, found.st_size, found.st_mtime_ns, found.st_ino), sha256)


def read(original: LocalOriginal) -> bytes:
    with original.open() as file:
        return file.read()


def swap_for_a_link(film: Path, secret: Path) -> None:
    film.unlink()
    film.symlink_to(secret)


def swap_for_a_hard_link(film: Path, secret: Path) -> None:
    film.unlink()
    film.hardlink_to(secret)


def swap_the_folder_for_a_link(film: Path, secret: Path) -> None:
    film.parent.rename(film.parent.with_name("aside"))
    film.parent.symlink_to(secret.parent)


def swap_for_a_folder(film: Path, _secret: Path) -> None:
    film.unlink()
    film.mkdir()


def swap_for_a_pipe(film: Path, _secret: Path) -> None:
    film.unlink()
    os.mkfifo(film)


def swap_for_other_bytes(film: Path, secret: Path) -> None:
    film.write_bytes(secret.read_bytes())


@pytest.mark.parametrize(
    "swap",
    [swap_for_a_link, swap_for_a_hard_link, swap_the_folder_for_a_link, swap_for_a_folder, swap_for_a_pipe,
     swap_for_other_bytes],
)  # fmt: skip
@pytest.mark.parametrize("below", [True, False], ids=["below the home", "elsewhere"])
def test_what_was_swapped_is_not_read(tmp_path: Path, swap: object, below: bool) -> None:
    film = place(tmp_path / "films" / "holidays" / "film.mp4")
    secret = place(tmp_path / "private" / "film.mp4", SECRET)
    original = taken_in(tmp_path / ("films" if below else "other"), film)
    assert read(original) == FILM[:1100]
    swap(film, secret)  # type: ignore[operator]
    with pytest.raises((SourceMissing, SourceChanged, BadMedia)):
        read(original)


def test_a_swap_while_it_is_read_changes_nothing(tmp_path: Path) -> None:
    film, secret = place(tmp_path / "film.mp4"), place(tmp_path / "secret.mp4", SECRET)
    with taken_in(tmp_path, film).open() as file:
        begun = file.read(10)
        swap_for_a_link(film, secret)
        assert begun + file.read() == FILM[:1100]


def test_a_copy_with_its_times_is_read_if_its_content_is_known(tmp_path: Path) -> None:
    film = place(tmp_path / "film.mp4")
    original = taken_in(tmp_path, film, hashlib.sha256(FILM[:1100]).hexdigest())
    film.rename(tmp_path / "aside.mp4")
    place(film)
    assert read(original) == FILM[:1100]
    with pytest.raises(SourceChanged):
        read(LocalOriginal(original.top, original.taken_in))  # nobody has read it yet: nothing to compare with


def test_an_upload_was_expected_before_it_had_an_inode(tmp_path: Path) -> None:
    film = place(tmp_path / "film.mp4").stat()
    assert read(LocalOriginal(tmp_path, Fingerprint("film.mp4", film.st_size, film.st_mtime_ns))) == FILM[:1100]


def test_the_home_may_be_reached_through_a_link(tmp_path: Path) -> None:
    film = place(tmp_path / "disk" / "film.mp4")
    (tmp_path / "films").symlink_to(tmp_path / "disk")
    assert read(taken_in(tmp_path / "films", tmp_path / "films" / film.name)) == FILM[:1100]


@pytest.mark.parametrize("path", ["../film.mp4", "a/../../film.mp4", "film.mp4\0", ""])
def test_a_path_that_leads_out_is_no_original(tmp_path: Path, path: str) -> None:
    film = place(tmp_path / "film.mp4").stat()
    (tmp_path / "home" / "a").mkdir(parents=True)
    with pytest.raises(RushesError):
        read(LocalOriginal(tmp_path / "home", Fingerprint(path, film.st_size, film.st_mtime_ns, film.st_ino)))


def test_ffmpeg_reads_the_descriptor_that_was_checked(tmp_path: Path) -> None:
    film = plain(tmp_path / "film.mp4")
    with open_footage(taken_in(tmp_path, film)) as container:
        film.unlink()
        assert container.name == "fd:"
        assert sum(1 for _ in container.demux(video=0)) > 10
