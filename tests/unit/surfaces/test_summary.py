"""What a run came to, in a few lines or in one JSON line."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rushes.domain.errors import Refused
from rushes.domain.job import Counts, JobState
from rushes.domain.task import Failure, Task, TaskState
from rushes.library import IntakeResult, RunReport
from rushes.library.jobs import Jobs
from rushes.library.videos.files import WrittenFile
from rushes.surfaces.cli.session import Session
from rushes.surfaces.cli.views.summary import Range, report
from tests.unit.cli_library import Shelf, job, line, video

DONE = job(JobState.COMPLETED, Counts(255, 255))
NEW = {DONE.id: 0}
SUBTITLES = [WrittenFile(Path("/films/two_cities.en.srt")), WrittenFile(Path("/films/two_cities.en.vtt"))]


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(
        tmp_path / "home", [video(proxy="videos/proxy/x/index.m3u8")], [line("It was the epoch of incredulity")]
    )


def told(capsys: pytest.CaptureFixture[str], shelf: Shelf, ran: RunReport, estimated: Range | None = None) -> list[str]:
    report(Session(), shelf, ran, SUBTITLES, estimated)
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err.splitlines()


def summary(capsys: pytest.CaptureFixture[str], shelf: Shelf, ran: RunReport) -> list[dict[str, Any]]:
    report(Session(json=True), shelf, ran, SUBTITLES, (1140.0, 1560.0))
    return [json.loads(row) for row in capsys.readouterr().out.splitlines()]


def test_a_finished_run_says_what_was_made_where_how_fast_and_one_next_command(
    shelf: Shelf, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = told(capsys, shelf, RunReport((DONE,), (), 1330.0, before=NEW), (1140.0, 1560.0))
    assert lines[0] == "done in 22 min 10 s (estimated 19-26 min), 1.9x real time"
    assert lines[1] == "  6 words  1 line"
    assert lines[2].startswith("  proxy: ")
    assert lines[2].endswith("videos/proxy/x/index.m3u8")
    assert lines[3:] == ["  written next to it: two_cities.en.srt two_cities.en.vtt", "next: rushes search incredulity"]


def test_work_that_was_finished_before_is_told_in_one_line(shelf: Shelf, capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, shelf, RunReport((DONE,), (), 0.1, before={})) == [
        "two_cities.mkv: already done, nothing to do",
        "next: rushes search incredulity",
    ]


def test_a_run_that_went_on_claims_no_speed(shelf: Shelf, capsys: pytest.CaptureFixture[str]) -> None:
    lines = told(capsys, shelf, ran := RunReport((DONE,), (), 14.0, {DONE.id: 200}))
    assert lines[0] == "done in 14 s; 200 tasks were already done"
    assert summary(capsys, shelf, ran)[-1]["speed_x"] is None


def test_films_that_were_finished_earlier_count_for_nothing(shelf: Shelf, capsys: pytest.CaptureFixture[str]) -> None:
    old = replace(DONE, id="job_old", name="old.mkv")
    ran = RunReport((old, DONE), (), 1330.0, NEW)
    lines = told(capsys, shelf, ran, (1140.0, 1560.0))
    assert lines[0] == "done in 22 min 10 s (estimated 19-26 min), 1.9x real time; 1 video was already done"
    assert not any("old.mkv" in line for line in lines)
    last = summary(capsys, shelf, ran)[-1]
    assert (last["speed_x"], [j["worked"] for j in last["jobs"]]) == (1.88, [False, True])


def test_a_film_without_words_leads_to_a_look_at_it(shelf: Shelf, capsys: pytest.CaptureFixture[str]) -> None:
    shelf.said = []
    assert told(capsys, shelf, RunReport((DONE,), (), 1.0, before={}))[-1] == "next: rushes show vid_aaaabbbbccccdddd"


def test_an_interrupted_run_says_that_nothing_is_lost(shelf: Shelf, capsys: pytest.CaptureFixture[str]) -> None:
    ran = RunReport((job(),), (), 60.0, before=NEW, signal=2)
    assert told(capsys, shelf, ran) == ["paused: 219 of 255 tasks are done and kept. Run the same command to continue"]
    last = summary(capsys, shelf, ran)[-1]
    assert (last["message_type"], last["resumable"], last["code"]) == ("summary", True, 130)


def test_a_run_that_would_only_wait_says_when_the_next_try_is_due(
    shelf: Shelf, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = RunReport((job(),), (), 60.0, before=NEW, due_in=58.2, due_job=job().id)
    assert told(capsys, shelf, ran) == [
        "waiting: the next attempt is in 58 s. Run the same command then",
        "see why: rushes jobs why job_aaaabbbbccccdddd",
    ]
    last = summary(capsys, shelf, ran)[-1]
    assert (last["resumable"], last["code"], last["due_in"]) == (True, 5, 58.2)


def test_a_run_that_would_only_wait_tells_what_was_done_what_failed_and_who_waits(
    shelf: Shelf, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Jobs, "tasks", lambda _jobs, _job, _state: ())
    failed, due = job(JobState.FAILED, id="job_failed"), job(id="job_due")
    ran = RunReport(
        (failed, DONE, due), (), 60.0, {DONE.id: 0, "job_due": 0, "job_failed": 0}, due_in=58.2, due_job="job_due"
    )
    lines = told(capsys, shelf, ran)
    assert lines[0].startswith("done in 1 min 0 s")
    assert "  written next to it: two_cities.en.srt two_cities.en.vtt" in lines
    assert lines[-1] == "see why: rushes jobs why job_due"
    last = summary(capsys, shelf, ran)[-1]
    assert (last["jobs_done"], last["errors"], last["resumable"], last["code"]) == (1, 1, True, 5)


def test_a_job_that_somebody_cancelled_meanwhile_is_told_with_the_way_back(
    shelf: Shelf, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = RunReport((job(JobState.CANCELLED),), (), 60.0, NEW)
    (line,) = told(capsys, shelf, ran)
    back = "Undo with: rushes jobs retry job_aaaabbbbccccdddd"
    assert line == f"two_cities.mkv: cancelled, 219 of 255 tasks are done. {back}"
    error, last = summary(capsys, shelf, ran)
    assert (error["kind"], error["hint"]) == ("JobCancelled", back)
    assert (last["errors"], last["resumable"], last["code"]) == (1, False, 3)


def test_a_job_that_somebody_paused_meanwhile_is_no_error(shelf: Shelf, capsys: pytest.CaptureFixture[str]) -> None:
    ran = RunReport((job(paused=True),), (), 60.0, NEW)
    (line,) = told(capsys, shelf, ran)
    assert line.startswith("two_cities.mkv: paused, 219 of 255 tasks are done. Continue with the same command, or: ")
    assert line.endswith("rushes jobs resume job_aaaabbbbccccdddd")
    last = summary(capsys, shelf, ran)[-1]
    assert (last["errors"], last["resumable"], last["code"]) == (0, True, 5)


def dead(stage: str, chunk: int | None, message: str, kind: str = "KillsItsWorker") -> Task:
    failure = Failure(kind, message, "Look at its log.", "will not work without a change")
    spec = '{"span":[1320000,1380000,1,1000]}'
    return Task("t", DONE.id, stage, chunk, "cpu", 1, TaskState.DEAD, 1, 0, 10, 0, spec, failure=failure)


def test_what_failed_is_told_with_its_place_reason_meaning_and_remedy(
    shelf: Shelf, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        Jobs, "tasks", lambda _jobs, _job, _state: (dead("develop", 23, "10 leases lost\x1b[2J; signal 11"),)
    )
    bad = job(JobState.FAILED, Counts(255, 250, dead=1))
    ran = RunReport((DONE, replace(bad, id="job_b", facts="")), (), 60.0, before=NEW)
    assert told(capsys, shelf, ran)[:4] == [
        "error  two_cities.mkv: develop, chunk 23 (22:00-23:00)",
        "why    KillsItsWorker: 10 leases lost[2J; signal 11",
        "means  stages that need it were not run; all other results are kept",
        "do     Look at its log.",
    ]
    error, last = summary(capsys, shelf, ran)
    assert (error["message_type"], error["chunks"], error["kind"]) == ("error", [23], "KillsItsWorker")
    assert error["hint"] == "Look at its log."
    assert (last["jobs_done"], last["errors"], last["code"]) == (1, 1, 3)
    assert [j["state"] for j in last["jobs"]] == ["completed", "failed"]


def test_a_file_that_is_no_footage_is_refused_by_name(
    shelf: Shelf, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Jobs, "tasks", lambda _jobs, _job, _state: (dead("probe", None, "is a text", "BadMedia"),))
    ran = RunReport((job(JobState.FAILED, facts=""),), (), 1.0, before=NEW)
    assert told(capsys, shelf, ran)[0] == "error  two_cities.mkv: is a text"


def test_a_refused_path_is_told_and_counted(shelf: Shelf, capsys: pytest.CaptureFixture[str]) -> None:
    no = IntakeResult("fifo.mp4", error=Refused("fifo.mp4: not a regular file", "Name files."))
    ran = RunReport((DONE,), (no,), 1.0, before={})
    assert told(capsys, shelf, ran)[:2] == ["error  fifo.mp4: not a regular file", "do     Name files."]
    error, last = summary(capsys, shelf, ran)
    assert (error["path"], last["errors"], last["code"]) == ("fifo.mp4", 1, 3)


def test_many_films_are_told_together(shelf: Shelf, capsys: pytest.CaptureFixture[str]) -> None:
    many = tuple(replace(DONE, id=f"job_{n}") for n in range(9))
    lines = told(capsys, shelf, RunReport(many, (), 100.0, {j.id: 0 for j in many}))
    assert len(lines) == 3
