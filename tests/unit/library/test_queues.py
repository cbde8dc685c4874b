"""Queues of one's own: who holds a lease, for how long, and what it may report."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rushes.blobs.documents import read_document
from rushes.blobs.folder import FolderBlobs
from rushes.domain.errors import ExpiredToken, Refused, StoreAway
from rushes.domain.job import JobCommand, JobState
from rushes.jobs.intake import unseen_by_workers
from rushes.jobs.steps import cancel_step, retry_step
from rushes.jobs.why import Reason
from rushes.library import Library
from rushes.library.access.task_tokens import TokenKeys, TokenSigner
from rushes.library.job_events import MOST_EVENTS, EventPublisher, WorkEvent, WorkEventType, follow, watch
from rushes.library.queue_documents import INLINE_BYTES
from rushes.library.queues import Queues
from rushes.library.work.fleet_figures import FleetWatch
from rushes.library.work.retention import _forget
from rushes.surfaces.api.metrics import _fleet
from rushes.surfaces.cli.views.rows import next_step
from rushes.surfaces.words import active_jobs

DAY, LEASE = 86_400, 600


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with Library(tmp_path / "home", options={"queues": ("default, other", "the test")}) as library:
        yield library


@pytest.fixture
def queues(library: Library) -> Queues:
    return library.queues


def test_whoever_took_a_job_and_left_has_its_lease(queues: Queues) -> None:
    queues.enqueue("default", "one", b"")
    taking = queues.dequeue("default", 5, LEASE)
    taken = next(taking)
    taking.close()  # type: ignore[attr-defined]  # as gRPC does when its caller cancels
    queues.home.ledger.sweep()
    assert queues.complete(taken.token, taken.job).state is JobState.COMPLETED


def test_a_job_whose_parameters_cannot_be_read_is_free_at_once(queues: Queues, monkeypatch: pytest.MonkeyPatch) -> None:
    job = queues.enqueue("default", "large", b"x" * (INLINE_BYTES + 1)).id
    with monkeypatch.context() as outage:
        outage.setattr(FolderBlobs, "read", away)
        with pytest.raises(StoreAway):
            next(queues.dequeue("default", 1, LEASE))
    (taken,) = queues.dequeue("default", 1, LEASE)
    assert queues.complete(taken.token, job).state is JobState.COMPLETED
    assert queues.job(job).counts.losses == 0


def end_rows(queues: Queues) -> None:
    for worker in queues.home.ledger.workers():
        queues.home.ledger.control(worker.incarnation.id, JobCommand.LEAVE)


def nearly_end_rows(queues: Queues) -> None:
    for worker in queues.home.ledger.workers():
        queues.home.ledger.renew(replace(worker.incarnation, lease_seconds=30.0), {}, {})


@pytest.mark.parametrize("passes", [end_rows, nearly_end_rows])
def test_whoever_waited_long_gets_the_job_for_a_whole_lease(queues: Queues, passes: Callable[[Queues], None]) -> None:
    looks = 0

    def goes_on() -> bool:
        nonlocal looks
        looks += 1
        if looks == 2:
            passes(queues)
            queues.enqueue("default", "late", b"")
        return True

    (taken,) = queues.dequeue("default", 1, LEASE, 600, goes_on)
    (left,) = [worker.lease_left for worker in queues.home.ledger.workers() if worker.held]
    assert left > LEASE / 2
    assert queues.complete(taken.token, taken.job).state is JobState.COMPLETED


def test_whoever_waits_writes_its_row_once_and_looks_where_there_is_news(
    queues: Queues, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, transport, asked = queues.home.ledger, queues.home.transport, Counter[str]()
    now = [0.0]

    def counted(verb: str) -> Callable[..., Any]:
        real = getattr(ledger, verb)

        def count(*args: Any, **named: Any) -> Any:
            asked[verb] += 1
            return real(*args, **named)

        return count

    def wait(_lanes: Any, seconds: float, _n: int) -> tuple[str, ...]:
        now[0] += seconds
        if now[0] < 19.5 or now[0] > 20.5:
            return ()
        queues.enqueue("default", "late", b"")
        return ("hint",)

    for verb in ("renew", "claim", "control", "sweep"):
        monkeypatch.setattr(ledger, verb, counted(verb))
    monkeypatch.setattr(transport, "wait", wait)
    monkeypatch.setattr(transport, "look_seconds", 30.0)
    waiting = Queues(queues.home, lambda: now[0])
    (taken,) = waiting.dequeue("default", 1, LEASE, 20.0)
    assert asked["renew"] == 2, "entered, and given a whole lease with the job"
    assert (asked["control"], asked["claim"] <= 6, asked["sweep"] <= 5) == (0, True, True)
    asked.clear()
    assert list(waiting.dequeue("default", 1, LEASE, 5.0)) == []
    assert (asked["renew"], asked["control"]) == (1, 1)
    asked.clear()
    assert list(waiting.dequeue("default", 1, 4, 10.0)) == []
    assert asked["renew"] == 3, "a short lease is kept while it is waited for"
    assert queues.complete(taken.token, taken.job).state is JobState.COMPLETED


def test_work_of_more_than_a_day_is_completed_with_the_token_of_its_last_extension(
    queues: Queues, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, signer = [0.0], TokenKeys.signer

    def clocked(keys: TokenKeys) -> TokenSigner:
        return replace(signer(keys), clock=lambda: now[0])

    monkeypatch.setattr(TokenKeys, "signer", clocked)
    queues.enqueue("default", "long", b"")
    (taken,) = queues.dequeue("default", 1, LEASE)
    now[0] = DAY - 1
    token = queues.extend(taken.token, LEASE)
    now[0] = DAY
    with pytest.raises(ExpiredToken):
        queues.complete(taken.token, taken.job)
    assert queues.complete(token, taken.job).state is JobState.COMPLETED


def told(*numbers: int) -> list[WorkEvent]:
    return [WorkEvent(number, 1, WorkEventType.OUTPUT_DATA, b"%d" % number) for number in numbers]


def test_events_with_gaps_between_their_numbers_are_all_kept(queues: Queues) -> None:
    queues.enqueue("default", "one", b"")
    (taken,) = queues.dequeue("default", 1, LEASE)
    numbers = [*range(1, 31), 40, 42, 43]
    assert EventPublisher(queues).publish(taken.token, told(*reversed(numbers))) == len(numbers)
    queues.complete(taken.token, taken.job)
    found = list(follow(watch(queues.home, taken.job)))
    assert [(event.sequence, event.data) for event in found] == [(number, b"%d" % number) for number in numbers]


def test_more_events_than_are_kept_of_an_attempt_are_no_message(queues: Queues) -> None:
    queues.enqueue("default", "one", b"")
    (taken,) = queues.dequeue("default", 1, LEASE)
    with pytest.raises(Refused, match="at most 1000 events"):
        EventPublisher(queues).publish(taken.token, told(*range(1, MOST_EVENTS + 2)))
    assert EventPublisher(queues).publish(taken.token, told(*range(1, MOST_EVENTS + 1))) == MOST_EVENTS


LARGE = b"x" * (INLINE_BYTES + 1)


def test_a_job_whose_parameters_are_missing_fails_and_the_next_one_is_taken(queues: Queues) -> None:
    broken, good = queues.enqueue("default", "broken", LARGE), queues.enqueue("default", "good", b"")
    queues.home.blobs.delete(f"jobs/{broken.id}/params.json")
    assert [taken.job for taken in queues.dequeue("default", 1, LEASE)] == [good.id]
    assert queues.job(broken.id).state is JobState.FAILED
    assert not [worker for worker in queues.home.ledger.workers() if not worker.held]


def away(*_asked: object) -> None:
    raise StoreAway("the bucket does not answer")


def test_a_job_that_was_half_forgotten_leaves_nothing_to_one_of_the_same_name(
    queues: Queues, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = queues.enqueue("default", "one", LARGE).id
    (taken,) = queues.dequeue("default", 1, LEASE)
    queues.complete(taken.token, job, b"old")
    with monkeypatch.context() as outage:
        outage.setattr(FolderBlobs, "delete", away)
        with pytest.raises(StoreAway):
            _forget(queues.home, queues.job(job))
    for ended in queues.page("default").rows:  # as the next round finds them
        _forget(queues.home, ended)
    assert queues.enqueue("default", "one", LARGE + b"new").id == job
    (taken,) = queues.dequeue("default", 1, LEASE)
    assert taken.params.data == LARGE + b"new"
    queues.complete(taken.token, job, b"made")
    assert queues.result(job).data == b"made"


def test_documents_are_kept_by_a_backup_and_go_with_their_job(library: Library, tmp_path: Path) -> None:
    queues = library.queues
    job = queues.enqueue("default", "one", LARGE).id
    (taken,) = queues.dequeue("default", 1, LEASE)
    queues.complete(taken.token, job, b"made")
    library.maintenance.backup(tmp_path / "backup")
    copied = FolderBlobs(tmp_path / "backup" / "files")
    assert read_document(copied, f"jobs/{job}/params.json") == LARGE
    assert read_document(copied, f"jobs/{job}/result.1.json") == b"made"
    _forget(queues.home, queues.job(job))
    assert list(queues.home.blobs.keys("jobs/")) == []


def test_the_only_step_of_a_job_is_cancelled_and_retried_as_the_job(library: Library) -> None:
    job = library.queues.enqueue("default", "one", b"").id
    library.jobs.cancel_step(library.jobs.step(f"{job}.work"))
    assert library.queues.job(job).state is JobState.CANCELLED
    assert list(library.queues.dequeue("default", 1, LEASE)) == []
    library.jobs.retry_step(library.jobs.step(f"{job}.work"))
    assert [taken.job for taken in library.queues.dequeue("default", 1, LEASE)] == [job]


def test_a_step_whose_stage_is_not_installed_is_refused(library: Library) -> None:
    job = library.queues.enqueue("default", "one", b"")
    for steer in (cancel_step, retry_step):
        with pytest.raises(Refused, match="not installed"):
            steer(library.home, job, "removed")


def test_whoever_holds_a_job_of_a_queue_is_no_worker(library: Library) -> None:
    library.queues.enqueue("default", "one", b"")
    (taken,) = library.queues.dequeue("default", 1, LEASE)
    active = active_jobs(library.jobs.workers())
    assert (active.workers, active.busy, active.word(library.queues.job(taken.job))) == (0, 0, "running")
    assert next_step(library.jobs.workers()) == "next: rushes worker --until-idle"
    assert library.jobs.seen_workers() == []
    assert [check.detail for check in library.maintenance.doctor() if check.name == "workers"] == ["none running"]
    figures = {family.name: family.values for family in _fleet(FleetWatch(library.home).figures())}
    assert set(figures["rushes_workers"].values()) == {0}
    assert sum(figures["rushes_tasks_leased"].values()) == 1
    object.__setattr__(library.home, "site", "studio")
    assert unseen_by_workers(library.home) is None, "no worker runs that could not see a file"


def test_a_job_that_nobody_has_taken_waits_for_a_program(library: Library) -> None:
    job = library.queues.enqueue("default", "one", b"").id
    assert [(why.reason, why.detail) for why in library.jobs.why(job)] == [
        (Reason.NEXT, "a program takes it from the queue default")
    ]


def test_a_request_is_in_one_queue_alone(queues: Queues) -> None:
    first = queues.enqueue("default", "same", b"1")
    with pytest.raises(Refused, match="already used for the queue 'default'"):
        queues.enqueue("other", "same", b"2")
    assert queues.enqueue("default", "same", b"3").id == first.id
    assert list(queues.dequeue("other", 1, LEASE)) == []
