"""Progress: bars for people, lines for logs, JSON for programs."""

import json
import time
from typing import Any

import pytest

from rushes.domain.job import Counts, JobState
from rushes.library.work.progress import DiskSpace, EngineOutage, JobProgress, JobsProgress
from rushes.surfaces.cli.screen import Screen
from rushes.surfaces.cli.session import Session
from rushes.surfaces.cli.views.progress import OUTAGE_SECONDS, Bars, Lines, Plain, Row, bar, rows_of, total_of
from tests.unit.cli_library import snapshot, stage


def at(*snapshots: JobProgress) -> JobsProgress:
    return JobsProgress(snapshots, (360.0, 540.0))


def drawn(row: Row, *, utf8: bool = True) -> str:
    return "".join(p if isinstance(p, str) else p[0] for p in bar(row, utf8=utf8))


@pytest.mark.parametrize(
    ("row", "picture"),
    [
        (Row("x", 31, 42, 2, 2), "##############>>...."),
        (Row("x", 0, 42, 0, 0), "...................."),
        (Row("x", 0, 42, 0, 1), ">..................."),
        (Row("x", 41, 42, 0.1, 1), "###################>"),
        (Row("x", 42, 42, 0, 0), "####################"),
        (Row("x", 0, 0, 0, 0), "...................."),
        (Row("x", 1, 1, 1, 1), "####################"),
    ],
)
def test_a_bar_shows_done_running_and_still_to_do(row: Row, picture: str) -> None:
    assert drawn(row, utf8=False) == picture
    assert len(drawn(row)) == 20


def test_stages_of_several_films_are_one_row() -> None:
    rows = rows_of([snapshot(stage("develop", 3, 5)), snapshot(stage("develop", 1, 5), stage("shots", 0, 1, 0, 0.0))])
    assert [(r.name, r.done, r.total, r.active) for r in rows] == [("develop", 4, 10, 2), ("shots", 0, 1, 0)]
    assert rows[0].remaining == (600.0, 840.0)


def test_the_total_counts_films_that_were_not_opened_yet_like_those_that_were() -> None:
    one, unopened = snapshot(stage("develop", 3, 5)), snapshot(id="job_b")
    row = total_of([one, one, unopened, unopened], (720.0, 1080.0))
    assert (row.done, row.total, row.remaining) == (6, 20, (720.0, 1080.0))
    assert total_of([unopened], None).total == 0


def test_the_picture_has_a_row_per_running_stage_the_total_and_what_is_done() -> None:
    screen = Screen(env={"LANG": "C"})
    screen.console._force_terminal, screen.console._width = True, 80
    screen.__dict__["utf8"] = False
    bars = Bars(screen, lambda _snapshot: None)
    seen = snapshot(stage("probe", 1, 1, 0, 0.0), stage("transcribe", 31, 42, 2, 2.0), stage("shots", 0, 1, 0, 0.0))
    lines = [str(line) for line in bars.picture(at(seen)).renderables]
    assert lines == [
        "transcribe  ##############>>....      31/42    3.1x      5-7 min",
        "total       ##############>.....      32/44    1.9x      6-9 min",
        "done: probe   Ctrl-C pauses, nothing is lost",
    ]
    bars.stop()
    assert "stopping after the running chunks" in str(bars.picture(at(seen)).renderables[-1])
    bars.stop()
    assert "stopping at once" in str(bars.picture(at(seen)).renderables[-1])


def test_what_to_press_is_never_cut_off_by_what_is_done() -> None:
    screen = Screen()
    screen.console._width = 60
    stages = [stage(name, 1, 1, 0, 0.0) for name in ("probe", "audio", "develop", "playlist", "shots", "transcribe")]
    foot = str(Bars(screen, lambda _snapshot: None).picture(at(snapshot(*stages))).renderables[-1])
    assert foot == "done: probe and 5 more   Ctrl-C pauses, nothing is lost"


