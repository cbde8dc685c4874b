"""Slots: a child each, replaced when it has run enough tasks."""

from dataclasses import dataclass
from typing import Any, cast

import pytest

from rushes.worker import slots
from rushes.worker.slots import Slots


@dataclass
class Toy:
    """A child that does nothing."""

    tasks_run: int = 0
    task: str = ""
    killed: str = ""
    closed: bool = False

    def close(self) -> None:
        self.closed = True

    def kill(self, reason: str) -> None:
        self.killed = reason


@pytest.fixture
def three(monkeypatch: pytest.MonkeyPatch) -> Slots:
    monkeypatch.setattr(slots, "Child", lambda *_: Toy())
    anything = cast(Any, None)
    return Slots(anything, anything, anything, anything, 3)


def test_a_child_that_has_run_its_tasks_is_closed_and_replaced(three: Slots) -> None:
    first = cast(Toy, three._child(0))
    first.tasks_run = 2
    assert cast(Any, three._child(0)) is first
    first.tasks_run = 3
    assert cast(Any, three._child(0)) is not first
    assert first.closed


def test_a_child_that_was_left_with_a_task_is_killed_and_replaced(three: Slots) -> None:
    first = cast(Toy, three._child(0))
    first.task = "job_a.probe"
    assert cast(Any, three._child(0)) is not first
    assert first.killed == "left behind"
