"""Work that gave up, as people see it: every distinct reason with its count, hint and verdict, the newest first."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rushes.domain.task import Failure
from rushes.surfaces.cli.main import main
from tests.unit.cli_worker import films, kill

Invoke = Callable[..., Result]
TEXT = Failure(
    "BadMedia", "it is a \x1b[31mtext", "Name a film.", "will not work without a change", ("line one", "line two")
)
SHORT = Failure("BadMedia", "it ends too early", "Copy it again.", "works after you fix the cause")
GONE = Failure("SourceMissing", "it is not there", "Put it back.", "works after you fix the cause")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def rushes(home: Path, tmp_path: Path) -> Invoke:
    def go(*args: str) -> Result:
        return CliRunner().invoke(main, ["--home", str(home), *args])

    go("add", *(str(film) for film in films(tmp_path, 4)))
    kill(home, TEXT, TEXT, SHORT, GONE)
    return go


def test_rates_of_failures_and_retries_are_told_by_stage(rushes: Invoke) -> None:
    (row,) = [json.loads(line) for line in rushes("--json", "failed", "rates").stdout.splitlines()]
    told = {name: row[name] for name in ("stage", "attempts", "failures", "retries", "dead", "failure_rate")}
    assert told == {"stage": "probe", "attempts": 4, "failures": 4, "retries": 0, "dead": 4, "failure_rate": 1.0}
    assert "100.0%" in rushes("failed", "rates").stdout


def test_each_distinct_reason_of_a_class_is_told_with_its_count_hint_and_verdict(rushes: Invoke) -> None:
    lines = [line.split("  film")[0] for line in rushes("failed", "ls").stdout.splitlines()]
    assert lines[0] == "BadMedia  3 tasks"
    assert [line for line in lines if line.startswith("why")] == [
        "why    it ends too early",
        "why    2 times: it is a [31mtext",
        "why    it is not there",
    ]
    at = lines.index("why    2 times: it is a [31mtext")
    assert lines[at + 1 : at + 3] == ["means  will not work without a change", "do     Name a film."]
    assert "line two" not in "\n".join(lines)
    assert "line two" in rushes("failed", "ls", "--verbose").stdout


def test_programs_get_one_line_for_each_class(rushes: Invoke) -> None:
    media, source = (json.loads(row) for row in rushes("failed", "ls", "--json").stdout.splitlines())
    assert (media["message_type"], media["class"], media["count"]) == ("failure", "BadMedia", 3)
    assert [(c["message"], c["count"]) for c in media["causes"]] == [(SHORT.message, 1), (TEXT.message, 2)]
    assert source["causes"][0]["tasks"][0]["stage"] == "probe"


def test_what_was_put_away_worries_the_doctor_no_more(rushes: Invoke) -> None:
    assert "4 failed tasks" in rushes("doctor").stdout
    assert rushes("failed", "discard", "--class", "BadMedia").stdout == "3 tasks dismissed\n"
    assert "1 failed task\n" in rushes("doctor").stdout
    rushes("failed", "discard")
    assert "no failed tasks" in rushes("doctor").stdout
    assert rushes("failed", "ls").stdout == "no failed tasks\n"


def test_a_class_is_retried_alone(rushes: Invoke) -> None:
    assert rushes("failed", "retry", "--class", "SourceMissing").stdout == "1 task will be retried\n"
    assert rushes("failed", "ls", "--class", "SourceMissing").exit_code == 6
