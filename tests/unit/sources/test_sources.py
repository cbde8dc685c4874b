"""What is found in files and folders, and what is refused without stopping the rest."""

import json
import os
import socket
import sys
from pathlib import Path

import pytest

from rushes.domain.errors import SourceMissing
from rushes.domain.keys import canonical
from rushes.sources.folder import Folder, below, fingerprint
from rushes.sources.port import FoundFile, SkippedFile
from rushes.sources.watch import find

ODD_NAMES = [
    "new\nline.mp4",
    "quo\"te'.mkv",
    "-rf.mov",
    "--help.mp4",
    "🎬.mp4",
    "é.webm",
    "a b.MP4",
    "%d.mp4",
    "x;y.mp4",
]


def _film(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"film")
    return path


def _found(*paths: Path) -> list[Path]:
    return [Path(e.path) for e in find(map(Folder, paths)) if isinstance(e, FoundFile)]


def _refused(*paths: Path) -> dict[str, str]:
    return {Path(e.path).name: e.reason for e in find(map(Folder, paths)) if isinstance(e, SkippedFile) and e.fault}


def test_a_folder_gives_its_footage_in_order_and_nothing_else(tmp_path: Path) -> None:
    films = [_film(tmp_path / n) for n in ("a.mp4", "b/a.mkv", "b/c/d.WAV", "c.mov")]
    for name in ("a.srt", "a.en.vtt", "a.nfo", "notes.txt", "a.mp4.part", "b/poster.jpg", "x.trickplay/0.jpg"):
        _film(tmp_path / name)
    assert sorted(_found(tmp_path)) == films
    assert _found(tmp_path) == [films[0], films[3], films[1], films[2]]
    assert _refused(tmp_path) == {}


def test_hidden_things_and_the_home_are_passed_over(tmp_path: Path) -> None:
    for name in (".rushes/videos/clip.mp4", ".hidden.mp4", "._a.mp4", "a/.git/x.mp4", "@eaDir/x.mp4"):
        _film(tmp_path / name)
    assert _refused(tmp_path) == {tmp_path.name: "no videos in it"}
    assert _found(tmp_path) == []


def test_a_file_named_by_the_user_is_taken_whatever_its_ending(tmp_path: Path) -> None:
    film = _film(tmp_path / "film.xyz")
    assert _found(film) == [film]


