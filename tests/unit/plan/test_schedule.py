"""Slots take what is ready in plan order."""

import json

from hypothesis import given
from hypothesis import strategies as st

from rushes.plan.schedule import PlannedWork, makespan


def work(id: str, *needs: str) -> PlannedWork:
    return PlannedWork(id, "stage", 1.0, needs)


def test_tasks_share_the_slots() -> None:
    tasks = [work(id) for id in "abcd"]
    assert makespan(tasks, dict.fromkeys("abcd", 2.0), 2) == 4.0
    assert makespan(tasks, dict.fromkeys("abcd", 2.0), 8) == 2.0


def test_a_task_waits_for_its_needs_and_holds_nobody_up() -> None:
    tasks = [work("audio"), work("speech", "audio"), work("picture"), work("join", "speech", "picture")]
    seconds = {"audio": 1.0, "speech": 3.0, "picture": 2.0, "join": 1.0}
    assert makespan(tasks, seconds, 2) == 5.0
    assert makespan(tasks, seconds, 1) == 7.0


def test_a_need_that_is_done_is_met() -> None:
    assert makespan([work("join", "done before")], {"join": 1.0}, 1) == 1.0
    assert makespan([], {}, 1) == 0.0


def test_work_is_read_from_a_spec() -> None:
    spec = json.dumps({"span": [0, 120, 1, 2], "needs": ["job.audio"]})
    assert PlannedWork.of("t", "transcribe", spec, 600.0) == PlannedWork("t", "transcribe", 60.0, ("job.audio",))
    assert PlannedWork.of("t", "join", "", 600.0) == PlannedWork("t", "join", 600.0)


@given(st.lists(st.floats(0.1, 10.0), min_size=1, max_size=20), st.integers(1, 4))
def test_it_lies_between_the_work_shared_evenly_and_one_after_the_other(times: list[float], slots: int) -> None:
    seconds = {str(n): each for n, each in enumerate(times)}
    took = makespan([work(id) for id in seconds], seconds, slots)
    assert max(*times, sum(times) / slots) - 1e-6 <= took <= sum(times) + 1e-6
