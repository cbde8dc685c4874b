"""Hostile and broken input through the command line: a clear refusal or a right result, nothing elsewhere."""

import os
import struct
import subprocess
import sys
from pathlib import Path

import av
import numpy as np
import pytest

from tests.acceptance.conftest import draw

ODD_NAMES = [
    "new\nline.mp4",
    "quote'\"`.mp4",
    "-rf.mp4",
    "\U0001f3ac caf\u00e9.mp4",
    b"\xff\xfe no text.mp4".decode("utf-8", "surrogateescape"),
    "%d $(touch pwned) ;.mp4",
]


def rushes(home: Path, *args: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The command line as a person runs it."""
    argv = [sys.executable, "-m", "rushes", "--home", str(home), *args]
    env = {k: v for k, v in os.environ.items() if not k.startswith("RUSHES_") or k == "RUSHES_MODELS"}
    return subprocess.run(
        argv, cwd=cwd, env=env, capture_output=True, text=True, errors="surrogateescape", timeout=300, check=False
    )


def snapshot(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*")}


def no_sound_no_picture(path: Path) -> None:
    with av.open(str(path), "w", format="matroska") as out:
        stream = out.add_stream("subrip")
        del stream


def gaps(path: Path) -> None:
    """A matroska file whose frames lie 25 hours apart."""
    with av.open(str(path), "w", format="matroska") as out:
        video = out.add_stream("libx264", rate=25)
        video.width, video.height, video.pix_fmt = 64, 36, "yuv420p"
        for n in range(3):
            frame = av.VideoFrame.from_ndarray(np.zeros((36, 64, 3), np.uint8), format="rgb24")
            frame.pts = n * 25 * 3600 * 25
            out.mux(video.encode(frame))
        out.mux(video.encode())


def huge(path: Path) -> None:
    """16000 x 16000 pixels, as a header says."""
    draw(path, 1)
    data = bytearray(path.read_bytes())
    at = data.find(b"avc1") + 4 + 24
    data[at : at + 4] = struct.pack(">HH", 16000, 16000)
    at = data.find(b"tkhd") + 4 + 76
    data[at : at + 8] = struct.pack(">II", 16000 << 16, 16000 << 16)
    path.write_bytes(bytes(data))


def make_bad(folder: Path) -> dict[str, Path]:
    good = draw(folder / "good.mp4", 4)
    secret = draw(folder.parent / "private.ts", 2)
    bad = {
        "empty": b"",
        "text": b"this is no film at all\n" * 50,
        "playlist": f"#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n{secret}\n#EXT-X-ENDLIST\n".encode(),
        "concat": f"ffconcat version 1.0\nfile '{secret}'\n".encode(),
        "truncated": good.read_bytes()[:2000],
    }
    paths = {}
    for name, data in bad.items():
        paths[name] = folder / f"{name}.mp4"
        paths[name].write_bytes(data)
    gaps(folder / "gaps.mkv")
    huge(folder / "huge.mp4")
    os.mkfifo(folder / "pipe.mp4")
    (folder / "out.mp4").symlink_to(secret)
    return paths | {
        n: folder / f for n, f in (("gaps", "gaps.mkv"), ("huge", "huge.mp4"), ("pipe", "pipe.mp4"), ("out", "out.mp4"))
    }


Disaster = tuple[Path, subprocess.CompletedProcess[str], set[str]]


@pytest.fixture(scope="module")
def disaster(tmp_path_factory: pytest.TempPathFactory) -> Disaster:
    """A folder of every bad thing and one good film, run once."""
    top = tmp_path_factory.mktemp("disaster")
    (top / "films").mkdir()
    make_bad(top / "films")
    before = snapshot(top / "films")
    return top, rushes(top / "home", "run", str(top / "films"), "--only", "shots"), before


def test_one_bad_file_never_stops_the_rest(disaster: Disaster) -> None:
    top, done, _ = disaster
    assert done.returncode == 3, done.stderr
    listed = rushes(top / "home", "ls").stdout
    assert "good.mp4" in listed


@pytest.mark.parametrize("name", ["empty", "text", "playlist", "concat", "truncated", "gaps", "huge", "pipe", "out"])
def test_each_bad_file_is_refused_with_its_name_and_a_reason(name: str, disaster: Disaster) -> None:
    _, done, _ = disaster
    said = done.stdout + done.stderr
    assert f"{name}." in said
    assert "Traceback" not in said


def test_nothing_is_written_outside_the_home(disaster: Disaster) -> None:
    top, _, before = disaster
    assert snapshot(top / "films") == before
    assert {p.name for p in top.iterdir()} == {"films", "home", "private.ts"}


def test_no_byte_of_a_foreign_file_is_read(disaster: Disaster) -> None:
    """A playlist or concat script named .mp4 is refused before it can lead anywhere."""
    top, _, _ = disaster
    listed = rushes(top / "home", "ls", "--json").stdout
    assert "playlist.mp4" not in listed
    assert "concat.mp4" not in listed


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names_are_names_like_any_other(name: str, tmp_path: Path, toy_film: Path) -> None:
    folder = tmp_path / "films"
    folder.mkdir()
    (folder / name).write_bytes(toy_film.read_bytes())
    done = rushes(tmp_path / "home", "run", ".", "--only", "probe", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert len(rushes(tmp_path / "home", "ls").stdout.splitlines()) == 1
    assert os.listdir(folder) == [name]  # noqa: PTH208 - names that are no text


def test_a_missing_path_says_so(tmp_path: Path) -> None:
    done = rushes(tmp_path / "home", "run", str(tmp_path / "nowhere.mp4"))
    assert done.returncode in (1, 2, 6)
    assert "nowhere.mp4" in done.stderr
    assert "Traceback" not in done.stderr
