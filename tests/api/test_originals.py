"""The original over HTTP: the file that was compared with what was taken in, whatever its path leads to by then."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from rushes.library import JobRequest, Library
from tests.acceptance.conftest import draw
from tests.api.kit import Serving, serving, wait_for
from tests.api.test_reading import only_video


@pytest.fixture
def added(tmp_path: Path) -> Iterator[tuple[Serving, Path]]:
    (tmp_path / "films").mkdir()
    film = draw(tmp_path / "films" / "film.mp4", 2)
    with Library(tmp_path / "home") as library:
        assert library.run([film], JobRequest(only=("probe",)), slots=1).exit_code == 0
    with serving(tmp_path / "home") as server:
        yield server, film


def secret_like(film: Path, path: Path) -> Path:
    """Other bytes that look the same in a list of files."""
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"s" * film.stat().st_size)
    os.utime(path, ns=(film.stat().st_atime_ns, film.stat().st_mtime_ns))
    return path


def original(server: Serving) -> str:
    return f"/api/v1/videos/{only_video(server)['id']}/original"


def test_a_link_put_in_the_originals_place_is_not_followed(added: tuple[Serving, Path], tmp_path: Path) -> None:
    server, film = added
    secret = secret_like(film, tmp_path / "secret")
    film.rename(film.with_name("aside"))
    film.symlink_to(secret)
    answer = server.http.get(original(server))
    assert (answer.status_code, b"sss" in answer.content) == (409, False)
    film.unlink()
    film.hardlink_to(secret)
    answer = server.http.get(original(server))
    assert (answer.status_code, b"sss" in answer.content) == (409, False)


def test_a_folder_swapped_for_a_link_is_not_followed(added: tuple[Serving, Path], tmp_path: Path) -> None:
    server, film = added
    secret_like(film, tmp_path / "private" / film.name)
    film.parent.rename(tmp_path / "aside")
    film.parent.symlink_to(tmp_path / "private")
    assert server.http.get(original(server)).status_code == 409


def test_a_film_that_was_copied_with_its_times_is_still_the_original(added: tuple[Serving, Path]) -> None:
    server, film = added
    data, times = film.read_bytes(), film.stat()
    film.rename(film.with_name("aside"))
    film.write_bytes(data)
    os.utime(film, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert server.http.get(original(server)).content == data


def test_the_original_comes_by_range_and_no_descriptor_stays_open(added: tuple[Serving, Path]) -> None:
    server, film = added
    data, path = film.read_bytes(), original(server)
    whole = server.http.get(path)
    assert (whole.content, whole.headers["content-length"]) == (data, str(len(data)))
    part = server.http.get(path, headers={"Range": "bytes=4-11"})
    assert (part.status_code, part.content) == (206, data[4:12])
    assert server.http.head(path).headers["content-length"] == str(len(data))
    assert server.http.get(path, headers={"If-None-Match": whole.headers["etag"]}).status_code == 304
    assert server.http.get(path, headers={"Range": f"bytes={len(data)}-"}).status_code == 416
    wait_for(lambda: film.resolve() not in map(_target, Path("/proc/self/fd").iterdir()), "it stays open")


def _target(descriptor: Path) -> Path | None:
    with suppress(FileNotFoundError):
        return descriptor.readlink()
    return None
