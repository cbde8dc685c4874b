"""The steps of a job: its stages, in the words of the people who asked for it."""

import pytest

from rushes.domain.task import Failure, Task, TaskState
from rushes.jobs.steps import Step, _state, _step

DONE, READY, LEASED = TaskState.DONE, TaskState.READY, TaskState.LEASED
DEAD, CANCELLED, WAITING = TaskState.DEAD, TaskState.CANCELLED, TaskState.WAITING


def task(chunk: int, state: TaskState, started: str | None, finished: str | None, **more: object) -> Task:
    return Task(
        f"job_a.develop.{chunk:05d}", "job_a", "develop", chunk, "cpu", chunk, state, 1, 0, 0, 0, "{}",
        created_at=f"2026-01-0{9 - chunk}", started_at=started, finished_at=finished, **more,  # type: ignore[arg-type]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("states", "said"),
    [
        ({DONE}, "COMPLETED"),
        ({LEASED}, "RUNNING"),
        ({LEASED, DEAD}, "RUNNING"),
        ({DONE, READY}, "RUNNING"),
        ({READY}, "PENDING"),
        ({WAITING}, "PENDING"),
        ({DONE, WAITING}, "RUNNING"),
        ({DEAD, DONE}, "FAILED"),
        ({CANCELLED, DONE}, "CANCELLED"),
    ],
)
def test_the_states_of_its_tasks_are_one_state_of_the_step(states: set[TaskState], said: str) -> None:
    assert _state([task(n, state, None, None) for n, state in enumerate(states)]) == said


def step(*tasks: Task) -> Step:
    return _step("develop", tasks)


def test_a_step_begins_with_its_first_task_and_ends_with_its_last() -> None:
    adopted, last = task(0, DONE, None, "2026-01-11"), task(1, DONE, "2026-01-11", "2026-01-13")
    found = step(adopted, last, task(2, DONE, "2026-01-10", "2026-01-12"))
    assert (found.created_at, found.started_at, found.completed_at) == ("2026-01-07", "2026-01-10", "2026-01-13")
    assert (found.id, found.done, found.total, found.error) == ("job_a.develop", 3, 3, None)


def test_a_step_that_goes_on_has_not_ended_and_says_what_failed() -> None:
    broken = task(1, DEAD, "2026-01-10", None, failure=Failure("SlotDied", "it died", "", ""))
    found = step(task(0, DONE, "2026-01-10", "2026-01-12"), broken)
    assert (found.completed_at, found.done, found.error) == (None, 1, "SlotDied: it died")
