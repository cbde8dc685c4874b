"""What a job is called: running only while somebody works on it, in people's words or the ledger's."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rushes.domain.job import JobState
from rushes.surfaces.cli.main import main
from rushes.surfaces.cli.views.rows import ALIASES, STATES, video_parts
from rushes.surfaces.words import ActiveJobs
from tests.unit.cli_worker import films, leave, take

Invoke = Callable[..., Result]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def rushes(home: Path) -> Invoke:
    return lambda *args: CliRunner().invoke(main, ["--home", str(home), *args])


def listed(rushes: Invoke, *args: str) -> list[tuple[str, str]]:
    """(name, word) of each row."""
    return [(row.split()[1], row.split()[-1]) for row in rushes("jobs", "ls", *args).stdout.splitlines()]


def test_a_job_runs_only_while_a_living_worker_has_it_in_hand(rushes: Invoke, home: Path, tmp_path: Path) -> None:
    for film in films(tmp_path, 2):
        rushes("add", str(film))
    assert listed(rushes) == [("film1.mp4", "waiting"), ("film0.mp4", "waiting")]
    worker, leases = take(home)
    assert listed(rushes) == [("film1.mp4", "waiting"), ("film0.mp4", "running")]
    assert listed(rushes, "--state", "running") == [("film0.mp4", "running")]
    assert listed(rushes, "--state", "waiting") == [("film1.mp4", "waiting")]
    leave(home, worker, leases)
    assert listed(rushes, "--state", "running") == []
    assert {word for _, word in listed(rushes)} == {"waiting"}


@pytest.mark.parametrize("state", [JobState.RUNNING, JobState.CHUNKING, JobState.CREATED])
def test_whatever_the_ledger_calls_it_what_nobody_works_on_waits(state: JobState) -> None:
    assert ActiveJobs().word_of("job_a", state) == "waiting"
    assert ActiveJobs().word_of("job_a", state, paused=True) == "paused"
    assert ActiveJobs({"job_a": ("studio",)}).word_of("job_a", state) == "running"


@pytest.mark.parametrize("word", [*STATES, *ALIASES, "COMPLETED", "Pending", *(s.value for s in JobState)])
def test_every_word_for_a_state_is_understood(rushes: Invoke, word: str) -> None:
    assert rushes("jobs", "ls", "--state", word).exit_code == 0


def test_a_word_that_is_no_state_is_answered_with_those_there_are(rushes: Invoke) -> None:
    shown = rushes("jobs", "ls", "--state", "sleeping")
    assert shown.exit_code == 2
    assert "waiting, running, paused, done, failed, cancelled" in shown.stderr.replace("\n       ", " ")


def test_a_state_is_listed_page_by_page_and_nothing_twice(rushes: Invoke, home: Path, tmp_path: Path) -> None:
    for film in films(tmp_path, 5):
        rushes("add", str(film))
    take(home)
    names, cursor = list[str](), ""
    for _ in range(5):
        page = json.loads(
            rushes("jobs", "ls", "--state", "waiting", "--limit", "2", "--cursor", cursor, "--json").stdout
        )
        names += [job["name"] for job in page["jobs"]]
        assert all(job["word"] == "waiting" for job in page["jobs"])
        if not (cursor := page["cursor"]):
            break
    assert sorted(names) == ["film1.mp4", "film2.mp4", "film3.mp4", "film4.mp4"]


def test_a_name_that_means_two_jobs_is_answered_with_both(rushes: Invoke, tmp_path: Path) -> None:
    rushes("add", *(str(film) for film in films(tmp_path, 2)))
    shown = rushes("jobs", "show", "job_")
    assert shown.exit_code == 6
    words = " ".join(shown.stderr.split())
    assert "2 jobs match 'job_'" in words
    assert "(film0.mp4)" in words
    assert "(film1.mp4)" in words


def test_who_adds_footage_hears_whether_somebody_is_there_to_do_the_work(
    rushes: Invoke, home: Path, tmp_path: Path
) -> None:
    one, other = films(tmp_path, 2)
    assert "next: rushes worker" in rushes("add", str(one)).stderr
    take(home)
    assert "1 worker is running" in rushes("add", str(other)).stderr


def test_paused_jobs_can_be_listed(rushes: Invoke, tmp_path: Path) -> None:
    one, other = films(tmp_path, 2)
    rushes("add", str(one), str(other))
    job = json.loads(rushes("jobs", "ls", "--json").stdout)["jobs"][0]["id"]
    rushes("jobs", "pause", job)
    assert listed(rushes, "--state", "paused") == [("film1.mp4", "paused")]
    assert listed(rushes, "--state", "waiting") == [("film0.mp4", "waiting")]


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["done"], "done"),
        (["cancelled", "done"], "done"),
        (["done", "failed"], "done, 1 failed"),
        (["failed"], "failed"),
        (["done", "running"], "running"),
        (["waiting", "failed", "failed"], "waiting, 2 failed"),
    ],
)
def test_a_film_with_several_jobs_is_told_by_all_of_them(words: list[str], shown: str) -> None:
    assert "".join(p if isinstance(p, str) else p[0] for p in video_parts(words)) == shown
