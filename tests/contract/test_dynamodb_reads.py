"""What readers ask of DynamoDB costs what it answers, not all there ever was."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import aws_kit
import pytest
from ledger_kit import BROKEN, Clock, claim, done, film, new_job, opened, worker

from rushes.aws.client import Service
from rushes.domain.event import EventType
from rushes.domain.job import Job, JobState
from rushes.domain.task import Task, TaskState
from rushes.ledger.dynamodb import DynamoLedger
from rushes.ledger.pages import every
from rushes.ledger.port import Page

JOBS = [new_job(str(n)) for n in range(3)]


@pytest.fixture
def service() -> Iterator[Service]:
    service = aws_kit.breakable("dynamodb")
    yield service
    aws_kit.mend(service)


@pytest.fixture
def ledger(service: Service, tmp_path: Path) -> DynamoLedger:
    """Three jobs: one is complete, one has a dead task and one that is ready, one has only begun."""
    clock = Clock()
    ledger = DynamoLedger(aws_kit.table(tmp_path, clock.wall, service), clock.now)
    for new in JOBS:
        opened(ledger, new, film(new, 2)[:-1])
    worker(ledger)
    leases = claim(ledger, n=3)
    ledger.complete("w1", [done(lease) for lease in leases[:2]])
    ledger.fail("w1", leases[2].task, leases[2].fence, BROKEN, None)
    return ledger


def asked(service: Service) -> list[str]:
    """The bodies of all reads from now on."""
    bodies: list[str] = []

    def note(params: Any, **_: Any) -> None:
        bodies.append(params["body"].decode())

    for operation in ("Query", "BatchGetItem"):
        aws_kit.hook(service, f"before-call.dynamodb.{operation}", note)
    return bodies


@pytest.mark.parametrize(
    ("state", "tasks"),
    [
        (TaskState.DEAD, [(1, "develop")]),
        (TaskState.READY, [(1, "develop"), (2, "develop"), (2, "develop")]),
        (TaskState.LEASED, []),
        (TaskState.WAITING, []),
    ],
)
def test_no_job_that_is_complete_is_read_for_tasks_that_are_not_done(
    service: Service, ledger: DynamoLedger, state: TaskState, tasks: list[tuple[int, str]]
) -> None:
    bodies = asked(service)
    found = ledger.tasks(state=state).rows
    assert [(task.job, task.stage) for task in found] == [(JOBS[n].id, stage) for n, stage in tasks]
    assert [body for body in bodies if JOBS[0].id in body] == []
    assert {task.job for task in ledger.tasks(state=TaskState.DONE).rows} == {new.id for new in JOBS}


def test_of_a_job_that_is_complete_only_its_row_is_read_for_cancelled_tasks(
    service: Service, ledger: DynamoLedger
) -> None:
    bodies = asked(service)
    assert ledger.tasks(state=TaskState.CANCELLED).rows == ()
    (read,) = (body for body in bodies if JOBS[0].id in body)
    assert "RequestItems" in read, "one of its stages may be cancelled, which its row says"


def test_a_batch_of_log_lines_reads_one_item_however_many_there_are(service: Service, ledger: DynamoLedger) -> None:
    task = film(JOBS[0], 1)[0].id
    for first in range(1, 100, 10):
        ledger.log(task, 1, first, [str(first + n) for n in range(10)])
    sizes: list[int] = []
    aws_kit.answer(service, "Query", 1, lambda parsed: sizes.append(len(parsed["Items"])))
    before = service.requests["query"]
    ledger.log(task, 1, 101, ["101"])
    assert (sizes, service.requests["query"] - before) == ([1], 1)


def everything(ledger: DynamoLedger) -> object:
    """All lists that readers and sweeps ask for."""
    jobs = [ledger.jobs(JOBS[0].owner, state).rows for state in (None, *JobState)]
    tasks = [ledger.tasks(state=state).rows for state in (None, *TaskState)]
    events = [ledger.events(new.id) for new in JOBS]
    logs = [ledger.events(new.id, types={EventType.LOG}, task=f"{new.id}.develop.00000") for new in JOBS]
    swept = ledger.sweep()
    return jobs, tasks, events, logs, sorted(ledger.changed()[0]), ledger.workers(), swept


def test_every_list_is_read_to_its_end_however_short_a_page_is(service: Service, ledger: DynamoLedger) -> None:
    """DynamoDB ends a page at 1 MB, in the middle of any list; here at two items."""
    worker(ledger, "w2")
    (lease,) = claim(ledger, "w2", hinted=[f"{JOBS[2].id}.develop.00000"])
    for n in range(5):
        ledger.log(lease.task, lease.fence, 10 * n + 1, [f"line {n}"])
        worker(ledger, f"more{n}")
    ledger.fail("w2", lease.task, lease.fence, BROKEN, 60.0)
    whole = everything(ledger)

    def shorten(params: Any, **_: Any) -> None:
        asked = json.loads(params["body"])
        params["body"] = json.dumps({**asked, "Limit": min(2, asked.get("Limit", 2))}).encode()

    aws_kit.hook(service, "before-call.dynamodb.Query", shorten)
    assert everything(ledger) == whole


def page_of_jobs(ledger: DynamoLedger, limit: int, cursor: str) -> Page[Job]:
    return ledger.jobs(JOBS[0].owner, cursor=cursor, limit=limit)


def page_of_tasks(ledger: DynamoLedger, limit: int, cursor: str) -> Page[Task]:
    return ledger.tasks(cursor=cursor, limit=limit)


def test_pages_of_jobs_and_tasks_are_all_of_them_however_short(ledger: DynamoLedger) -> None:
    for limit in (1, 2, 3, 100):
        jobs = every(partial(page_of_jobs, ledger, limit))
        assert [job.id for job in jobs] == [new.id for new in reversed(JOBS)]
        tasks = every(partial(page_of_tasks, ledger, limit))
        assert [task.id for task in tasks] == [task.id for task in ledger.tasks().rows]
