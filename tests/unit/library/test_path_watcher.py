"""The remembered places of a server, look after look."""

from contextlib import suppress
from pathlib import Path

from rushes.domain.errors import Refused
from rushes.jobs.intake import JobRequest
from rushes.library.watching.path_watcher import PathWatcher
from rushes.library.watching.paths import PATH, Paths
from rushes.wiring import open_home
from tests.unit.media_files import plain


def test_a_place_whose_model_is_gone_hides_no_other(tmp_path: Path) -> None:
    home, good = open_home(tmp_path / "home"), tmp_path / "good"
    good.mkdir()
    plain(good / "film.mp4", 1)
    Paths(home).add(str(good), JobRequest())
    for name in "abcdef":  # in the order of their ids, some come before it
        place = {"path": str(tmp_path / name), "options": {"transcribe": {"model_name": "medium"}}}
        home.records.put(PATH, home.owner, f"path_{name}", place)
    watcher, refused = PathWatcher(home), 0
    for _ in range(3):  # a file is taken once it has stood still
        with suppress(Refused):
            watcher.look()
            refused -= 1
        refused += 1
    assert refused == 3, "it is told"
    assert [job.name for job in home.ledger.jobs(home.owner).rows] == ["film.mp4"]
