"""A file name that is no text: bytes inside, and clean text wherever somebody reads it."""

import io
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow import parquet

from rushes.domain.errors import RushesError
from rushes.library import JobRequest, Library
from rushes.library.videos.export import KINDS
from rushes.telemetry import JsonLines
from tests.acceptance.conftest import draw
from tests.api.kit import Serving, serving
from tests.api.routes import every_route

FILM, BROKEN, EMPTY = (os.fsdecode(name) for name in (b"caf\xe9 \xff<b>.mp4", b"br\xf6ken.mp4", b"\xfcmpty.mp4"))
SHOWN = "caf\ufffd \ufffd<b>.mp4"
FOLDER = os.fsdecode(b"f\xf6lder")


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a film that can be read, one that cannot, and an empty one; no name is UTF-8."""
    folder = tmp_path_factory.mktemp("names") / FOLDER
    folder.mkdir()
    draw(folder.parent / "film.mp4", 3).rename(folder / FILM)
    (folder / BROKEN).write_bytes(b"no film at all" * 100)
    (folder / EMPTY).touch()
    return folder


@pytest.fixture(scope="module")
def served(films: Path) -> Iterator[Serving]:
    with Library(films / ".rushes") as library:
        report = library.run([films], JobRequest(only=("playlist", "shots")), slots=1)
        assert [job.name for job in report.jobs if job.state == "completed"] == [SHOWN]
    with serving(films / ".rushes", sources=str(films.parent)) as server:
        yield server


def test_every_page_and_every_answer_is_clean_text(served: Serving, films: Path) -> None:
    video = served.library.videos.find(SHOWN)
    jobs = [job["id"] for job in served.get("/api/v1/jobs")["items"]]
    assert len(jobs) >= 2
    values = {"video_id": video.id, "ms": "0", "kind": "csv", "name": "nothing", "name:path": "x"}
    asked = []
    for route in every_route(served.app):
        if route.method != "GET" or route.path.endswith(("events", "play", ".js")):
            continue
        for job in jobs if "{job_id}" in route.path else [""]:
            path = route.path
            for name, value in {**values, "job_id": job}.items():
                path = path.replace(f"{{{name}}}", value)
            answer = served.http.get(
                path, params={"place": str(films.parent), "follow": "false"}, follow_redirects=False
            )
            assert answer.status_code < 500, path
            if answer.headers.get("content-type", "").startswith(("text/", "application/json")):
                _check(answer.content, path)
            asked.append(path)
    assert {"/", "/jobs", "/failed", "/add", f"/videos/{video.id}"} <= set(asked)
    assert SHOWN in served.http.get("/api/v1/videos").text
    assert served.http.get(f"/api/v1/videos/{video.id}/original").content == (films / FILM).read_bytes()


def test_taking_in_tells_clean_names(served: Serving, films: Path) -> None:
    added = served.http.post("/api/v1/videos", json={"paths": [str(films.parent)], "again": 1})
    assert added.status_code == 202, added.text
    _check(added.content, "POST /videos")
    place = served.post("/api/v1/paths", {"path": str(films.parent)}, 201)
    _check(served.http.post(f"/api/v1/paths/{place['id']}/validate").content, "validate")


def test_a_video_is_found_by_its_bytes_and_exported(served: Serving, films: Path, tmp_path: Path) -> None:
    library = served.library
    video = library.videos.find(str(films / FILM))
    assert (video.name, library.videos.find(FILM).id) == (SHOWN, video.id)
    for kind in KINDS:
        try:
            _check(_text(library.videos.export(video, kind), kind), kind)
        except RushesError as e:  # nothing was said in it
            _check(str(e).encode(), kind)
    otio = json.loads(library.videos.export(video, "otio"))
    assert "caf%E9%20%FF" in json.dumps(otio)
    assert library.clip(video.id, 0, 1_000_000, out=tmp_path / "clip.mp4").path
    written = {os.fsencode(f.path) for f in library.videos.write_sidecars(video) if not f.kept}
    assert os.fsencode(films / FILM).replace(b".mp4", b".csv") in written


@pytest.mark.parametrize(
    "command",
    [["ls"], ["jobs", "ls"], ["failed", "ls"], ["show", FILM], ["doctor"], ["verify"], ["add", "."],
     ["estimate", FILM], ["run", FILM, "--only", "shots"], ["run", os.fsdecode(b"mi\xdfing.mp4")]],
    ids=lambda command: command[0],
)  # fmt: skip
@pytest.mark.parametrize("form", ["--json", "--no-progress"])
def test_the_terminal_gets_clean_text(served: Serving, films: Path, command: list[str], form: str) -> None:
    env = {k: v for k, v in os.environ.items() if k not in ("LANG", "LC_ALL", "PYTHONIOENCODING")}
    argv = [sys.executable, "-m", "rushes", form, *command]
    done = subprocess.run(argv, cwd=films, env=env | {"LC_ALL": "C.UTF-8"}, capture_output=True, check=False)
    assert b"Traceback" not in done.stderr, done.stderr
    _check(done.stdout + done.stderr, " ".join(command[:1]))


def test_a_log_line_is_clean_text() -> None:
    record = logging.LogRecord("rushes", logging.WARNING, "", 1, "%s is missing", (FILM,), None)
    _check(JsonLines().format(record).encode(), "log")


def _text(data: bytes, kind: str) -> bytes:
    """The data of an export as text; Parquet is none."""
    return repr(parquet.read_table(io.BytesIO(data)).to_pylist()).encode() if kind == "parquet" else data


def _check(data: bytes, where: str) -> None:
    text = data.decode("utf-8")  # strict
    assert "\\ud" not in text, f"{where}: {text}"
