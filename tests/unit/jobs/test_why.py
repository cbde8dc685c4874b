"""Why a task is not running: a closed list of reasons, one test each."""

import json
from dataclasses import replace
from typing import Any

import pytest

from rushes.domain.job import Counts, Job, JobState
from rushes.domain.task import Failure, Task, TaskState
from rushes.domain.worker import ENGINE_AWAY, Incarnation, Worker
from rushes.jobs.why import Reason, reason_of

JOB = Job("job_a", "me", "", "r", "film.mp4", "searchable", "{}", "{}", JobState.RUNNING, False, 0, Counts(), 1, "")
FAILURE = Failure("BadMedia", "it is damaged", "copy it again", "will not work without a change")


def task(
    state: TaskState = TaskState.READY, needs: tuple[str, ...] = (), name: str = "job_a.shots", **more: Any
) -> Task:
    spec = json.dumps({"needs": list(needs), "results": {}})
    base = Task(name, "job_a", name.split(".")[1], None, "cpu", 1, state, 1, 0, 0, len(needs), spec)
    return replace(base, **more)


def worker(**more: Any) -> Worker:
    who = Incarnation("w", "host", "boot", 1, "1", ("cpu",), 1)
    return replace(Worker(who, True, False, "", (), 20.0, ""), **more)


BOTH_LANES = replace(worker().incarnation, lanes=("cpu", "gpu"))
NEED = task(TaskState.READY, name="job_a.develop.00001")

CASES = {
    Reason.PAUSED: (task(), replace(JOB, paused=True), [], [worker()]),
    Reason.CANCELLED: (task(TaskState.CANCELLED), replace(JOB, state=JobState.CANCELLED), [], [worker()]),
    Reason.STAGE_CANCELLED: (task(TaskState.CANCELLED), JOB, [], [worker()]),
    Reason.DEAD: (task(TaskState.DEAD, failure=FAILURE), JOB, [], [worker()]),
    Reason.NEED_IS_DEAD: (
        task(TaskState.WAITING, (NEED.id,)),
        JOB,
        [replace(NEED, state=TaskState.DEAD)],
        [worker()],
    ),
    Reason.NEEDS_WORK: (task(TaskState.WAITING, (NEED.id,)), JOB, [NEED], [worker()]),
    Reason.NEEDS_FILE: (task(TaskState.WAITING), JOB, [], [worker()]),
    Reason.BACKS_OFF: (task(failure=FAILURE, failures=1, due_in=23.0), JOB, [], [worker()]),
    Reason.ANSWER_PENDING: (task(failures=1, due_in=23.0), JOB, [], [worker()]),
    Reason.ENGINE_AWAY: (task(lane="gpu"), JOB, [], [worker(incarnation=BOTH_LANES, note=ENGINE_AWAY)]),
    Reason.NO_WORKER: (task(), JOB, [], [worker(alive=False)]),
    Reason.WORKERS_DRAIN: (task(), JOB, [], [worker(draining=True)]),
    Reason.DISK_FULL: (task(), JOB, [], [worker(note="disk full")]),
    Reason.NO_FREE_SLOT: (task(), JOB, [], [worker(held=("job_b.x",))]),
    Reason.NEXT: (task(), JOB, [], [worker()]),
}


def test_every_reason_has_its_case() -> None:
    assert set(CASES) == set(Reason) - {Reason.NO_MODEL}  # models are known above: tests/acceptance/test_library.py


@pytest.mark.parametrize("reason", list(CASES))
def test_each_reason_is_found_and_says_more(reason: Reason) -> None:
    one, job, others, workers = CASES[reason]
    found, detail = reason_of(one, job, {t.id: t for t in others}, workers)
    assert found is reason
    assert detail


def test_a_task_of_lane_gpu_is_next_where_workers_of_lane_cpu_take_it() -> None:
    one = task(lane="gpu")
    assert reason_of(one, JOB, {}, [worker()])[0] is Reason.NEXT
    busy = replace(worker(), incarnation=Incarnation("g", "host", "boot", 2, "1", ("gpu",), 1), held=("job_b.x",))
    assert reason_of(one, JOB, {}, [worker(), busy])[0] is Reason.NO_FREE_SLOT


def test_a_need_that_is_not_done_is_counted() -> None:
    one = task(TaskState.WAITING, (NEED.id, "job_a.develop.00002"))
    others = {NEED.id: NEED, "job_a.develop.00002": replace(NEED, state=TaskState.DONE)}
    assert reason_of(one, JOB, others, [worker()]) == (Reason.NEEDS_WORK, "develop (1 left)")


def test_a_backing_off_task_says_which_attempt_is_next() -> None:
    one, job, _, workers = CASES[Reason.BACKS_OFF]
    assert reason_of(one, job, {}, workers)[1] == "23 s, then attempt 2 of 4 (BadMedia)"


def test_a_task_that_no_service_answered_waits_for_one_and_work_without_models_does_not() -> None:
    away = worker(incarnation=BOTH_LANES, note=ENGINE_AWAY)
    assert reason_of(task(due_in=5.0), JOB, {}, [away])[0] is Reason.ENGINE_AWAY
    assert reason_of(task(lane="cpu"), JOB, {}, [away])[0] is Reason.NEXT
    assert reason_of(task(lane="gpu"), JOB, {}, [away, replace(away, note="")])[0] is Reason.NEXT
