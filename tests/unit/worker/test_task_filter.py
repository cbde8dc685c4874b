"""A run takes only tasks of its own jobs; a worker without models takes only tasks that need none."""

from typing import Any

import pytest

from rushes.domain.job import JobCommand, NewJob
from rushes.domain.task import Draft, Finish
from rushes.domain.worker import Incarnation
from rushes.ledger.memory import MemoryLedger
from rushes.worker import task_filter
from rushes.worker.task_filter import FilteredTasks, TaskFilter

ME = Incarnation("m.h.b.1", "h", "b", 1, "1", ("cpu",), 2)


def claimed(ledger: MemoryLedger, tasks: FilteredTasks, lane: str = "cpu") -> list[tuple[str, int]]:
    found = tasks.find([lane], 1)
    return [(lease.task, lease.fence) for lease in ledger.claim(ME.id, [lane], 1, found)] if found else []


def test_a_job_that_was_final_and_is_tried_again_is_worked_on_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_filter, "_REOPEN_SECONDS", 0.0)
    ledger = MemoryLedger()
    ledger.renew(ME, {}, {})
    for name in "abc":
        job = f"job_{name}"
        ledger.submit(NewJob(job, "me", name, name, "r", "{}"), Draft(f"{job}.toy", job, "toy", None, "{}"))
    tasks = FilteredTasks(ledger, TaskFilter(lambda _task: True, ("job_a", "job_b")))
    ledger.control("job_a", JobCommand.CANCEL)
    (done,) = claimed(ledger, tasks)
    assert done[0] == "job_b.toy", "what is cancelled is passed over"
    assert claimed(ledger, tasks) == [], "and what others asked for"
    ledger.revive("job_a")
    ledger.complete(ME.id, [Finish(*done)])
    assert claimed(ledger, tasks) == [("job_a.toy", 1)]


def test_a_look_that_finds_nothing_asks_of_open_jobs_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = MemoryLedger()
    ledger.renew(ME, {}, {})
    for name in "ab":
        job = f"job_{name}"
        ledger.submit(NewJob(job, "me", name, name, "r", "{}"), Draft(f"{job}.toy", job, "toy", None, "{}"))
        ledger.control(job, JobCommand.CANCEL)
    tasks, asked = FilteredTasks(ledger, TaskFilter(lambda _task: True, ("job_a", "job_b"))), list[str]()
    claimed(ledger, tasks)
    monkeypatch.setattr(ledger, "job", asked.append)
    for _ in range(5):
        assert claimed(ledger, tasks) == []
    assert asked == []


def test_a_worker_without_weights_reads_no_long_queue_to_its_end_in_one_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = MemoryLedger()
    ledger.renew(ME, {}, {})
    for n in range(1000):
        job, lane = f"job_{n:04d}", "cpu" if n % 2 else "now"
        ledger.submit(NewJob(job, "me", job, job, "r", "{}"), Draft(f"{job}.toy", job, "toy", None, "{}", lane))
    tasks = FilteredTasks(ledger, TaskFilter(lambda task: task.job in ("job_0000", "job_0999")))
    pages, read = list[str](), ledger.tasks

    def counted(*args: Any, **named: Any) -> Any:
        pages.append(named.get("cursor", ""))
        return read(*args, **named)

    monkeypatch.setattr(ledger, "tasks", counted)
    found: list[str] = []
    for _ in range(10):
        found += [task for lane in ("cpu", "now") for task, _ in claimed(ledger, tasks, lane)]
        assert len(pages) <= 8, "it would lose its lease over that"
        pages.clear()
    assert sorted(found) == ["job_0000.toy", "job_0999.toy"]


def test_nothing_is_left_only_when_the_whole_queue_was_read() -> None:
    ledger = MemoryLedger()
    ledger.renew(ME, {}, {})
    for n in range(300):
        job = f"job_{n:04d}"
        ledger.submit(NewJob(job, "me", job, job, "r", "{}"), Draft(f"{job}.toy", job, "toy", None, "{}"))
    tasks = FilteredTasks(ledger, TaskFilter(lambda _task: False))
    seen = [(claimed(ledger, tasks), tasks.halfway) for _ in range(4)]
    assert seen == [([], True), ([], False)] * 2


def test_who_has_found_enough_looks_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_filter, "_PAGE", 2)
    ledger = MemoryLedger()
    for n in range(6):
        job = f"job_{n}"
        ledger.submit(NewJob(job, "me", job, job, "r", "{}"), Draft(f"{job}.toy", job, "toy", None, "{}"))
    tasks = FilteredTasks(ledger, TaskFilter(lambda _task: True))
    assert tasks.find(["cpu"], 2) == ["job_0.toy", "job_1.toy"]
    assert tasks.find(["cpu"], 3) == ["job_0.toy", "job_1.toy", "job_2.toy"], "from the same page on: none was claimed"