def test_the_same_file_is_found_once(tmp_path: Path) -> None:
    film = _film(tmp_path / "a.mp4")
    link = tmp_path / "z.mp4"
    link.symlink_to(film)
    assert _found(film, tmp_path, link, tmp_path) == [film]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names_are_names(tmp_path: Path, name: str) -> None:
    film = _film(tmp_path / name)
    assert _found(tmp_path) == _found(film) == [film]
    assert below(fingerprint(film), tmp_path).path == name


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names themselves")
def test_names_that_are_not_text_are_names_too(tmp_path: Path) -> None:
    film = _film(Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.mp4")))
    assert _found(tmp_path) == [film]
    assert os.fsencode(below(fingerprint(film), tmp_path).path) == b"caf\xe9.mp4"
    assert json.loads(canonical(below(fingerprint(film), tmp_path).path)) == film.name


def test_a_link_out_of_the_folder_is_refused_with_the_reason(tmp_path: Path) -> None:
    _film(tmp_path / "outside/secret.mp4")
    inside = tmp_path / "inside"
    _film(inside / "a.mp4")
    (inside / "b.mp4").symlink_to(tmp_path / "outside/secret.mp4")
    (inside / "c").symlink_to(tmp_path / "outside")
    (inside / "d.txt").symlink_to("/etc/passwd")
    (inside / "loop").symlink_to(inside)
    (inside / "e.mp4").symlink_to(inside / "gone.mp4")
    assert _found(inside) == [inside / "a.mp4"]
    refused = _refused(inside)
    assert set(refused) == {"b.mp4", "c", "e.mp4"}
    assert "out of the folder" in refused["b.mp4"]
    assert "broken link" in refused["e.mp4"]


def test_a_neighbour_with_the_same_beginning_is_outside(tmp_path: Path) -> None:
    _film(tmp_path / "u10/x.mp4")
    (tmp_path / "u1").mkdir()
    (tmp_path / "u1/y.mp4").symlink_to(tmp_path / "u10/x.mp4")
    assert _found(tmp_path / "u1") == []


def test_a_link_that_the_user_names_is_resolved(tmp_path: Path) -> None:
    film = _film(tmp_path / "real/a.mp4")
    (tmp_path / "link.mp4").symlink_to(film)
    (tmp_path / "folder").symlink_to(tmp_path / "real")
    assert _found(tmp_path / "link.mp4") == [film]
    assert _found(tmp_path / "folder") == [film]


def test_pipes_sockets_devices_and_empty_files_hang_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe.mp4")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "empty.mp4").touch()
    _film(tmp_path / "z.mp4")
    with socket.socket(socket.AF_UNIX) as listener:
        monkeypatch.chdir(tmp_path)  # names of sockets are short
        listener.bind("socket.mp4")
        assert set(_refused(tmp_path)) == {"pipe.mp4", "empty.mp4", "socket.mp4"}
    assert _found(tmp_path) == [tmp_path / "z.mp4"]
    assert "pipe" in _refused(tmp_path / "pipe")["pipe"]
    assert "device" in _refused(Path("/dev/null"))["null"]


def test_what_may_not_be_read_is_refused_and_the_rest_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _film(tmp_path / "a.mp4")
    _film(tmp_path / "b.mp4")
    (tmp_path / "shut").mkdir()
    real_open, real_scan = os.open, os.scandir

    def shut_open(path: Path, flags: int) -> int:
        if path.name == "a.mp4":
            raise PermissionError
        return real_open(path, flags)

    def shut_scan(path: Path) -> object:
        if path.name == "shut":
            raise PermissionError
        return real_scan(path)

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", shut_open)
        patched.setattr(os, "scandir", shut_scan)
        refused, found = _refused(tmp_path), _found(tmp_path)
    assert set(refused) == {"a.mp4", "shut"}
    assert "may not read" in refused["shut"]
    assert found == [tmp_path / "b.mp4"]


def test_nonsense_paths_are_refused_not_raised(tmp_path: Path) -> None:
    film = _film(tmp_path / "a.mp4")
    odd = [tmp_path / "nothing.mp4", Path("a\0b"), Path("x" * 5000), film / "below"]
    entries = list(find(map(Folder, [*odd, film])))
    assert [type(e) for e in entries] == [SkippedFile] * 4 + [FoundFile]


def test_a_fingerprint_moves_with_the_home(tmp_path: Path) -> None:
    film = _film(tmp_path / "home/day 1/a.mp4")
    before = below(fingerprint(film), tmp_path / "home")
    assert before.path == "day 1/a.mp4"
    (tmp_path / "home").rename(tmp_path / "elsewhere")
    assert below(fingerprint(tmp_path / "elsewhere/day 1/a.mp4"), tmp_path / "elsewhere") == before


def test_a_fingerprint_outside_the_home_is_absolute_and_notices_change(tmp_path: Path) -> None:
    film = _film(tmp_path / "a.mp4")
    (tmp_path / "home").mkdir()
    before = below(fingerprint(film), tmp_path / "home")
    assert before.path == str(film)
    film.write_bytes(b"other film")
    assert below(fingerprint(film), tmp_path / "home") != before


def test_the_fingerprint_of_nothing_is_a_missing_source(tmp_path: Path) -> None:
    with pytest.raises(SourceMissing):
        fingerprint(tmp_path / "nothing.mp4")
    with pytest.raises(SourceMissing):
        fingerprint(tmp_path)
