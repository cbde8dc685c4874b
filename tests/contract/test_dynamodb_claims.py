"""Claims on DynamoDB that break off anywhere: no task stays leased to somebody who does not know of it."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aws_kit
import pytest
from botocore.exceptions import ReadTimeoutError  # type: ignore[import-untyped]
from ledger_kit import Clock, claim, done, film, first_of, new_job, opened, who, worker

from rushes.aws.client import Service
from rushes.aws.table import TransactionCancelled
from rushes.domain.errors import LeaseLost, StoreAway
from rushes.domain.event import EventType
from rushes.domain.task import Lease, TaskState, Verdict
from rushes.ledger.dynamodb import DynamoLedger
from rushes.ledger.dynamodb.rows import TOMBSTONE_SECONDS, JobRow
from rushes.ledger.dynamodb.store import Heartbeats, Store
from rushes.ledger.dynamodb.sweep import STRAYS_SECONDS

pytestmark = pytest.mark.skipif(aws_kit.MOTO, reason="moto: no PartiQL: claims are sent one by one here")
NEW, OTHER = new_job(), new_job("other")
PLAN = film(NEW, 4)


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """A client that this test may break, and that gives up soon."""
    service = aws_kit.breakable("dynamodb")
    monkeypatch.setattr(service, "_patience", 0.3)
    yield service
    aws_kit.mend(service)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger(service: Service, clock: Clock, tmp_path: Path) -> DynamoLedger:
    """A ledger with four tasks that are ready, and a worker."""
    ledger = DynamoLedger(aws_kit.table(tmp_path, clock.wall, service), clock.now)
    opened(ledger, NEW, PLAN)
    worker(ledger)
    return ledger


@pytest.fixture
def others(ledger: DynamoLedger, clock: Clock, tmp_path: Path) -> DynamoLedger:
    """The same ledger in another process."""
    return DynamoLedger(aws_kit.table(tmp_path, clock.wall), clock.now, heartbeats=Heartbeats(clock.now))


def names(leases: tuple[Lease, ...]) -> list[tuple[str, int]]:
    return [(lease.task, lease.fence) for lease in leases]


def holders(ledger: DynamoLedger) -> list[str | None]:
    return [task.worker for task in ledger.tasks(NEW.id, stage="develop").rows]


def first_time(do: Callable[[], object]) -> Callable[..., None]:
    left = [do]
    return lambda **_: (left.pop()(), None)[1] if left else None


def test_who_has_seen_nothing_of_a_job_claims_its_tasks(others: DynamoLedger) -> None:
    worker(others, "w2")
    assert names(claim(others, "w2", 4)) == [(draft.id, 1) for draft in PLAN[:4]]
    assert {*others.job_rows([NEW.id, "job_none"], 30.0)} == {NEW.id}


def test_tasks_of_a_job_that_was_stopped_a_moment_ago_are_not_leased(
    ledger: DynamoLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = Store.job_rows

    def stopped(store: Store, *asked: Any) -> dict[str, JobRow]:
        return {id: replace(row, paused=1) for id, row in rows(store, *asked).items()}

    monkeypatch.setattr(Store, "job_rows", stopped)
    assert claim(ledger, n=4) == ()
    assert holders(ledger) == [None] * 4


def test_of_rows_in_the_way_only_those_that_are_there_are_remembered(
    ledger: DynamoLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, gone = ("job#a", "job"), ("job#b", "job")
    refusals = [TransactionCancelled({here: {"pk": "job#a", "sk": "job"}, gone: None})]

    def commit(_verb: str) -> None:
        if refusals:
            raise refusals.pop()

    monkeypatch.setattr(Store, "begin", lambda *_: SimpleNamespace(commit=commit, written={}))
    assert ledger.change("test", lambda _: "written") == "written"
    assert {*ledger.recall([here, gone])} == {here}


# What was claimed and not handed out
def test_what_is_beyond_a_claim_stays_for_the_next_one(service: Service, ledger: DynamoLedger) -> None:
    aws_kit.cut(service, "BatchExecuteStatement")
    with pytest.raises(StoreAway):
        claim(ledger, n=4)
    assert ledger.claim("w1", ["now"], 1) == ()  # none of them is in that lane
    assert len(claim(ledger)) == 1
    rest = claim(ledger, n=4)
    assert [fence for _, fence in names(rest)] == [1, 1, 1]
    assert ledger.complete("w1", [done(lease) for lease in rest]).verdicts == (Verdict.OK,) * 3
    before = service.requests.total()
    assert claim(ledger, n=4) == ()
    assert service.requests.total() - before == 1  # nothing is in doubt any more


def test_a_first_task_is_kept_when_the_others_cannot_be_had(service: Service, ledger: DynamoLedger) -> None:
    ledger.submit(OTHER, first_of(OTHER))
    aws_kit.throttle(service, "BatchExecuteStatement", 10**6)
    with pytest.raises(StoreAway):
        claim(ledger, n=5)
    aws_kit.mend(service)
    assert (first_of(OTHER).id, 1) in names(claim(ledger, n=5))


def test_what_was_taken_is_kept_when_the_second_look_fails(
    service: Service, ledger: DynamoLedger, others: DynamoLedger
) -> None:
    worker(others, "quicker")

    def lose_one() -> None:
        assert len(claim(others, "quicker", hinted=[PLAN[0].id])) == 1
        aws_kit.throttle(service, "Query", 10**6)

    aws_kit.hook(service, "before-call.dynamodb.BatchExecuteStatement", first_time(lose_one))
    with pytest.raises(StoreAway):
        claim(ledger, n=3)
    aws_kit.mend(service)
    assert holders(ledger) == ["quicker", "w1", "w1", None]
    assert names(claim(ledger, n=2)) == [(PLAN[1].id, 1), (PLAN[2].id, 1)]


def test_what_was_taken_is_kept_when_its_job_cannot_be_read(
    service: Service, ledger: DynamoLedger, clock: Clock
) -> None:
    def late(_: Any) -> None:
        clock.advance(11)  # what is remembered of the job is too old
        aws_kit.throttle(service, "BatchGetItem", 10**6)

    aws_kit.answer(service, "BatchExecuteStatement", 1, late)
    with pytest.raises(StoreAway):
        claim(ledger, n=2)
    aws_kit.mend(service)
    assert names(claim(ledger, n=2)) == [(PLAN[0].id, 1), (PLAN[1].id, 1)]


def test_a_first_task_whose_lease_was_never_answered_comes_with_the_next_claim(
    service: Service, ledger: DynamoLedger
) -> None:
    ledger.submit(OTHER, first_of(OTHER))
    aws_kit.cut(service, "TransactWriteItems", 10**6)
    with pytest.raises(StoreAway):
        claim(ledger, hinted=[first_of(OTHER).id])
    aws_kit.mend(service)
    assert names(claim(ledger)) == [(first_of(OTHER).id, 1)]


def test_a_first_task_is_leased_once_although_the_server_forgot_the_request(
    service: Service, ledger: DynamoLedger
) -> None:
    ledger.submit(OTHER, first_of(OTHER))
    aws_kit.forget_tokens(service)
    aws_kit.cut(service, "TransactWriteItems")
    assert names(claim(ledger, hinted=[first_of(OTHER).id])) == [(first_of(OTHER).id, 1)]


def test_a_take_that_is_carried_out_late_is_found(service: Service, ledger: DynamoLedger) -> None:
    under_way: list[Any] = []

    def stuck(params: Any, **_: Any) -> None:
        under_way.append(json.loads(params["body"]))
        raise ReadTimeoutError(endpoint_url="stuck")

    aws_kit.hook(service, "before-call.dynamodb.BatchExecuteStatement", stuck)
    with pytest.raises(StoreAway):
        claim(ledger, hinted=[PLAN[0].id])
    aws_kit.mend(service)
    assert names(claim(ledger, hinted=[PLAN[1].id])) == [(PLAN[1].id, 1)]
    service.ask("batch_execute_statement", **under_way[0])
    assert names(claim(ledger, hinted=[PLAN[2].id])) == [(PLAN[0].id, 1)]


def test_what_nobody_asks_for_is_given_back(service: Service, ledger: DynamoLedger, clock: Clock) -> None:
    aws_kit.cut(service, "BatchExecuteStatement")
    with pytest.raises(StoreAway):
        claim(ledger, n=2)
    for _ in range(2):
        clock.advance(10)
        ledger.renew(who(), {}, {})
    assert holders(ledger) == ["w1", "w1", None, None]
    clock.advance(10)
    ledger.renew(who(), {}, {})
    assert holders(ledger) == [None] * 4
    assert len(ledger.events(NEW.id, types={EventType.GIVEN_BACK})) == 2
    assert [fence for _, fence in names(claim(ledger, n=2))] == [2, 2]


# Who was frozen between looking at its own lease and writing
@pytest.fixture
def frozen(service: Service, ledger: DynamoLedger, others: DynamoLedger, clock: Clock) -> Callable[[float], None]:
    """The next claim is frozen for so long just before it writes; the others sweep."""

    def sleep(seconds: float) -> None:
        def sweeps() -> None:
            for _ in range(3):
                others.sweep()
                clock.advance(31)
            others.sweep()
            assert [w for w in others.workers() if w.incarnation.id == "w1"] == []
            clock.advance(seconds)

        others.sweep()
        aws_kit.hook(service, "before-call.dynamodb.BatchExecuteStatement", first_time(sweeps))

    return sleep


def test_who_was_frozen_in_a_claim_is_handed_nothing_and_gives_it_back(
    ledger: DynamoLedger, frozen: Callable[[float], None]
) -> None:
    frozen(0)
    with pytest.raises(LeaseLost):
        claim(ledger, n=2)
    assert holders(ledger) == ["w1", "w1", None, None]
    assert ledger.renew(who(), {}, {}).gone
    assert holders(ledger) == [None] * 4


@pytest.mark.parametrize("seconds", [0, TOMBSTONE_SECONDS])
def test_what_somebody_leased_long_after_it_was_over_is_freed(
    ledger: DynamoLedger, others: DynamoLedger, clock: Clock, frozen: Callable[[float], None], seconds: float
) -> None:
    frozen(seconds)
    with pytest.raises(LeaseLost):
        claim(ledger, n=2)
    del ledger  # killed before it could give anything back
    clock.advance(STRAYS_SECONDS)
    worker(others, "w2")
    assert others.sweep().released == 2
    assert len(claim(others, "w2", n=4)) == 4


def test_what_the_living_hold_is_no_stray(ledger: DynamoLedger, others: DynamoLedger, clock: Clock) -> None:
    leases = claim(ledger, n=2)
    for _ in range(int(STRAYS_SECONDS) // 10 + 1):
        clock.advance(10)
        ledger.renew(who(), dict(names(leases)), {})
    assert others.sweep().released == 0
    assert len(ledger.tasks(NEW.id, TaskState.LEASED).rows) == 2
