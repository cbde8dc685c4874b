"""Progress: bars for people, lines for logs, JSON for programs."""

import json
from dataclasses import replace
from typing import Any

import pytest

from rushes.domain.job import Counts, JobState
from rushes.library.work.progress import DiskSpace, JobProgress
from rushes.surfaces.cli.screen import Screen
from rushes.surfaces.cli.session import Session
from rushes.surfaces.cli.views.progress import Bars, Heads, Lines, Plain, Row, bar, rows_of, total_of
from tests.unit.cli_library import snapshot, stage


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


def test_the_total_is_unknown_as_long_as_one_film_is() -> None:
    one, other = snapshot(stage("develop", 3, 5)), snapshot(stage("develop", 1, 5))
    assert total_of([one, other]).remaining == (720.0, 1080.0)
    object.__setattr__(other, "remaining", None)
    assert total_of([one, other]).remaining is None


def test_the_picture_has_a_row_per_running_stage_the_total_and_what_is_done() -> None:
    screen = Screen(env={"LANG": "C"})
    screen.console._force_terminal, screen.console._width = True, 80
    screen.__dict__["utf8"] = False
    bars = Bars(screen, lambda _snapshot: None)
    seen = snapshot(stage("probe", 1, 1, 0, 0.0), stage("transcribe", 31, 42, 2, 2.0), stage("shots", 0, 1, 0, 0.0))
    lines = [str(line) for line in bars.picture([seen]).renderables]
    assert lines == [
        "transcribe  ##############>>....      31/42    3.1x      5-7 min",
        "total       ##############>.....      32/44    1.9x      6-9 min",
        "done: probe   Ctrl-C pauses, nothing is lost",
    ]
    bars.stop()
    assert "stopping after the running chunks" in str(bars.picture([seen]).renderables[-1])
    bars.stop()
    assert "stopping at once" in str(bars.picture([seen]).renderables[-1])


def test_what_to_press_is_never_cut_off_by_what_is_done() -> None:
    screen = Screen()
    screen.console._width = 60
    stages = [stage(name, 1, 1, 0, 0.0) for name in ("probe", "audio", "develop", "playlist", "shots", "transcribe")]
    foot = str(Bars(screen, lambda _snapshot: None).picture([snapshot(*stages)]).renderables[-1])
    assert foot == "done: probe and 5 more   Ctrl-C pauses, nothing is lost"


def test_failed_work_is_named_while_the_rest_goes_on() -> None:
    screen = Screen()
    screen.console._width = 80
    seen = snapshot(stage("develop", 3, 5), counts=Counts(10, 3, dead=2))
    assert "2 failed" in str(Bars(screen, lambda _snapshot: None).picture([seen]).renderables[-1])


def lines_of(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_json_lines_have_the_documented_fields(capsys: pytest.CaptureFixture[str]) -> None:
    watcher = Lines(Session(json=True), lambda _snapshot: None)
    watcher.look([snapshot()])
    watcher._last = 0.0  # a second has passed
    watcher.look([snapshot(stage("probe", 1, 1, 0, 0.0), stage("transcribe", 31, 42, 2, 2.0))])
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
    watcher = Lines(Session(json=True), lambda _snapshot: None)
    watcher.look([snapshot()])
    for _ in range(3):
        watcher.look([snapshot(stage("probe", 1, 1, 0, 0.0), state=JobState.COMPLETED)])
    types = [line["message_type"] for line in lines_of(capsys)]
    assert types == ["status", "stage"]


def test_a_log_gets_a_header_the_estimate_and_a_line_per_finished_stage(capsys: pytest.CaptureFixture[str]) -> None:
    watcher = Plain(Session(), lambda _snapshot: (1140.0, 1560.0))
    watcher.look([snapshot()])
    for _ in range(2):
        watcher.look([snapshot(stage("probe", 1, 1, 0, 0.0), stage("transcribe", 31, 42))])
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        "two_cities.mkv  41:38  1920x1080 25 fps  searchable, 42 chunks",
        "estimate 19-26 min (p50-p90 on this machine)",
        "probe done, 1/1  3.1x",
    ]


def test_with_several_films_every_line_of_a_log_names_its_film(capsys: pytest.CaptureFixture[str]) -> None:
    watcher = Plain(Session(), lambda _snapshot: None)
    one, other = (
        snapshot(stage("probe", 1, 1, 0, 0.0)),
        snapshot(stage("probe", 1, 1, 0, 0.0), id="job_b", name="b.mp4"),
    )
    watcher.look([snapshot(), snapshot(id="job_b", name="b.mp4")])
    watcher.look([one, other])
    watcher.look([one, other])
    said = [line for line in capsys.readouterr().err.splitlines() if " done" in line]
    assert said == ["two_cities.mkv: probe done, 1/1  3.1x", "b.mp4: probe done, 1/1  3.1x"]


