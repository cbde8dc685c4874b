"""The contract of the ledger, part five: sweep, renewal and claim at the same moment; what is repeated."""

import threading
from collections.abc import Callable
from functools import partial
from typing import Any
from unittest import mock

import pytest
from ledger_kit import OWNER, Backend, claim, done, film, new_job, opened, picture, result, who, worker

from rushes import telemetry
from rushes.domain.errors import LeaseLost
from rushes.domain.event import EventType
from rushes.domain.job import JobState
from rushes.domain.task import LEASE_SECONDS, Finish, Lease, LeaseStatus, TaskState, Verdict
from rushes.ledger.port import Ledger, Renewed
from rushes.ledger.sql import sweep as sql_sweep

ROUNDS = 8
NEW = new_job()


def together(*actions: Callable[[], object]) -> list[object]:
    """What each answers, or the error that it raises, when all begin at the same moment."""
    gate = threading.Barrier(len(actions))
    answers: list[object] = [None] * len(actions)

    def act(n: int, action: Callable[[], object]) -> None:
        gate.wait()
        try:
            answers[n] = action()
        except LeaseLost as e:
            answers[n] = e

    threads = [threading.Thread(target=act, args=pair) for pair in enumerate(actions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def leased(ledger: Ledger, n: int) -> Lease:
    """What worker w{n} holds of a job of its own."""
    new = new_job(f"n{n}")
    (task,) = opened(ledger, new, film(new, 1), f"opener{n}")
    worker(ledger, f"w{n}")
    (lease,) = claim(ledger, f"w{n}", hinted=[task])
    return lease


def over(backend: Backend, *ledgers: Ledger) -> None:
    """Every lease is over, and each handle has had the time to see that it stood still."""
    for ledger in ledgers:
        ledger.workers()
    backend.clock.advance(LEASE_SECONDS + 1)


def losses(ledger: Ledger, lease: Lease) -> int:
    (task,) = ledger.tasks(ids=[lease.task]).rows
    told = [e for e in ledger.events(lease.job) if e.type is EventType.LOST]
    assert len(told) == task.losses, "each loss is told once"
    return task.losses


def check_renewal(ledger: Ledger, lease: Lease, renewed: Renewed, name: str) -> None:
    """Whoever is told to keep a task can complete it; whoever is told that it is lost cannot."""
    keeps = not renewed.gone and renewed.leases[lease.task] is LeaseStatus.KEEP
    assert losses(ledger, lease) == (0 if keeps else 1)
    (verdict,) = ledger.complete(name, [done(lease)]).verdicts
    assert verdict is (Verdict.OK if keeps else Verdict.LOST)


def test_a_renewal_and_a_sweep_at_the_same_moment_agree(backend: Backend) -> None:
    mine, other = backend.open(), backend.open()
    for n in range(ROUNDS):
        lease = leased(mine, n)
        over(backend, mine, other)
        me, holding = who(f"w{n}"), {lease.task: lease.fence}
        renewed, _ = together(partial(mine.renew, me, holding, {}), other.sweep)
        assert isinstance(renewed, Renewed)
        check_renewal(mine, lease, renewed, f"w{n}")


def test_two_sweeps_at_the_same_moment_release_each_task_once(backend: Backend) -> None:
    mine, other = backend.open(), backend.open()
    for n in range(ROUNDS):
        lease = leased(mine, n)
        over(backend, mine, other)
        together(mine.sweep, other.sweep)
        mine.sweep()
        assert losses(mine, lease) == 1
        assert mine.tasks(ids=[lease.task]).rows[0].state is TaskState.READY


def test_a_claim_and_a_sweep_at_the_same_moment_leave_no_task_with_a_worker_that_is_over(backend: Backend) -> None:
    mine, other = backend.open(), backend.open()
    for n in range(ROUNDS):
        new = new_job(f"n{n}")
        (task,) = opened(mine, new, film(new, 1), f"opener{n}")
        worker(mine, f"w{n}")
        over(backend, mine, other)
        mine.renew(who("alive"), {}, {})
        claimed, _ = together(partial(claim, mine, f"w{n}", hinted=[task]), other.sweep)
        assert claimed == () or isinstance(claimed, LeaseLost), "its own lease was over"
        backend.clock.advance(700.0)  # strays are looked for every ten minutes
        other.sweep()
        assert mine.tasks(ids=[task]).rows[0].state is TaskState.READY
        mine.sweep()


def test_a_worker_that_renews_while_a_sweep_looks_at_it_is_not_over(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look and the write of the sweep: where there is one writer at a time, nothing can come between."""
    mine, other = backend.open(), backend.open()
    lease = leased(mine, 0)
    over(backend, mine, other)
    said: list[Renewed] = []

    def renew(_point: str = "") -> None:
        if not said:
            said.append(Renewed({}))  # not again while it runs
            said[0] = mine.renew(who("w0"), {lease.task: lease.fence}, {})

    if backend.name.startswith("postgres"):
        look = sql_sweep.ended_workers

        def look_and_wait(*asked: Any) -> dict[int, bool]:
            found = look(*asked)
            renew()
            return found

        monkeypatch.setattr(sql_sweep, "ended_workers", look_and_wait)
        other.sweep()
    elif backend.name == "dynamodb":
        with mock.patch.object(telemetry, "_crash", renew):
            other.sweep()
    else:
        renew()
        other.sweep()
    assert said[0].leases == {lease.task: LeaseStatus.KEEP}
    check_renewal(mine, lease, said[0], "w0")


def test_a_repair_that_is_repeated_does_nothing_more(ledger: Ledger) -> None:
    opened(ledger, NEW, film(NEW, 2))
    worker(ledger)
    while leases := claim(ledger, n=5):
        ledger.complete("w1", [done(lease) for lease in leases])
    first = film(NEW, 2)[0].id
    assert ledger.revive(NEW.id, [first], again=True) == (first,)
    before = picture(ledger, NEW.id)
    assert ledger.revive(NEW.id, [first], again=True) == ()
    assert picture(ledger, NEW.id) == before
    (lease,) = claim(ledger)
    before = picture(ledger, NEW.id)
    assert ledger.revive(NEW.id, [first], again=True) == (), "nor while it is being made"
    assert picture(ledger, NEW.id) == before
    ledger.complete("w1", [done(lease)])
    assert ledger.job(NEW.id).state is JobState.COMPLETED
    assert ledger.revive(NEW.id, [first], again=True) == (first,), "once it is done, it may be done again"


def test_two_repairs_at_the_same_moment_make_it_once(backend: Backend) -> None:
    mine, other = backend.open(), backend.open()
    opened(mine, NEW, film(NEW, 1))
    worker(mine)
    while leases := claim(mine, n=5):
        mine.complete("w1", [done(lease) for lease in leases])
    first = film(NEW, 1)[0].id
    answers = together(*(partial(g.revive, NEW.id, [first], again=True) for g in (mine, other)))
    assert sorted(answers, key=str) == [(first,), ()]
    assert [e.type for e in mine.events(NEW.id) if e.task == first].count(EventType.REVIVED) == 1
    assert mine.job(NEW.id).counts.done == 2


@pytest.mark.parametrize("how", ["another task", "the same task, repaired"])
def test_a_second_result_with_another_hash_changes_nothing(ledger: Ledger, how: str) -> None:
    opened(ledger, NEW, film(NEW, 2))
    worker(ledger)
    one, two = claim(ledger, n=2)
    first = result("same", publishes=True)
    ledger.complete("w1", [done(one, first)])
    if how == "the same task, repaired":
        ledger.revive(NEW.id, [one.task], again=True)
        (two,) = claim(ledger, hinted=[one.task])
    second = first._replace(manifest_sha256="cd" * 32, size=99, count=9)
    assert ledger.complete("w1", [Finish(two.task, two.fence, (second,))]).verdicts == (Verdict.OK,)
    assert ledger.known(OWNER, [first.key]) == {first.key: first}
    ledger.set_aside(OWNER, [first.key], "damaged")
    ledger.revive(NEW.id, [one.task], again=True)
    (again,) = claim(ledger, hinted=[one.task])
    ledger.complete("w1", [Finish(again.task, again.fence, (second,))])
    assert ledger.known(OWNER, [first.key]) == {first.key: second}, "set aside first, it may be another one"
