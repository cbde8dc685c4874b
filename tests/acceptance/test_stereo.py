"""3D as a person gets it, with the real depth model: a preview in seconds, then the film beside the original."""

import json
import subprocess
import sys
from pathlib import Path

import av
import pytest
import simplejpeg

from rushes.domain.errors import Refused
from rushes.library import Library
from rushes.library.videos.stereo import StereoOptions, preview, write_film
from tests.acceptance.conftest import DEADLINE, draw


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return draw(tmp_path_factory.mktemp("footage") / "walk.mp4", 7, size=(160, 90), rate=8)


def test_a_film_is_made_for_both_eyes_beside_the_one_for_one(film: Path) -> None:
    with Library(film.parent / ".rushes") as library:
        shown = preview(library.home, str(film), StereoOptions(format="anaglyph"))
        strip = simplejpeg.decode_jpeg(Path(shown.path).read_bytes())
        assert (strip.shape, shown.frames) == ((180, 640, 3), 8)
        assert 0 < shown.strength <= 3
        ran = library.run([film], StereoOptions().wanted(chunk="5"), beside=False)
        assert ran.exit_code == 0
        made = write_film(library.home, ran.jobs[0])
        assert (Path(made.path).name, made.frames, made.made) == ("walk.3D.HSBS.mp4", 56, True)
        assert not write_film(library.home, ran.jobs[0]).made  # it is there already
        added = library.add([film.parent], StereoOptions().wanted(chunk="5"))
        assert [Path(a.path).name for a in added if a.job] == ["walk.mp4"]  # what we made is no footage
    with av.open(made.path) as now:
        assert sum(1 for _ in now.decode(video=0)) == 56


def test_the_command_says_where_it_lies_and_never_writes_over_a_file_of_others(film: Path, tmp_path: Path) -> None:
    target = tmp_path / "mine.mp4"
    target.write_text("mine")
    assert (_make(film, target).returncode, target.read_text()) == (2, "mine")
    other = tmp_path / "other.mp4"
    for _ in range(2):  # the second time it is there already
        done = _make(film, other)
        assert done.returncode == 0, done.stderr
    message = json.loads(done.stdout.splitlines()[-1])
    assert [message[name] for name in ("message_type", "path", "frames", "made")] == ["film", str(other), 56, False]


def _make(film: Path, out: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rushes", "--home", str(film.parent / ".rushes"), "--json", "stereo", "make"]
    words = [str(film), "--chunk", "5", "--out", str(out)]
    return subprocess.run([*command, *words], check=False, capture_output=True, text=True, timeout=DEADLINE)


def test_a_format_that_does_not_exist_is_refused_before_any_work() -> None:
    with pytest.raises(Refused, match="hologram"):
        StereoOptions(format="hologram").wanted()