def test_failed_work_is_named_while_the_rest_goes_on() -> None:
    screen = Screen()
    screen.console._width = 80
    seen = snapshot(stage("develop", 3, 5), counts=Counts(10, 3, dead=2))
    assert "2 failed" in str(Bars(screen, lambda _snapshot: None).picture(at(seen)).renderables[-1])


def lines_of(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_json_lines_have_the_documented_fields(capsys: pytest.CaptureFixture[str]) -> None:
    watcher = Lines(Session(json=True))
    watcher.look(at(snapshot()))
    watcher._last = 0.0  # a second has passed
    watcher.look(at(snapshot(stage("probe", 1, 1, 0, 0.0), stage("transcribe", 31, 42, 2, 2.0))))
    _, ended, running, total = lines_of(capsys)
    assert (ended["message_type"], ended["stage"]) == ("stage", "probe")
    assert running.pop("time").endswith("Z")
    assert running == {
        "message_type": "status",
        "level": "info",
        "job": "job_aaaabbbbccccdddd",
        "name": "two_cities.mkv",
        "stage": "transcribe",
        "chunks_done": 31,
        "chunks_total": 42,
        "percent_done": 0.7857,
        "seconds_elapsed": 87.0,
        "seconds_remaining": [300.0, 420.0],
        "speed_x": 3.1,
        "errors": 0,
    }
    assert total["stage"] == "total"


def test_json_lines_name_a_finished_stage_once_and_keep_quiet_in_between(capsys: pytest.CaptureFixture[str]) -> None:
    watcher = Lines(Session(json=True))
    watcher.look(at(snapshot()))
    for _ in range(3):
        watcher.look(at(snapshot(stage("probe", 1, 1, 0, 0.0), state=JobState.COMPLETED)))
    types = [line["message_type"] for line in lines_of(capsys)]
    assert types == ["status", "stage"]


def test_a_log_gets_a_header_the_estimate_and_a_line_per_finished_stage(capsys: pytest.CaptureFixture[str]) -> None:
    watcher = Plain(Session(), lambda _snapshot: (1140.0, 1560.0))
    watcher.look(at(snapshot()))
    for _ in range(2):
        watcher.look(at(snapshot(stage("probe", 1, 1, 0, 0.0), stage("transcribe", 31, 42))))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        "two_cities.mkv  41:38  1920x1080 25 fps  searchable, 42 chunks",
        "estimate 19-26 min (9 of 10 runs on this machine)",
        "probe done, 1/1  3.1x",
    ]


def test_with_several_films_every_line_of_a_log_names_its_film(capsys: pytest.CaptureFixture[str]) -> None:
    watcher = Plain(Session(), lambda _snapshot: None)
    one, other = (
        snapshot(stage("probe", 1, 1, 0, 0.0)),
        snapshot(stage("probe", 1, 1, 0, 0.0), id="job_b", name="b.mp4"),
    )
    watcher.look(at(snapshot(), snapshot(id="job_b", name="b.mp4")))
    watcher.look(at(one, other))
    watcher.look(at(one, other))
    said = [line for line in capsys.readouterr().err.splitlines() if " done" in line]
    assert said == ["two_cities.mkv: probe done, 1/1  3.1x", "b.mp4: probe done, 1/1  3.1x"]


def test_quiet_is_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    Plain(Session(quiet=True), lambda _snapshot: (1.0, 2.0)).look(at(snapshot(stage("probe", 1, 1))))
    captured = capsys.readouterr()
    assert captured.out + captured.err == ""


FULL = DiskSpace(enough=False, free=1_300_000_000, reserve=5_000_000_000)
NEARLY_FULL = "disk nearly full: 1.3 GB free, 5.0 GB kept free; continues when there is space"


