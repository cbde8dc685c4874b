"""What is DynamoDB's own: wide plans within 90 items, debts paid later, cut replies, throttling, nobody's clock."""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import aws_kit
import pytest
from ledger_kit import BROKEN, OWNER, Clock, claim, done, film, first_of, new_job, opened, picture, result, who, worker

from rushes import telemetry
from rushes.aws.client import CONDITION, Service
from rushes.aws.table import TRANSACTION, Table
from rushes.domain.errors import LeaseLost, NotAllowed, StoreAway, WrongHome
from rushes.domain.event import EventType
from rushes.domain.job import JobCommand, JobState
from rushes.domain.keys import task_id
from rushes.domain.task import Draft, Finish, Lease, Need, TaskState, Verdict
from rushes.ledger.dynamodb import DynamoLedger, transaction
from rushes.ledger.dynamodb.store import Heartbeats
from rushes.ledger.dynamodb.transaction import PAGE
from rushes.ledger.port import Arrival
from rushes.records.dynamodb import DynamoRecords
from rushes.records.port import Conflict

E = EventType
NEW = new_job()
WIDE = 45  # three pages of 20


@pytest.fixture
def service() -> Iterator[Service]:
    """A client that this test may break; whatever it sends is within the limit."""
    service = aws_kit.breakable("dynamodb")

    def within_limits(params: Any, **_: Any) -> None:
        assert params["body"].count(b'"TableName"') <= TRANSACTION

    aws_kit.hook(service, "before-call.dynamodb.TransactWriteItems", within_limits)
    yield service
    aws_kit.mend(service)


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of 20 items, so that a plan need not be long to be wide."""
    monkeypatch.setattr(transaction, "PAGE", 20)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger(service: Service, clock: Clock, tmp_path: Path) -> DynamoLedger:
    return DynamoLedger(aws_kit.table(tmp_path, clock.wall, service), clock.now)


def fan(new: Any, width: int) -> list[Draft]:
    """One task that many need, and a join of them all."""
    probe, audio = Need(task_id(new.id, "probe", None)), task_id(new.id, "audio", None)
    parts = [
        Draft(task_id(new.id, "hear", n), new.id, "hear", n, "{}", "cpu", n + 2, (Need(audio), probe))
        for n in range(width)
    ]
    join = Draft(task_id(new.id, "join", None), new.id, "join", None, "{}", "cpu", width + 2, _needs(parts))
    return [Draft(audio, new.id, "audio", None, "{}", "cpu", 1, (probe,)), *parts, join]


def _needs(drafts: list[Draft]) -> tuple[Need, ...]:
    return tuple(Need(draft.id) for draft in drafts)


@contextlib.contextmanager
def dying_at(point: str, nth: int = 1) -> Iterator[None]:
    """The store is away from the nth time on that this point is passed."""
    passed: list[str] = []

    def crash(name: str) -> None:
        passed.append(name)
        if passed.count(point) >= nth and name == point:
            raise StoreAway("died")

    with mock.patch.object(telemetry, "_crash", crash):
        yield


def finish_all(ledger: DynamoLedger, by: str = "w1") -> list[str]:
    """Do everything that can be done; what was done, in order."""
    worker(ledger, by)
    ran: list[str] = []
    while leases := claim(ledger, by, 9):
        ran += [lease.task for lease in leases]
        assert set(ledger.complete(by, [done(lease) for lease in leases]).verdicts) == {Verdict.OK}
    return ran


def check(ledger: DynamoLedger, tasks: int) -> None:
    job, told = ledger.job(NEW.id), ledger.events(NEW.id, limit=10**6)
    assert (job.state, job.counts.total, job.counts.done) == (JobState.COMPLETED, tasks, tasks)
    assert [e.number for e in told] == list(range(1, len(told) + 1))
    assert len([e for e in told if e.type is E.DONE]) == len({e.task for e in told if e.type is E.DONE}) == tasks


# What does not fit into a transaction
def test_a_plan_of_any_width_opens_in_pages(ledger: DynamoLedger) -> None:
    plan = film(NEW, WIDE)
    assert opened(ledger, NEW, plan) == tuple(d.id for d in plan[:-1])
    assert [t.id for t in ledger.tasks(NEW.id).rows[1:]] == [d.id for d in plan]
    assert [e.data for e in ledger.events(NEW.id, types={E.PLANNED})] == [{"tasks": WIDE + 1, "adopted": 0}]
    finish_all(ledger)
    check(ledger, WIDE + 2)


def test_what_died_while_a_plan_was_opening_is_opened_by_the_next_sweep(ledger: DynamoLedger) -> None:
    plan = [replace(d, adopted=n < 20) for n, d in enumerate(film(NEW, WIDE))]
    with dying_at("ledger.owed:before", 2), pytest.raises(StoreAway):
        opened(ledger, NEW, plan)
    assert ledger.job(NEW.id).state not in (JobState.COMPLETED, JobState.FAILED)
    assert ledger.job(NEW.id).counts.total == WIDE + 2
    assert len(ledger.tasks(NEW.id).rows) < WIDE
    ledger.sweep()
    assert [t.id for t in ledger.tasks(NEW.id).rows[1:]] == [d.id for d in plan]
    ran = finish_all(ledger)
    assert ran == [d.id for d in plan[20:]]
    job = ledger.job(NEW.id)
    assert (job.state, job.counts.done) == (JobState.COMPLETED, WIDE + 2)
    assert len(ledger.events(NEW.id, types={E.ADOPTED})) == 20


def test_what_is_done_while_a_plan_is_opening_is_known_to_its_later_pages(ledger: DynamoLedger) -> None:
    plan = fan(NEW, WIDE)
    with dying_at("ledger.owed:before", 2), pytest.raises(StoreAway):
        opened(ledger, NEW, plan)
    assert len(ledger.tasks(NEW.id).rows) < WIDE
    worker(ledger)
    (lease,) = claim(ledger, hinted=[plan[0].id])
    ledger.complete("w1", [done(lease)])
    ledger.sweep()
    assert {t.state for t in ledger.tasks(NEW.id, stage="hear").rows} == {TaskState.READY}
    finish_all(ledger)
    check(ledger, WIDE + 3)


def test_a_task_that_many_need_makes_them_all_ready(ledger: DynamoLedger) -> None:
    plan = fan(NEW, WIDE)
    assert opened(ledger, NEW, plan) == (plan[0].id,)
    worker(ledger)
    (audio,) = claim(ledger)
    assert ledger.complete("w1", [done(audio)]).ready == tuple(d.id for d in plan[1:-1])
    assert ledger.job(NEW.id).counts.live == WIDE
    finish_all(ledger)
    check(ledger, WIDE + 3)


def test_a_count_down_that_was_cut_short_is_finished_by_the_next_sweep(ledger: DynamoLedger) -> None:
    plan = fan(NEW, WIDE)
    opened(ledger, NEW, plan)
    worker(ledger)
    (audio,) = claim(ledger)
    with dying_at("ledger.owed:before"), pytest.raises(StoreAway):
        ledger.complete("w1", [done(audio)])
    assert 0 < ledger.job(NEW.id).counts.live < WIDE
    ledger.sweep()
    assert ledger.complete("w1", [done(audio)]).verdicts == (Verdict.OK,)
    assert ledger.job(NEW.id).counts.live == WIDE
    finish_all(ledger)
    check(ledger, WIDE + 3)


def test_a_dead_task_fails_no_job_to_which_tasks_are_still_owed(ledger: DynamoLedger) -> None:
    plan = fan(NEW, WIDE)
    opened(ledger, NEW, [*plan, Draft(task_id(NEW.id, "other", None), NEW.id, "other", None, "{}", "cpu", 1)])
    worker(ledger)
    audio, other = claim(ledger, n=2)
    ledger.fail("w1", other.task, other.fence, BROKEN, None)
    with dying_at("ledger.owed:before"):
        some: tuple[Lease, ...] = (audio,)
        while some:
            with contextlib.suppress(StoreAway):
                ledger.complete("w1", [done(lease) for lease in some])
            some = claim(ledger, n=25)
    assert ledger.job(NEW.id).state is JobState.RUNNING
    ledger.sweep()
    finish_all(ledger)
    assert ledger.job(NEW.id).state is JobState.FAILED
    assert len(ledger.events(NEW.id, types={E.FINISHED})) == 1


@pytest.mark.parametrize("nth", [1, 2])
def test_a_wide_job_stops_and_goes_on_whoever_dies_between_the_pages(ledger: DynamoLedger, nth: int) -> None:
    opened(ledger, NEW, film(NEW, WIDE))
    worker(ledger)
    with dying_at("ledger.owed:before", nth), pytest.raises(StoreAway):
        ledger.control(NEW.id, JobCommand.PAUSE)
    assert all(task.parked for task in ledger.tasks(NEW.id, TaskState.READY).rows)
    assert claim(ledger, n=25) == ()
    assert ledger.sweep().ready == ()
    with dying_at("ledger.owed:before", nth), pytest.raises(StoreAway):
        ledger.control(NEW.id, JobCommand.RESUME)
    ledger.sweep()
    finish_all(ledger)
    check(ledger, WIDE + 2)


def test_a_wide_job_that_is_cancelled_frees_every_lease_and_can_be_revived(ledger: DynamoLedger) -> None:
    opened(ledger, NEW, film(NEW, WIDE))
    worker(ledger)
    held = [lease for _ in range(2) for lease in claim(ledger, n=20)]
    with dying_at("ledger.owed:before"), pytest.raises(StoreAway):
        ledger.control(NEW.id, JobCommand.CANCEL)
    assert {t.state for t in ledger.tasks(NEW.id).rows[1:]} == {TaskState.CANCELLED}
    assert set(ledger.complete("w1", [done(lease) for lease in held[:30]]).verdicts) == {Verdict.CANCELLED}
    ledger.revive(NEW.id)
    assert set(ledger.complete("w1", [done(lease) for lease in held]).verdicts) == {Verdict.LOST}
    ledger.sweep()
    assert sorted(finish_all(ledger)) == sorted(d.id for d in film(NEW, WIDE))
    check(ledger, WIDE + 2)


def test_a_new_priority_reaches_every_task_of_a_wide_job(ledger: DynamoLedger) -> None:
    opened(ledger, NEW, film(NEW, WIDE))
    other = new_job("other")
    opened(ledger, other, film(other, 2))
    ledger.control(NEW.id, JobCommand.PRIORITY, -1)
    worker(ledger)
    assert [lease.job for lease in claim(ledger, n=3)] == [other.id, other.id, NEW.id]


@pytest.mark.parametrize("again", [False, True])
def test_a_mass_revival_reaches_every_task_whoever_dies(ledger: DynamoLedger, again: bool) -> None:
    plan = film(NEW, WIDE)
    opened(ledger, NEW, plan)
    worker(ledger)
    if again:
        finish_all(ledger)
    else:
        while leases := claim(ledger, n=25):
            for lease in leases:
                ledger.fail("w1", lease.task, lease.fence, BROKEN, None)
    with dying_at("ledger.owed:before", 2), pytest.raises(StoreAway):
        ledger.revive(NEW.id, stages=["develop"], again=again)
    ledger.sweep()
    job = ledger.job(NEW.id)
    assert (job.state, job.counts.live, job.counts.dead) == (JobState.RUNNING, WIDE, 0)
    assert len(ledger.events(NEW.id, types={E.REVIVED}, limit=1000)) == WIDE + 1
    assert len(finish_all(ledger)) == WIDE + (not again)
    assert ledger.job(NEW.id).state is JobState.COMPLETED


def test_who_has_not_begun_waits_for_a_task_that_is_done_again_however_many_they_are(ledger: DynamoLedger) -> None:
    plan = fan(NEW, WIDE)
    opened(ledger, NEW, plan)
    worker(ledger)
    ledger.complete("w1", [done(claim(ledger)[0])])
    assert ledger.revive(NEW.id, [plan[0].id], again=True)[0] == plan[0].id
    assert [lease.task for lease in claim(ledger, n=25)] == [plan[0].id]


def test_a_key_that_many_need_is_met_for_all_of_them(ledger: DynamoLedger) -> None:
    keyed = [replace(d, needs=(Need("k", is_key=True),)) for d in film(NEW, WIDE)[:-1]]
    assert opened(ledger, NEW, keyed) == ()
    with dying_at("ledger.arrived:before", 2), pytest.raises(StoreAway):
        ledger.arrived("k", "1")
    ledger.arrived("k", "1")  # the event is delivered again
    assert ledger.job(NEW.id).counts.live == WIDE
    assert ledger.arrived("k", "1") == Arrival()


def test_many_finishes_with_many_results_are_several_transactions(ledger: DynamoLedger) -> None:
    opened(ledger, NEW, film(NEW, 25))
    worker(ledger)
    leases = claim(ledger, n=25)
    made = [Finish(x.task, x.fence, tuple(result(f"{x.chunk}-{n}", n == 0) for n in range(8))) for x in leases]
    completed = ledger.complete("w1", made)
    assert completed.verdicts == (Verdict.OK,) * 25
    assert completed.ready == (film(NEW, 25)[-1].id,)
    keys = [r.key for finish in made for r in finish.results]
    assert set(ledger.known(OWNER, keys)) == set(keys)
    assert len(ledger.sweep().debts) == 25


def test_pages_of_their_real_size_are_within_the_limit(
    service: Service, ledger: DynamoLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction, "PAGE", PAGE)
    plan = fan(NEW, PAGE + 20)
    opened(ledger, NEW, plan)
    worker(ledger)
    ledger.complete("w1", [done(claim(ledger)[0])])
    ledger.control(NEW.id, JobCommand.CANCEL)
    ledger.revive(NEW.id)
    ledger.revive(NEW.id, [plan[0].id], again=True)
    assert service.requests["transact_write_items"] < 20
    assert ledger.job(NEW.id).counts.live == 1


# Replies that are cut, refusals, throttling
def _submit(ledger: DynamoLedger) -> object:
    return ledger.submit(NEW, first_of(NEW)).created


VERBS: dict[str, tuple[Callable[[DynamoLedger, Lease], object], object]] = {
    "complete": (lambda g, x: g.complete("w1", [done(x, result("a"))]).verdicts, (Verdict.OK,)),
    "fail": (lambda g, x: g.fail("w1", x.task, x.fence, BROKEN, 60.0), Verdict.OK),
    "give_back": (lambda g, x: g.give_back("w1", [(x.task, x.fence)], "drain"), None),
    "pause": (lambda g, x: bool(g.control(NEW.id, JobCommand.PAUSE)), True),
    "cancel": (lambda g, x: bool(g.control(NEW.id, JobCommand.CANCEL)), True),
    "arrived": (lambda g, x: g.arrived("key", "etag"), Arrival()),
    "renew": (lambda g, x: g.renew(who(), {x.task: x.fence}, {x.task: 0.5}).gone, False),
}


@pytest.mark.parametrize("remembers", [True, False])
@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_whose_reply_is_cut_happens_once(
    service: Service, ledger: DynamoLedger, verb: str, remembers: bool
) -> None:
    opened(ledger, NEW, film(NEW, 1))
    worker(ledger)
    (lease,) = claim(ledger)
    before = len(ledger.events(NEW.id))
    if not remembers:
        aws_kit.forget_tokens(service)
    aws_kit.cut(service, "TransactWriteItems", 2)
    do, expected = VERBS[verb]
    assert do(ledger, lease) == expected
    told = ledger.events(NEW.id)
    expects = {"complete": 1, "fail": 1, "give_back": 1, "pause": 1, "cancel": 2}.get(verb, 0)
    assert len(told) - before == expects
    assert [e.number for e in told] == list(range(1, len(told) + 1))
    assert do(ledger, lease) == expected
    assert ledger.events(NEW.id) == told


@pytest.mark.parametrize("told", ["job", "task"])
@pytest.mark.parametrize("verb", ["complete", "fail", "give_back"])
def test_only_a_condition_that_failed_tells_what_stands_there(
    service: Service, ledger: DynamoLedger, verb: str, told: str
) -> None:
    opened(ledger, NEW, film(NEW, 1))
    worker(ledger)
    (lease,) = claim(ledger)

    def reason(write: Any) -> str:
        row = write.get("Put", {"Item": {"sk": {"S": ""}}})["Item"]["sk"]["S"].partition("#")[0]
        return CONDITION if row == told else "TransactionConflict" if row in ("job", "task") else "None"

    aws_kit.refuse(service, reason)
    do, expected = VERBS[verb]
    assert do(ledger, lease) == expected
    assert ledger.tasks(ids=[lease.task]).rows[0].worker is None


def test_a_job_whose_submission_was_cut_is_one_job(service: Service, ledger: DynamoLedger) -> None:
    aws_kit.cut(service, "TransactWriteItems")
    assert ledger.submit(NEW, first_of(NEW)).created
    assert [e.type for e in ledger.events(NEW.id)] == [E.SUBMITTED]


def test_the_leases_of_a_claim_whose_reply_was_cut_come_with_the_next_claim(
    service: Service, ledger: DynamoLedger
) -> None:
    opened(ledger, NEW, film(NEW, 3))
    worker(ledger)
    aws_kit.cut(service, "BatchExecuteStatement")
    with pytest.raises(StoreAway):
        claim(ledger, n=2)
    assert [t.worker for t in ledger.tasks(NEW.id, stage="develop").rows] == ["w1", "w1", None]
    leases = claim(ledger, n=3)
    assert [(lease.task, lease.fence) for lease in leases] == [(d.id, 1) for d in film(NEW, 3)[:3]]
    assert ledger.complete("w1", [done(lease) for lease in leases]).verdicts == (Verdict.OK,) * 3


@pytest.mark.parametrize(
    "code", ["ThrottlingException", "ProvisionedThroughputExceededException", "InternalServerError"]
)
def test_throttled_requests_are_sent_again_later(service: Service, ledger: DynamoLedger, code: str) -> None:
    for operation in ("TransactWriteItems", "BatchGetItem", "Query", "BatchWriteItem", "UpdateItem"):
        aws_kit.throttle(service, operation, 2, code)
    if code != "InternalServerError":  # a claim is not sent again when nobody knows whether it was carried out
        aws_kit.throttle(service, "BatchExecuteStatement", 2, code)
    opened(ledger, NEW, film(NEW, 2))
    finish_all(ledger)
    check(ledger, 4)
    assert service.backed_off >= 10


def test_a_service_that_only_throttles_is_away(
    service: Service, ledger: DynamoLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "_patience", 0.5)
    aws_kit.throttle(service, "BatchGetItem", 10**6)
    with pytest.raises(StoreAway, match="busy"):
        ledger.job(NEW.id)


def test_what_a_batch_left_unprocessed_is_sent_again(service: Service, ledger: DynamoLedger) -> None:
    ledger.submit(NEW, first_of(NEW))
    worker(ledger)
    (probe,) = claim(ledger)
    sent: list[Any] = []
    note = lambda params, **_: sent.append(params["RequestItems"])  # noqa: E731
    aws_kit.hook(service, "before-parameter-build.dynamodb.BatchWriteItem", note)
    aws_kit.answer(service, "BatchWriteItem", 1, lambda parsed: parsed.update(UnprocessedItems=sent[0]))
    ledger.draft(NEW.id, probe.task, probe.fence, film(NEW, 30), "facts")
    assert [len(items["rushes"]) for items in sent] == [25, 25, 7]
    ledger.complete("w1", [done(probe)])
    assert ledger.job(NEW.id).counts.total == 32


def test_a_dead_endpoint_is_a_store_that_is_away(tmp_path: Path) -> None:
    dead = aws_kit.service("dynamodb", "http://127.0.0.1:9", patience=0.3)
    ledger = DynamoLedger(Table(dead))
    for verb in (lambda: ledger.job(NEW.id), lambda: worker(ledger), ledger.sweep):
        with pytest.raises(StoreAway):
            verb()


def test_a_table_that_is_not_there_says_what_to_do(service: Service) -> None:
    with pytest.raises(WrongHome) as e:
        DynamoLedger(Table(service, "nowhere")).job(NEW.id)
    assert "dynamodb:CreateTable" in e.value.advice


def test_a_credential_that_does_not_reach_is_not_allowed(service: Service, ledger: DynamoLedger) -> None:
    aws_kit.throttle(service, "BatchGetItem", 1, "AccessDeniedException")
    with pytest.raises(NotAllowed):
        ledger.job(NEW.id)


# Clocks
def test_a_lease_is_over_when_its_row_stood_still_by_the_observers_own_clock(
    service: Service, clock: Clock, tmp_path: Path
) -> None:
    mine = DynamoLedger(aws_kit.table(tmp_path, clock.wall, service), clock.now)
    opened(mine, NEW, film(NEW))
    worker(mine)
    (lease,) = claim(mine)
    wrong = Clock(seconds=5.0, millis=clock.millis + 3_600_000)
    theirs = DynamoLedger(aws_kit.table(tmp_path, wrong.wall, service), wrong.now, heartbeats=Heartbeats(wrong.now))
    assert theirs.sweep().released == 0  # seen for the first time, however late it seems to be
    for _ in range(3):
        wrong.advance(29)
        clock.advance(29)
        assert theirs.sweep().released == 0
        mine.renew(who(), {lease.task: lease.fence}, {})
        theirs.sweep()
    wrong.advance(30)
    assert theirs.sweep().released == 1
    assert mine.renew(who(), {lease.task: lease.fence}, {}).gone
    with pytest.raises(LeaseLost):
        claim(mine)


def test_the_time_of_the_service_counts_where_a_machines_clock_is_wrong(service: Service, tmp_path: Path) -> None:
    hour = "Thu, 01 Jan 2099 00:00:00 GMT"
    aws_kit.answer(
        service, "BatchGetItem", 1, lambda parsed: parsed["ResponseMetadata"]["HTTPHeaders"].update(date=hour)
    )
    table = aws_kit.table(tmp_path, using=service)
    table.fetch([("a", "b")])
    assert service.wall_millis() // 1000 - 4_070_908_800 < 60
    table.fetch([("a", "b")])
    assert abs(service.wall_millis() - time.time() * 1000) < 60_000


def test_what_has_expired_is_not_seen_although_it_is_there(ledger: DynamoLedger, clock: Clock) -> None:
    opened(ledger, NEW, film(NEW))
    ledger.log(first_of(NEW).id, 1, 1, ["a line"])
    assert len(ledger.events(NEW.id, types={E.LOG}, task=first_of(NEW).id)) == 1
    clock.advance(31 * 86_400)
    assert ledger.events(NEW.id, types={E.LOG}, task=first_of(NEW).id) == ()


def test_a_change_that_is_written_late_is_told_late_and_once(service: Service, clock: Clock, tmp_path: Path) -> None:
    quick = DynamoLedger(aws_kit.table(tmp_path, clock.wall, service), clock.now)
    slow = DynamoLedger(aws_kit.table(tmp_path, lambda: clock.millis - 50_000, service), clock.now)
    jobs = [new_job(str(n)) for n in range(3)]
    quick.submit(jobs[0], first_of(jobs[0]))
    ids, cursor = quick.changed()
    assert ids == (jobs[0].id,)
    slow.submit(jobs[1], first_of(jobs[1]))  # its moment lies before what was told already
    ids, cursor = quick.changed(cursor)
    assert ids == (jobs[1].id,)
    assert quick.changed(cursor) == ((), cursor)
    clock.advance(3600)
    quick.submit(jobs[2], first_of(jobs[2]))
    ids, later = quick.changed(cursor)
    assert (ids, len(later) < len(cursor)) == ((jobs[2].id,), True)


def test_a_sweep_where_nothing_goes_on_is_few_requests(service: Service, ledger: DynamoLedger) -> None:
    worker(ledger)
    for lane in ("cpu", "now"):
        new = new_job(lane)
        ledger.submit(new, first_of(new, lane=lane))
        (lease,) = ledger.claim("w1", [lane], 1)
        ledger.complete("w1", [Finish(lease.task, lease.fence)])
    ledger.sweep()
    before = service.requests.total()
    assert ledger.sweep().quiet
    assert service.requests.total() - before <= 9


def test_a_worker_that_is_long_gone_is_not_looked_at_any_more(
    service: Service, ledger: DynamoLedger, clock: Clock
) -> None:
    worker(ledger)
    clock.advance(31)
    ledger.sweep()
    ledger.sweep()
    clock.advance(31)
    ledger.sweep()
    before = service.requests.total()
    ledger.sweep()
    assert service.requests["query"] > 0
    assert ledger.renew(who(), {}, {}).gone
    assert service.requests.total() - before < 12


# Records
def test_a_record_whose_reply_was_cut_is_written_once(service: Service, tmp_path: Path) -> None:
    records = DynamoRecords(aws_kit.table(tmp_path, using=service))
    aws_kit.forget_tokens(service)
    aws_kit.cut(service, "TransactWriteItems")
    assert records.put("path", "ann", "1", {"a": 1}, expected=0).version == 1
    aws_kit.cut(service, "TransactWriteItems")
    assert records.delete("path", "ann", "1", expected=1)
    with pytest.raises(Conflict):
        records.put("path", "ann", "1", {}, expected=1)


def test_a_verb_that_was_refused_leaves_no_trace(ledger: DynamoLedger) -> None:
    opened(ledger, NEW, film(NEW))
    before = picture(ledger, NEW.id)
    with dying_at("ledger.control:before"), pytest.raises(StoreAway):
        ledger.control(NEW.id, JobCommand.CANCEL)
    assert picture(ledger, NEW.id) == before


def test_every_writing_verb_has_a_place_to_die_before_and_after_its_effect(ledger: DynamoLedger) -> None:
    passed: list[str] = []
    with mock.patch.object(telemetry, "_crash", passed.append):
        opened(ledger, NEW, film(NEW, 4))
        worker(ledger)
        one, two, three, _ = claim(ledger, n=4)
        ledger.complete("w1", [done(one, result("a", publishes=True))])
        ledger.fail("w1", two.task, two.fence, BROKEN, None)
        ledger.give_back("w1", [(three.task, three.fence)], "drain")
        ledger.log(one.task, 1, 1, ["a line"])
        ledger.revive(NEW.id)
        ledger.arrived("key", "etag")
        ledger.set_aside(OWNER, ["a-key"], "damaged")
        ledger.control(NEW.id, JobCommand.PAUSE)
        ledger.sweep(paid=ledger.sweep().debts)
    verbs = [
        "submit",
        "draft",
        "renew",
        "claim",
        "complete",
        "fail",
        "give_back",
        "log",
        "revive",
        "arrived",
        "set_aside",
        "control",
        "sweep",
    ]
    assert {f"ledger.{verb}:{side}" for verb in verbs for side in ("before", "after")} <= set(passed)