def test_quiet_is_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    Plain(Session(quiet=True), lambda _snapshot: (1.0, 2.0)).look([snapshot(stage("probe", 1, 1))])
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
        watcher.look([snapshot()])
    assert capsys.readouterr().err.splitlines() == [NEARLY_FULL, "disk space is available again: continuing"]


def test_programs_hear_that_the_disk_is_nearly_full_and_what_is_kept_free(capsys: pytest.CaptureFixture[str]) -> None:
    watcher = Lines(Session(json=True, progress=False), lambda _snapshot: None)
    watcher.disk_space(FULL)
    watcher.look([snapshot()])
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
    assert NEARLY_FULL in [str(line) for line in bars.picture([snapshot()]).renderables]
    bars.disk_space(DiskSpace(enough=True))
    assert NEARLY_FULL not in [str(line) for line in bars.picture([snapshot()]).renderables]


def test_stages_that_were_over_at_the_first_look_are_no_news(capsys: pytest.CaptureFixture[str]) -> None:
    plain, program = (
        Plain(Session(), lambda _snapshot: None),
        Lines(Session(json=True, progress=False), lambda _snapshot: None),
    )
    develop = [stage("develop", 3, 5), stage("develop", 5, 5)]
    for one in develop:
        for watcher in (plain, program):
            watcher.look([snapshot(stage("probe", 1, 1, 0, 0.0), one)])
    captured = capsys.readouterr()
    assert [line for line in captured.err.splitlines() if "done" in line] == ["develop done, 5/5  3.1x"]
    assert [json.loads(line)["stage"] for line in captured.out.splitlines()] == ["develop"]


def test_a_second_signal_stops_at_once_and_a_log_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    watcher = Plain(Session(), lambda _snapshot: None)
    for _ in range(2):
        watcher.stop()
        watcher.look([snapshot()])
        watcher.look([snapshot()])
    assert capsys.readouterr().err.splitlines() == [
        "stopping after the running chunks; Ctrl-C again stops at once",
        "stopping at once",
    ]


def unmeasured(done: int, running: float = 0.0, elapsed: float = 87.0, **more: Any) -> JobProgress:
    one = replace(stage("transcribe", done, 4, 1, running), remaining=None)
    return replace(snapshot(one, **more), remaining=None, elapsed=elapsed)


def test_until_something_is_measured_the_estimate_says_what_is_left_of_a_film() -> None:
    heads = Heads(lambda *_words: None, lambda _snapshot: (90.0, 120.0))
    seen = [heads.look([unmeasured(1, elapsed=at)])[0].remaining for at in (2.0, 32.0, 102.0, 200.0)]
    assert seen == [(90.0, 120.0), (60.0, 90.0), (0.0, 20.0), None]
    measured = snapshot(stage("transcribe", 2, 4))
    assert heads.look([measured]) == [measured]


def test_an_estimate_that_comes_with_the_first_chunks_is_told_once_and_not_at_the_end() -> None:
    said, answers = list[str](), [None, (90.0, 120.0)]
    heads = Heads(lambda *words: said.append(str(words)), lambda _snapshot: answers.pop(0))
    measured = snapshot(stage("transcribe", 1, 4))
    for one in (unmeasured(0), unmeasured(1), measured, measured):
        heads.look([one])
    _header, estimate = said
    assert "estimate 90-120 s (p50-p90 on this machine)" in estimate
    assert not answers
    late = Heads(lambda *words: said.append(str(words)), lambda _s: None)
    for one in (unmeasured(0, id="job_b"), snapshot(stage("transcribe", 4, 4), id="job_b")):
        late.look([one])
    assert len(said) == 3, "a header, and no estimate of what is over"


def test_films_that_take_turns_use_up_their_estimates_by_what_is_done() -> None:
    heads, other = Heads(lambda *_words: None, lambda _snapshot: (90.0, 120.0)), unmeasured(0, id="job_b")
    seen = [heads.look([unmeasured(*at), other])[0].remaining for at in ((1, 0.0), (2, 0.5))]
    assert seen == [(90.0, 120.0), (45.0, 60.0)]


def test_when_all_is_over_nothing_is_left() -> None:
    over = replace(snapshot(stage("develop", 5, 5), state=JobState.COMPLETED), remaining=None)
    assert total_of([over]).remaining == (0.0, 0.0)