def test_a_log_says_once_that_the_disk_is_nearly_full_and_when_there_is_room_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    watcher = Plain(Session(), lambda _snapshot: None)
    for space in (FULL, DiskSpace(enough=True)):
        watcher.disk_space(space)
        watcher.look(at(snapshot()))
    assert capsys.readouterr().err.splitlines() == [NEARLY_FULL, "disk space is available again: continuing"]


def test_programs_hear_that_the_disk_is_nearly_full_and_what_is_kept_free(capsys: pytest.CaptureFixture[str]) -> None:
    watcher = Lines(Session(json=True, progress=False))
    watcher.disk_space(FULL)
    watcher.look(at(snapshot()))
    (said,) = lines_of(capsys)
    assert said.pop("time").endswith("Z")
    assert said == {
        "message_type": "status",
        "level": "info",
        "stage": "room",
        "enough": False,
        "bytes_free": 1_300_000_000,
        "bytes_kept_free": 5_000_000_000,
        "message": NEARLY_FULL,
    }


def test_a_terminal_shows_that_the_disk_is_nearly_full_as_long_as_it_is() -> None:
    screen = Screen()
    screen.console._width = 80
    bars = Bars(screen, lambda _snapshot: None)
    bars.disk_space(FULL)
    assert NEARLY_FULL in [str(line) for line in bars.picture(at(snapshot())).renderables]
    bars.disk_space(DiskSpace(enough=True))
    assert NEARLY_FULL not in [str(line) for line in bars.picture(at(snapshot())).renderables]


AWAY = EngineOutage("no inference service responds: http://ml:8001")
AWAY_TOLD = "no inference service responds: http://ml:8001; that work waits and continues automatically"


def test_an_outage_of_inference_is_told_once_and_again_after_a_silence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, program = Plain(Session(), lambda _snapshot: None), Lines(Session(json=True, progress=False))
    for watcher in (plain, program):
        for _ in range(3):
            watcher.show(AWAY)
    captured = capsys.readouterr()
    assert captured.err.splitlines() == [AWAY_TOLD]
    (said,) = map(json.loads, captured.out.splitlines())
    assert (said["stage"], said["message"]) == ("inference", AWAY_TOLD)
    later = time.monotonic() + OUTAGE_SECONDS
    monkeypatch.setattr("time.monotonic", lambda: later)
    plain.show(AWAY)
    assert capsys.readouterr().err.splitlines() == [AWAY_TOLD]


def test_a_terminal_shows_an_outage_of_inference_until_it_was_told_of_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    screen.console._width = 100
    bars = Bars(screen, lambda _snapshot: None)
    bars.show(AWAY)
    assert AWAY_TOLD in [str(line) for line in bars.picture(at(snapshot())).renderables]
    later = time.monotonic() + OUTAGE_SECONDS
    monkeypatch.setattr("time.monotonic", lambda: later)
    assert AWAY_TOLD not in [str(line) for line in bars.picture(at(snapshot())).renderables]


def test_stages_that_were_over_at_the_first_look_are_no_news(capsys: pytest.CaptureFixture[str]) -> None:
    plain, program = (
        Plain(Session(), lambda _snapshot: None),
        Lines(Session(json=True, progress=False)),
    )
    develop = [stage("develop", 3, 5), stage("develop", 5, 5)]
    for one in develop:
        for watcher in (plain, program):
            watcher.look(at(snapshot(stage("probe", 1, 1, 0, 0.0), one)))
    captured = capsys.readouterr()
    assert [line for line in captured.err.splitlines() if "done" in line] == ["develop done, 5/5  3.1x"]
    assert [json.loads(line)["stage"] for line in captured.out.splitlines()] == ["develop"]


def test_a_second_signal_stops_at_once_and_a_log_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    watcher = Plain(Session(), lambda _snapshot: None)
    for _ in range(2):
        watcher.stop()
        watcher.look(at(snapshot()))
        watcher.look(at(snapshot()))
    assert capsys.readouterr().err.splitlines() == [
        "stopping after the running chunks; Ctrl-C again stops at once",
        "stopping at once",
    ]
