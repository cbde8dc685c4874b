"""With the widest umask, all that a home gets by work, uploads, logs and bugs is its owner's alone."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from proof.kills import ROOT, TOYS

from rushes.exports.files_beside import write_beside
from rushes.files import copy_whole
from rushes.library import JobRequest, Library
from rushes.surfaces.cli.errors import report_bug
from rushes.surfaces.cli.main import main
from rushes.surfaces.cli.session import Session
from tests.acceptance.conftest import draw
from tests.unit.wiring.test_home_folder import open_to_others


@pytest.fixture
def _wide_open(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(TOYS))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, (ROOT, TOYS))))
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("_wide_open")
def test_whatever_a_home_gets_is_its_owners_alone(tmp_path: Path) -> None:
    home = tmp_path / "films" / ".rushes"
    film = draw(tmp_path / "film.mp4", 3)
    (tmp_path / "films").mkdir()
    shown = CliRunner().invoke(main, ["--home", str(home), "run", str(film), "--only", "toy_join,playlist"])
    assert shown.exit_code == 0, shown.output
    with Library(home) as library:
        upload = library.uploads.begin("sent.mp4", film.stat().st_size, JobRequest(only=("toy_join",)))
        with library.uploads.writing(upload) as writer:
            writer.write(film.read_bytes()[:100])
        library.maintenance.gc()
        library.maintenance.backup(tmp_path / "backup")
    report_bug(Session(json=True), RuntimeError("a bug"), home / "logs")
    assert (home / "logs").is_dir()
    assert list(home.glob("uploads/*/source.part"))
    assert list(home.glob("logs/bug-*.txt"))
    assert list(home.glob("files/videos/proxy/**/*.m3u8"))
    assert open_to_others(home, tmp_path / "backup") == []


@pytest.mark.usefixtures("_wide_open")
def test_what_is_written_for_people_has_the_mode_that_they_want(tmp_path: Path) -> None:
    (tmp_path / "stored").write_bytes(b"film")
    (tmp_path / "stored").chmod(0o400)
    copy_whole(tmp_path / "stored", tmp_path / "clip.mp4")
    write_beside(tmp_path / "clip.srt", b"1", lambda _content: False)
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("clip.mp4", "clip.srt")] == [0o666, 0o666]
