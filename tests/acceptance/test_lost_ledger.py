"""A folder of films that lost its ledger, or got another one: the work is adopted, and readers see what there is."""

import shutil
from pathlib import Path

from click.testing import CliRunner

from rushes.library import JobRequest, Library
from rushes.surfaces.cli.main import main
from tests.acceptance.conftest import draw

SEEN = JobRequest(chunk="5", profile="fast", only=("playlist", "shots", "transcript"))


def copied_without_ledger(folder: Path, to: Path) -> Path:
    """As people copy it: the hidden home comes along, its ledger does not."""
    shutil.copytree(folder, to, ignore=shutil.ignore_patterns("ledger.sqlite*"))
    return to


def manifests(folder: Path) -> set[str]:
    return {path.name for path in (folder / ".rushes" / "files" / "results").rglob("*.json")}


def rushes(folder: Path, *words: str) -> list[str]:
    done = CliRunner().invoke(main, ["--home", str(folder / ".rushes"), *words])
    assert done.exit_code == 0, done.output
    return done.stdout.splitlines()


def test_a_folder_that_was_copied_without_its_ledger_is_taken_up_whole(tmp_path: Path, spoken_film: Path) -> None:
    first = tmp_path / "first"
    first.mkdir()
    shutil.copy(spoken_film, first / "film.mp4")
    with Library(first / ".rushes") as library:
        assert library.run([first / "film.mp4"], SEEN).exit_code == 0
        (before,), _ = library.videos.page()
        said = {kind: library.videos.lines(before.id, kind) for kind in ("speech", "shot")}
        assert all(said.values())
    copy = copied_without_ledger(first, tmp_path / "copy")
    beside = sorted(path.name for path in copy.iterdir())
    (copy / "film.rushes.jsonl").unlink()
    assert len(rushes(copy, "ls")) == 1, "the list is shown before anything is done"
    with Library(copy / ".rushes") as library:
        ran = library.run([copy / "film.mp4"], SEEN)
        assert ran.exit_code == 0
        (job,) = ran.jobs
        assert len(manifests(copy) - manifests(first)) <= 1, "only probe asks about the file as it lies there"
        (after,), _ = library.videos.page()
        assert (after.id, after.job) == (before.id, job.id)
        assert {kind: library.videos.lines(after.id, kind) for kind in said} == said
    assert sorted(path.name for path in copy.iterdir()) == beside, "subtitles and sidecar are there"
    assert len(rushes(copy, "ls")) == 1
    assert rushes(copy, "show", "film.mp4")


def test_a_list_is_shown_though_no_job_of_a_film_is_known(tmp_path: Path) -> None:
    folder = tmp_path / "first"
    folder.mkdir()
    film = draw(folder / "film.mp4", 3)
    with Library(folder / ".rushes") as library:
        for chunk in ("5", "10"):  # two jobs, of which the index knows
            library.run([film], JobRequest(chunk=chunk, profile="fast", only=("shots",)))
        assert len(library.videos.page()[0][0].jobs) == 2
    for name in ("ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-shm"):
        (folder / ".rushes" / name).unlink(missing_ok=True)
    assert rushes(folder, "ls")[-1].endswith("done")
