"""Places that films are taken in from over HTTP: below the roots only, bounded, and never a bug of ours."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.kit import Serving, serving

ODD = ["/", "/proc", "/sys", "/dev", "/dev/zero", "/etc/passwd", "//", "/..", "/" + "a" * 1999, "/" + "a/" * 900,
       "/\ufffd", "/etc/../etc", "s3://", "s3:///", "s3://x/../y", "s3://x/./y", "s3://../y", "s3://x//y", "s3://x/\x01",
       "s3://x y/z", "s3://" + "x" * 100, "s3://x:y@z/k"]  # fmt: skip


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serving]:
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    for folder in ("lib/.rushes", "user/Videos", "elsewhere", "more"):
        (tmp_path / folder).mkdir(parents=True)
    with serving(tmp_path / "lib" / ".rushes", sources="", s3_endpoint="http://127.0.0.1:9") as running:
        yield running


@pytest.mark.parametrize("place", ODD)
def test_whatever_is_named_is_answered(server: Serving, place: str) -> None:
    tries = [server.http.post("/api/v1/videos", json={"paths": [place]}),
             server.http.post("/api/v1/paths", json={"path": place}),
             server.http.get("/add", params={"from": "folder", "place": place}),
             server.http.post("/add", data={"place": place}, headers={"Origin": server.url})]  # fmt: skip
    assert [t.status_code for t in tries if t.status_code in (500, 202)] == []
    assert tries[0].status_code in (400, 403, 404, 422, 503)
    assert server.ledger.jobs("me").rows == ()


@pytest.mark.parametrize("folder", ["lib", "user/Videos"])
def test_without_a_setting_films_lie_below_the_homes_folder_or_the_users_media_folders(
    server: Serving, tmp_path: Path, folder: str
) -> None:
    film = tmp_path / folder / "holidays" / "film.mp4"
    film.parent.mkdir()
    film.write_bytes(b"film")
    (added,) = server.post("/api/v1/videos", {"paths": [str(film.parent)]}, 202)
    assert added["path"] == str(film)


def test_what_lies_elsewhere_is_refused_with_what_to_do(server: Serving, tmp_path: Path) -> None:
    (tmp_path / "elsewhere" / "film.mp4").write_bytes(b"film")
    told = server.post("/api/v1/videos", {"paths": [str(tmp_path / "elsewhere")]}, 403)
    assert "sources" in told["hint"]
    (tmp_path / "lib" / "link").symlink_to(tmp_path / "elsewhere")
    server.post("/api/v1/videos", {"paths": [str(tmp_path / "lib" / "link")]}, 403)
    server.post("/api/v1/videos", {"paths": [str(tmp_path / "lib" / "link" / "film.mp4")]}, 403)


def test_configured_roots_stand_for_the_usual_ones(tmp_path: Path) -> None:
    for folder in ("lib/.rushes", "more", "lib/films"):
        (tmp_path / folder).mkdir(parents=True)
    for folder in ("more", "lib/films"):
        (tmp_path / folder / "film.mp4").write_bytes(b"film")
    with serving(tmp_path / "lib" / ".rushes", sources=str(tmp_path / "more")) as server:
        server.post("/api/v1/videos", {"paths": [str(tmp_path / "more")]}, 202)
        server.post("/api/v1/videos", {"paths": [str(tmp_path / "lib")]}, 403)


def test_a_folder_that_cannot_be_read_and_a_limit_never_stop_the_rest(server: Serving, tmp_path: Path) -> None:
    top, deep = tmp_path / "lib" / "films", "d/" * 45
    (top / deep).mkdir(parents=True)
    (top / deep / "deep.mp4").write_bytes(b"film")
    (top / "last.mp4").write_bytes(b"film")
    (top / "loop").symlink_to(top / "loop")
    added = server.post("/api/v1/videos", {"paths": [str(top)]}, 202)
    assert [Path(a["path"]).name for a in added if a["job"]] == ["last.mp4"]
    assert [a["error"] for a in added if "deeper than" in a["error"]]


def test_a_request_takes_in_so_many_files_and_no_more(
    server: Serving, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(5):
        (tmp_path / "lib" / f"{n}.mp4").write_bytes(b"film")
    monkeypatch.setattr("rushes.surfaces.api.videos.MOST_FILES", 3)
    added = server.post("/api/v1/videos", {"paths": [str(tmp_path / "lib")]}, 202)
    assert len([a for a in added if a["job"]]) == 3
    assert "more than 3 files" in added[-1]["error"]
