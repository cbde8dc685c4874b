"""Stages that misbehave: ended, recorded with signal and last lines; other work goes on and the worker lives."""

import os
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from proof.kills import ROOT, TOYS

from rushes.domain.event import EventType
from rushes.domain.job import JobState
from rushes.domain.task import Task, TaskState
from rushes.library import JobRequest, Library, RunReport

Run = Callable[..., tuple[RunReport, Task, list[Task], Library]]


@pytest.fixture
def poisoned(tmp_path: Path, toy_film: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.syspath_prepend(str(TOYS))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, (ROOT, TOYS))))

    def run(how: str, slots: int = 2, **settings: str) -> tuple[RunReport, Task, list[Task], Library]:
        for name, value in settings.items():
            monkeypatch.setenv(f"RUSHES_{name.upper()}", value)
        library = Library(tmp_path / "home")
        wanted = JobRequest(only=("poison",), chunk="5", options={"poison": {"how": how}})
        ran = library.run([toy_film], wanted, slots=slots)
        tasks = [t for t in library.jobs.tasks(ran.jobs[0].id) if t.stage == "poison"]
        (bad,) = [t for t in tasks if t.chunk == 1]
        return ran, bad, [t for t in tasks if t.chunk != 1], library

    return run


@pytest.mark.parametrize(
    ("how", "kind", "signal", "settings"),
    [
        ("segfault", "SlotDied", 11, {}),
        ("exit0", "SlotDied", None, {}),
        ("leak", "SlotTooBig", 9, {"slot_memory_mb": "600"}),
        ("bug", "ZeroDivisionError", None, {}),
        ("later", "TryAgain", None, {}),
    ],
)
def test_a_stage_that_misbehaves_is_ended_and_tried_later(
    how: str, kind: str, signal: int | None, settings: dict[str, str], poisoned: Run
) -> None:
    ran, bad, good, library = poisoned(how, **settings)
    assert all(t.state is TaskState.DONE for t in good)
    assert bad.state is TaskState.READY
    assert bad.failures == 1
    assert bad.failure is not None
    assert (bad.failure.kind, bad.failure.signal) == (kind, signal)
    assert ran.exit_code == 5
    assert ran.due_in is not None
    assert 0 < ran.due_in <= 72
    library.close()


def test_what_never_ends_is_ended_with_everything_that_it_started(poisoned: Run, tmp_path: Path) -> None:
    """All at once: the limit must be longer than the good chunks take on the slowest machine."""
    ran, first, others, library = poisoned("hang stubborn fork", slots=4, task_seconds="12")
    for bad in (first, *others[1:3]):
        assert bad.failure is not None
        assert (bad.state, bad.failures) == (TaskState.READY, 1)
        assert (bad.failure.kind, bad.failure.signal) == ("SlotTimedOut", 9)
    assert {t.state for t in (others[0], *others[3:])} == {TaskState.DONE}
    assert ran.exit_code == 5
    mine = str(tmp_path)
    commands = [p.info["cmdline"] or [] for p in psutil.process_iter(["cmdline"])]  # none of one that is over
    assert [words for words in commands if any(mine in word for word in words)] == []
    library.close()


def test_the_last_lines_are_kept_with_the_failure(poisoned: Run) -> None:
    _, bad, _, library = poisoned("segfault")
    assert bad.failure is not None
    assert bad.failure.lines[-1] == "about to crash"
    assert "about to crash" in [e.data["line"] for e in library.jobs.log(bad.id)]
    library.close()


def test_the_traceback_of_a_bug_is_kept_with_the_failure(poisoned: Run) -> None:
    _, bad, _, library = poisoned("bug")
    assert bad.failure is not None
    assert bad.failure.lines[0].startswith("Traceback")
    assert bad.failure.lines[-1] == "ZeroDivisionError: a bug in the stage"
    assert library.jobs.log(bad.id)[-1].data["line"] == bad.failure.lines[-1]
    library.close()


def test_what_never_works_is_a_dead_letter_at_once_and_can_be_retried_and_discarded(poisoned: Run) -> None:
    ran, bad, good, library = poisoned("never")
    assert bad.state is TaskState.DEAD
    assert ran.exit_code == 3
    assert ran.jobs[0].state is JobState.FAILED
    assert all(t.state is TaskState.DONE for t in good)
    (group,) = library.jobs.failed.groups()
    assert (group.kind, group.causes[0].verdict) == ("NeverWorks", "will not work without a change")
    assert library.jobs.failed.retry_all("NeverWorks") == (bad.id,)
    assert library.jobs.failed.groups() == ()
    library.run([], slots=1)
    library.close()


def test_a_flooded_log_is_cut_and_the_work_ends(poisoned: Run) -> None:
    _, bad, _, library = poisoned("flood")
    assert bad.state is TaskState.DEAD
    assert len(library.jobs.log(bad.id)) <= 1000
    types = [e.type for e in library.jobs.follow(bad.job)]
    assert types.count(EventType.DEAD) == 1
    library.close()
