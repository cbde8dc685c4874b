"""Watching what is told of attempts: of jobs in queues of one's own, and of footage."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rushes.domain.errors import NotFound
from rushes.domain.job import JobCommand
from rushes.domain.task import Failure, Finish
from rushes.ledger.sql import SqlLedger
from rushes.library import Library
from rushes.library.job_events import (
    EventFilter,
    EventPublisher,
    EventWatch,
    WorkEvent,
    WorkEventType,
    follow,
    read_place,
    watch,
)
from rushes.library.queues import QueuedJob, Queues
from rushes.metrics import PROCESS, text
from tests.api.kit import WORKER, begin, enter, submit
from tests.promql import scraped

OUTPUT, LEASE = WorkEventType.OUTPUT_DATA, 600
BROKEN = Failure("BadMedia", "it is broken", "", "never works")


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    options = {"queues": ("default", "the test"), "owner": ("me", "the test")}
    with Library(tmp_path / "home", options=options) as library:
        yield library


@pytest.fixture
def queues(library: Library) -> Queues:
    return library.queues


def taken(queues: Queues) -> QueuedJob:
    (found,) = queues.dequeue("default", 1, LEASE)
    return found


def tell(queues: Queues, job: QueuedJob, *numbers: int) -> None:
    EventPublisher(queues).publish(job.token, [WorkEvent(n, n, OUTPUT, b"%d" % n) for n in numbers])


def heard(found: EventWatch) -> list[tuple[int, int]]:
    return [(event.attempt, event.sequence) for event in found.look()]


def test_a_new_attempt_is_told_after_the_whole_of_the_one_before(queues: Queues) -> None:
    queues.enqueue("default", "one", b"")
    first = taken(queues)
    tell(queues, first, *range(1, 6))
    found = watch(queues.home, first.job, from_sequence=4)
    assert heard(found) == [(1, 4), (1, 5)]
    tell(queues, first, 6)
    queues.give_back(first.token)
    second = taken(queues)
    assert heard(found) == [(1, 6)], "nothing is told of the new one yet"
    tell(queues, second, 1, 2)
    resumed = watch(queues.home, first.job, from_sequence=2, from_attempt=1)
    assert heard(found) == heard(resumed) == [(2, 1), (2, 2)], "the number was about the attempt before"
    assert heard(watch(queues.home, first.job, from_sequence=3)) == []
    queues.give_back(second.token)
    second = taken(queues)
    tell(queues, second, *range(1, 9))
    assert heard(found) == [(3, n) for n in range(1, 9)], "also if it has told more than was seen of the one before"
    queues.complete(second.token, second.job)
    assert heard(found) == []
    assert found.over


def test_a_look_ends_also_if_its_worker_never_stops_to_tell(queues: Queues, monkeypatch: pytest.MonkeyPatch) -> None:
    queues.enqueue("default", "one", b"")
    job = taken(queues)
    tell(queues, job, 1)
    found, read, last = watch(queues.home, job.job), SqlLedger.events, 1

    def told_meanwhile(ledger: SqlLedger, *asked: Any) -> Any:
        nonlocal last
        lines, last = read(ledger, *asked), last + 1
        if last < 100:
            tell(queues, job, last)
        return lines

    monkeypatch.setattr(SqlLedger, "events", told_meanwhile)
    told = [*heard(found), *heard(found)]
    assert told == [(1, number) for number in range(1, len(told) + 1)]
    assert 1 < len(told) < 10
    assert found.more


def test_whoever_reads_too_slowly_is_told_what_is_gone_and_counted(queues: Queues) -> None:
    queues.enqueue("default", "one", b"")
    job = taken(queues)
    tell(queues, job, 1)
    found = watch(queues.home, job.job)
    assert heard(found) == [(1, 1)]
    before = _overflows()
    tell(queues, job, *range(2, 900))
    tell(queues, job, *range(900, 1500))
    first, *rest = found.look()
    assert (first.sequence, first.before, len(rest)) == (500, 500, 999)
    assert not any(event.before for event in rest)
    assert _overflows() == before + 1
    assert [event.before for event in watch(queues.home, job.job).look()][:2] == [500, 0]
    assert next(watch(queues.home, job.job, from_sequence=600).look()).before == 0


def _overflows() -> float:
    return sum(scraped(text(PROCESS.families())).get("rushes_channels_overflow_total", {}).values())


def test_what_a_worker_left_out_is_no_gap(queues: Queues) -> None:
    queues.enqueue("default", "one", b"")
    job = taken(queues)
    tell(queues, job, 1, 2, 40, 41)
    found = list(watch(queues.home, job.job).look())
    assert [(event.sequence, event.before) for event in found] == [(1, 0), (2, 0), (40, 0), (41, 0)]


def test_events_that_have_expired_are_told_as_truncated(queues: Queues) -> None:
    queues.enqueue("default", "one", b"")
    job = taken(queues)
    tell(queues, job, 1, 2)
    with sqlite3.connect(queues.home.folder / "ledger.sqlite") as file:
        file.execute("UPDATE log SET at = at - 60000")
    file.close()
    tell(queues, job, 3)
    queues.complete(job.token, job.job)
    queues.home.ledger.control(job.job, JobCommand.TRIM, 30)
    assert [(event.sequence, event.before) for event in follow(watch(queues.home, job.job))] == [(3, 3)]


def test_types_and_times_are_filtered(queues: Queues) -> None:
    queues.enqueue("default", "one", b"")
    job = taken(queues)
    start = WorkEvent(1, 1000, WorkEventType.PROCESS_START, b"")
    EventPublisher(queues).publish(job.token, [start, WorkEvent(2, 2000, OUTPUT, b""), WorkEvent(3, 3000, OUTPUT, b"")])
    assert heard(watch(queues.home, job.job, wanted=EventFilter(2000))) == [(1, 2), (1, 3)]
    assert heard(watch(queues.home, job.job, wanted=EventFilter(0, [WorkEventType.PROCESS_START]))) == [(1, 1)]
    assert heard(watch(queues.home, job.job, wanted=EventFilter(3000, [WorkEventType.PROCESS_START]))) == []


def test_attempts_of_our_slots_start_print_and_end_or_fail(library: Library) -> None:
    ledger = library.home.ledger
    job = submit(ledger, "film", 2).id
    seen = ledger.job(job).last_event
    (first, second) = ledger.claim(WORKER, ["cpu"], 2)
    ledger.log(first.task, first.fence, 1, ["one", "two"])
    found = watch(library.home, job, seen + 1)
    told = [(e.task, e.type.value, e.data, e.number) for e in found.look()]
    assert told == [
        (first.task, "process_start", b"", 0), (first.task, "output_data", b"one", 0),
        (first.task, "output_data", b"two", 0), (second.task, "process_start", b"", 0),
    ]  # fmt: skip
    ledger.log(first.task, first.fence, 3, ["three"])
    ledger.complete(WORKER, [Finish(first.task, first.fence)])
    ledger.fail(WORKER, second.task, second.fence, BROKEN, 0.0)
    ended = [(e.task, e.type.value, e.sequence, e.number) for e in found.look()]
    assert ended == [
        (first.task, "output_data", 4, 0), (first.task, "process_end", 5, seen + 1),
        (second.task, "process_error", 2, seen + 2),
    ]  # fmt: skip
    ledger.sweep()
    (again,) = ledger.claim(WORKER, ["cpu"], 2)
    ledger.complete(WORKER, [Finish(again.task, again.fence)])
    rest = list(follow(found))
    assert [(e.attempt, e.type.value) for e in rest] == [(2, "process_start"), (2, "process_end")]
    assert found.over
    resumed = list(follow(watch(library.home, job, *read_place(rest[-1].place)[::-1][:1])))
    assert resumed == [], "whoever goes on after the last place misses and repeats nothing"
    whole = [(e.type.value, e.attempt) for e in follow(watch(library.home, job))]
    assert whole[2:] == [
        ("process_start", 1), ("output_data", 1), ("output_data", 1), ("output_data", 1), ("process_end", 1),
        ("process_start", 1), ("process_error", 1), ("process_start", 2), ("process_end", 2),
    ]  # fmt: skip


def test_an_attempt_that_ends_while_one_looks_is_told_once(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = library.home.ledger
    job = submit(ledger, "film", 1).id
    (lease,) = ledger.claim(WORKER, ["cpu"], 1)
    found, tasks = watch(library.home, job, ledger.job(job).last_event + 1), ledger.tasks

    def and_it_ends(*asked: Any, **more: Any) -> Any:
        rows = tasks(*asked, **more)
        ledger.complete(WORKER, [Finish(lease.task, lease.fence)])
        return rows

    monkeypatch.setattr(ledger, "tasks", and_it_ends)
    assert [event.type.value for event in found.look()] == ["process_start", "process_end"]


def test_an_attempt_that_lost_its_worker_is_an_error_and_output_is_not_read_for_nothing(library: Library) -> None:
    ledger = library.home.ledger
    job = begin(ledger, "film").id
    enter(ledger)
    (lease,) = ledger.claim(WORKER, ["cpu"], 1)
    ledger.log(lease.task, lease.fence, 1, ["a line"])
    found = watch(library.home, job, wanted=EventFilter(0, [WorkEventType.PROCESS_ERROR]))
    assert list(found.look()) == []
    ledger.control(WORKER, JobCommand.LEAVE)
    ledger.sweep()
    (told,) = found.look()
    assert (told.type, told.task) == (WorkEventType.PROCESS_ERROR, lease.task)


@pytest.mark.parametrize("text", ["", "x", "1.x", "9" * 40, "1." + "9" * 40, "-1", "1.-1"])
def test_a_made_up_place_is_the_beginning(text: str) -> None:
    assert read_place(text) == (0, 0)
    assert (read_place("2.7"), read_place("7")) == ((2, 8), (0, 8))


def test_a_job_that_is_not_there_is_not_found(library: Library) -> None:
    with pytest.raises(NotFound):
        watch(library.home, "job_none")
