"""The contract of the ledger, part two: leases and what becomes of them, in every state and with a stale fence."""

import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
from ledger_kit import (
    BROKEN,
    OWNER,
    Backend,
    Clock,
    claim,
    done,
    film,
    first_of,
    new_job,
    opened,
    picture,
    result,
    stale,
    who,
    worker,
)

from rushes.domain.errors import LeaseLost
from rushes.domain.event import EventType
from rushes.domain.job import JobCommand, JobState
from rushes.domain.task import MAX_LOSSES, Finish, Lease, LeaseStatus, TaskState, Verdict
from rushes.ledger.port import Debt, Ledger
from rushes.ledger.unserved_lanes import LOOK_SECONDS, UnservedLanes

E = EventType
NEW = new_job()
PLAN = film(NEW)


@pytest.fixture
def leased(ledger: Ledger) -> Lease:
    """The lease of worker w1 on the first chunk of an open plan."""
    opened(ledger, NEW, PLAN)
    worker(ledger, "w1")
    worker(ledger, "w2")
    return claim(ledger)[0]


def task_state(ledger: Ledger, task: str) -> TaskState:
    return ledger.tasks(ids=[task]).rows[0].state


# How a leased task comes into each state; the fence of w1's lease stays the last one unless told.
def _lose(backend: Backend, ledger: Ledger, lease: Lease) -> None:
    backend.gone.add("w1")
    ledger.sweep()


def _take_over(backend: Backend, ledger: Ledger, lease: Lease) -> None:
    ledger.give_back("w1", [(lease.task, lease.fence)], "drain")
    claim(ledger, "w2", hinted=[lease.task])


WAYS: dict[str, Callable[[Backend, Ledger, Lease], object]] = {
    "leased": lambda b, g, x: None,
    "done": lambda b, g, x: g.complete("w1", [done(x)]),
    "failed, backing off": lambda b, g, x: g.fail("w1", x.task, x.fence, BROKEN, 60.0),
    "dead": lambda b, g, x: g.fail("w1", x.task, x.fence, BROKEN, None),
    "given back": lambda b, g, x: g.give_back("w1", [(x.task, x.fence)], "drain"),
    "lost": _lose,
    "leased by another": _take_over,
    "cancelled": lambda b, g, x: g.control(NEW.id, JobCommand.CANCEL),
    "paused while leased": lambda b, g, x: g.control(NEW.id, JobCommand.PAUSE),
}
#                         complete, fail, order of renew
ANSWERS: dict[str, tuple[Verdict, Verdict, LeaseStatus]] = {
    "leased": (Verdict.OK, Verdict.OK, LeaseStatus.KEEP),
    "done": (Verdict.OK, Verdict.LOST, LeaseStatus.KEEP),
    "failed, backing off": (Verdict.LOST, Verdict.OK, LeaseStatus.LOST),
    "dead": (Verdict.LOST, Verdict.OK, LeaseStatus.LOST),
    "given back": (Verdict.LOST, Verdict.LOST, LeaseStatus.LOST),
    "lost": (Verdict.LOST, Verdict.LOST, LeaseStatus.LOST),
    "leased by another": (Verdict.LOST, Verdict.LOST, LeaseStatus.LOST),
    "cancelled": (Verdict.CANCELLED, Verdict.CANCELLED, LeaseStatus.CANCELLED),
    "paused while leased": (Verdict.OK, Verdict.OK, LeaseStatus.KEEP),
}
CHANGES = ("leased", "paused while leased")


@pytest.mark.parametrize("way", WAYS)
def test_complete_answers_by_state_and_changes_only_what_is_leased(
    backend: Backend, ledger: Ledger, leased: Lease, way: str
) -> None:
    WAYS[way](backend, ledger, leased)
    before = picture(ledger, NEW.id)
    assert ledger.complete("w1", [done(leased, result("late"))]).verdicts == (ANSWERS[way][0],)
    assert (picture(ledger, NEW.id) != before) == (way in CHANGES)
    assert bool(ledger.known(OWNER, ["late-key"])) == (way in CHANGES)


@pytest.mark.parametrize("way", WAYS)
def test_fail_answers_by_state_and_changes_only_what_is_leased(
    backend: Backend, ledger: Ledger, leased: Lease, way: str
) -> None:
    WAYS[way](backend, ledger, leased)
    before = picture(ledger, NEW.id)
    assert ledger.fail("w1", leased.task, leased.fence, BROKEN, 60.0) is ANSWERS[way][1]
    assert (picture(ledger, NEW.id) != before) == (way in CHANGES)


@pytest.mark.parametrize("way", WAYS)
def test_give_back_changes_only_what_is_leased(backend: Backend, ledger: Ledger, leased: Lease, way: str) -> None:
    WAYS[way](backend, ledger, leased)
    before = picture(ledger, NEW.id)
    ledger.give_back("w1", [(leased.task, leased.fence)], "drain")
    assert (picture(ledger, NEW.id) != before) == (way in CHANGES)


@pytest.mark.parametrize("way", [way for way in WAYS if way != "lost"])
def test_renew_says_what_to_do_with_each_task(backend: Backend, ledger: Ledger, leased: Lease, way: str) -> None:
    WAYS[way](backend, ledger, leased)
    renewed = ledger.renew(worker(ledger), {leased.task: leased.fence}, {leased.task: 0.5})
    assert renewed.leases == {leased.task: ANSWERS[way][2]}
    assert (ledger.tasks(ids=[leased.task]).rows[0].progress == 0.5) == (way in CHANGES)


@pytest.mark.parametrize("way", WAYS)
def test_a_stale_fence_changes_nothing_in_any_state(backend: Backend, ledger: Ledger, leased: Lease, way: str) -> None:
    WAYS[way](backend, ledger, leased)
    old, before = stale(leased), picture(ledger, NEW.id)
    refused = Verdict.CANCELLED if way == "cancelled" else Verdict.LOST
    assert ledger.complete("w1", [done(old, result("late"))]).verdicts == (refused,)
    assert ledger.fail("w1", old.task, old.fence, BROKEN, None) is refused
    ledger.give_back("w1", [(old.task, old.fence)], "drain")
    assert ledger.known(OWNER, ["late-key"]) == {}
    assert picture(ledger, NEW.id) == before
    if way != "lost":
        orders = ledger.renew(worker(ledger), {old.task: old.fence}, {}).leases
        assert orders == {old.task: LeaseStatus.CANCELLED if way == "cancelled" else LeaseStatus.LOST}


@pytest.mark.parametrize("way", WAYS)
def test_only_a_ready_task_can_be_claimed(backend: Backend, ledger: Ledger, leased: Lease, way: str) -> None:
    WAYS[way](backend, ledger, leased)
    got = claim(ledger, "w2", hinted=[leased.task])
    assert bool(got) == (way in ("given back", "lost"))
    assert all(lease.fence == leased.fence + 1 for lease in got)


def test_another_worker_cannot_use_a_fence_that_is_not_its_own(ledger: Ledger, leased: Lease) -> None:
    before = picture(ledger, NEW.id)
    assert ledger.complete("w2", [done(leased)]).verdicts == (Verdict.LOST,)
    assert ledger.fail("w2", leased.task, leased.fence, BROKEN, None) is Verdict.LOST
    ledger.give_back("w2", [(leased.task, leased.fence)], "drain")
    assert picture(ledger, NEW.id) == before


def test_what_nobody_knows_is_lost(ledger: Ledger) -> None:
    who = worker(ledger)
    ghost = f"{NEW.id}.ghost"
    assert ledger.complete("w1", [Finish(ghost, 1)]).verdicts == (Verdict.LOST,)
    assert ledger.complete("nobody", [Finish(ghost, 1)]).verdicts == (Verdict.LOST,)
    assert ledger.fail("w1", ghost, 1, BROKEN, None) is Verdict.LOST
    assert ledger.draft(NEW.id, ghost, 1, PLAN, "") is Verdict.LOST
    assert ledger.renew(who, {ghost: 1}, {ghost: 1.0}).leases == {ghost: LeaseStatus.LOST}


def test_a_lease_says_all_that_a_worker_needs(ledger: Ledger, leased: Lease) -> None:
    assert leased._replace(token=0) == Lease(PLAN[0].id, 1, NEW.id, "develop", 0, "cpu", '{"n": 0}', 0, 0)
    (task,) = ledger.tasks(ids=[leased.task]).rows
    assert (task.state, task.worker, task.fence) == (TaskState.LEASED, "w1", 1)
    assert task.started_at is not None


def test_claims_go_by_priority_then_age_then_plan_order(ledger: Ledger) -> None:
    old, young, urgent = new_job("old"), new_job("young"), new_job("urgent", priority=5)
    for new in (old, young, urgent):
        opened(ledger, new, film(new, 2))
    worker(ledger)
    expected = [d.id for new in (urgent, old, young) for d in film(new, 2)[:2]]
    assert [lease.task for n in (1, 4, 9) for lease in claim(ledger, n=n)] == expected


def test_a_claim_takes_only_its_lanes_and_orders_across_them(ledger: Ledger) -> None:
    slow, quick = new_job("slow"), new_job("quick", priority=9)
    ledger.submit(slow, first_of(slow))
    ledger.submit(quick, first_of(quick, lane="now"))
    worker(ledger)
    assert ledger.claim("w1", ["gpu"], 5) == ()
    assert [lease.job for lease in ledger.claim("w1", ["cpu", "now", "cpu"], 5)] == [quick.id, slow.id]


def test_work_that_is_bound_to_a_site_is_claimed_only_by_who_sees_it(ledger: Ledger) -> None:
    bound, free = new_job("bound"), new_job("free")
    opened(ledger, bound, [replace(draft, lane="cpu@studio-3f") for draft in film(bound, 2)])
    opened(ledger, free, film(free, 1))
    worker(ledger)
    tasks = {task.id for task in ledger.tasks(bound.id, TaskState.READY).rows}
    assert {lease.job for lease in ledger.claim("w1", ["cpu", "cpu@attic"], 9)} == {free.id}
    assert ledger.claim("w1", ["cpu", "cpu@attic"], 9, sorted(tasks)) == ()
    assert tasks <= set(ledger.sweep().ready)
    (lease,) = ledger.claim("w1", ["cpu", "cpu@studio-3f"], 1)
    ledger.give_back("w1", [(lease.task, lease.fence)], "SourceMissing")
    assert ledger.tasks(ids=[lease.task]).rows[0].failures == 0
    assert {lease.task for lease in ledger.claim("w1", ["cpu@studio-3f"], 9)} == tasks


def test_lane_gpu_is_taken_by_a_worker_of_lane_cpu_when_no_worker_takes_it(ledger: Ledger) -> None:
    opened(ledger, NEW, [replace(draft, lane="gpu") for draft in PLAN])
    worker(ledger)
    lanes = ("cpu", *UnservedLanes(ledger).beside(["cpu"]))
    assert {lease.lane for lease in ledger.claim("w1", lanes, 9)} == {"gpu"}


@pytest.mark.parametrize("ends", ["leaves", "dies", "drains"])
def test_lane_gpu_is_left_to_the_workers_that_take_it_while_one_is_there(
    backend: Backend, ledger: Ledger, ends: str
) -> None:
    now = Clock()
    worker(ledger)
    beside = partial(UnservedLanes(ledger, now.now).beside, ["cpu", "cpu@studio"])
    assert beside() == ("gpu", "gpu@studio")
    gpu = replace(who("w2"), lanes=("gpu",))
    ledger.renew(gpu, {}, {})
    now.advance(LOOK_SECONDS)
    assert beside() == ("gpu@studio",), "what is bound to a site is left by those who do not see it"
    if ends == "dies":
        backend.gone.add("w2")
        ledger.sweep()
    else:
        ledger.control("w2", JobCommand.LEAVE if ends == "leaves" else JobCommand.DRAIN)
    now.advance(LOOK_SECONDS)
    assert beside() == ("gpu", "gpu@studio")


def test_workers_tell_which_site_they_see_and_with_each_renewal_when_they_do_not(ledger: Ledger) -> None:
    me = replace(who(), lanes=("cpu", "cpu@studio"))
    for note in ("", "an original is missing here", ""):
        ledger.renew(me, {}, {}, note)
        assert [(w.incarnation.lanes, w.note) for w in ledger.workers()] == [(me.lanes, note)]


def test_a_hinted_claim_looks_only_at_those_ids(ledger: Ledger, leased: Lease) -> None:
    assert claim(ledger, "w2", hinted=[leased.task, "nothing"]) == ()
    assert [lease.task for lease in claim(ledger, "w2", 5, [PLAN[2].id, PLAN[3].id])] == [PLAN[2].id]
    assert ledger.claim("w2", ["gpu"], 5, [PLAN[1].id]) == ()


def test_a_worker_that_never_entered_cannot_claim(ledger: Ledger) -> None:
    with pytest.raises(LeaseLost):
        claim(ledger, "nobody")


def test_a_worker_whose_lease_is_over_cannot_claim_until_it_renews(backend: Backend, ledger: Ledger) -> None:
    opened(ledger, NEW, PLAN)
    worker(ledger)
    backend.clock.advance(30)
    with pytest.raises(LeaseLost):
        claim(ledger)
    worker(ledger)
    assert len(claim(ledger)) == 1


def test_a_renewal_keeps_every_task_of_a_worker(backend: Backend, ledger: Ledger, leased: Lease) -> None:
    for _ in range(5):
        backend.clock.advance(25)
        assert ledger.renew(worker(ledger), {leased.task: leased.fence}, {}).leases == {leased.task: LeaseStatus.KEEP}
        assert ledger.sweep().released == 0
    assert ledger.complete("w1", [done(leased)]).verdicts == (Verdict.OK,)


def test_a_worker_may_be_silent_for_as_long_as_its_lease_is(backend: Backend, ledger: Ledger) -> None:
    opened(ledger, NEW, PLAN)
    patient = replace(who("patient"), lease_seconds=100.0)
    ledger.renew(patient, {}, {})
    (lease,) = claim(ledger, "patient")
    ledger.sweep()
    backend.clock.advance(90)
    assert ledger.sweep().released == 0
    ledger.renew(replace(patient, lease_seconds=40.0), {lease.task: lease.fence}, {})
    ledger.sweep()
    backend.clock.advance(39)
    assert ledger.sweep().released == 0
    backend.clock.advance(2)
    assert ledger.sweep().released == 1


def test_a_lease_that_ran_out_unnoticed_still_counts(backend: Backend, ledger: Ledger, leased: Lease) -> None:
    backend.clock.advance(100)
    assert ledger.complete("w1", [done(leased)]).verdicts == (Verdict.OK,)


def test_the_loser_of_a_lease_cannot_complete(backend: Backend, ledger: Ledger, leased: Lease) -> None:
    backend.clock.advance(30)
    worker(ledger, "w2")
    assert ledger.sweep().released == 1
    (taken,) = claim(ledger, "w2", hinted=[leased.task])
    assert (taken.fence, taken.losses) == (leased.fence + 1, 1)
    assert ledger.complete("w1", [done(leased, result("zombie"))]).verdicts == (Verdict.LOST,)
    assert ledger.complete("w2", [done(taken, result("heir"))]).verdicts == (Verdict.OK,)
    assert ledger.complete("w1", [done(leased, result("zombie"))]).verdicts == (Verdict.LOST,)
    assert set(ledger.known(OWNER, ["zombie-key", "heir-key"])) == {"heir-key"}


def test_a_worker_that_was_reaped_cannot_come_back(backend: Backend, ledger: Ledger, leased: Lease) -> None:
    backend.clock.advance(31)
    ledger.sweep()
    renewed = ledger.renew(who(), {leased.task: leased.fence}, {leased.task: 0.9})
    assert renewed.gone
    assert renewed.leases == {leased.task: LeaseStatus.LOST}
    assert ledger.workers() == ()
    with pytest.raises(LeaseLost):
        claim(ledger)


def test_a_worker_whose_process_is_gone_is_over_at_once(backend: Backend, ledger: Ledger, leased: Lease) -> None:
    backend.gone.add("w1")
    assert ledger.sweep().released == 1
    assert len(claim(ledger, "w2", hinted=[leased.task])) == 1


def test_a_loss_is_told_and_counted_apart_from_failures(backend: Backend, ledger: Ledger, leased: Lease) -> None:
    _lose(backend, ledger, leased)
    (task,), job = ledger.tasks(ids=[leased.task]).rows, ledger.job(NEW.id)
    assert (task.state, task.losses, task.failures, task.worker) == (TaskState.READY, 1, 0, None)
    assert (job.counts.losses, job.counts.failures) == (1, 0)
    event = ledger.events(NEW.id)[-1]
    assert (event.type, event.task) == (E.LOST, leased.task)
    assert (event.data["worker"], event.data["fence"], event.data["stage"]) == ("w1", 1, "develop")
    assert ledger.sweep().released == 0


def test_a_task_that_kills_its_worker_ten_times_is_dead(backend: Backend, ledger: Ledger, leased: Lease) -> None:
    for n in range(MAX_LOSSES - 1):
        backend.gone.add("w1" if n == 0 else f"v{n}")
        ledger.sweep()
        worker(ledger, f"v{n + 1}")
        assert len(claim(ledger, f"v{n + 1}", hinted=[leased.task])) == 1
    backend.gone.add(f"v{MAX_LOSSES - 1}")
    ledger.sweep()
    (task,) = ledger.tasks(ids=[leased.task]).rows
    assert (task.state, task.losses) == (TaskState.DEAD, MAX_LOSSES)
    assert task.failure is not None
    assert task.failure.kind == "KillsItsWorker"
    assert [e.type for e in ledger.events(NEW.id)[-2:]] == [E.LOST, E.DEAD]
    assert ledger.job(NEW.id).counts.dead == 1


def test_a_first_task_that_was_lost_begins_again(backend: Backend, ledger: Ledger) -> None:
    ledger.submit(NEW, first_of(NEW))
    worker(ledger)
    claim(ledger)
    backend.gone.add("w1")
    ledger.sweep()
    assert ledger.job(NEW.id).state is JobState.CREATED


def test_a_failure_backs_off_and_is_ready_when_a_sweep_finds_it_due(
    backend: Backend, ledger: Ledger, leased: Lease
) -> None:
    ledger.fail("w1", leased.task, leased.fence, BROKEN, 60.0)
    (task,) = ledger.tasks(ids=[leased.task]).rows
    assert (task.state, task.due_in, task.failures, task.failure) == (TaskState.READY, 60.0, 1, BROKEN)
    assert ledger.sweep().next_due == 60.0
    backend.clock.advance(59)
    worker(ledger)
    assert leased.task not in ledger.sweep().ready
    assert claim(ledger, hinted=[leased.task]) == ()
    backend.clock.advance(1)
    swept = ledger.sweep()
    assert leased.task in swept.ready
    assert swept.next_due is None
    (again,) = claim(ledger, hinted=[leased.task])
    assert (again.fence, again.failures) == (2, 1)


def test_a_failure_without_delay_is_ready_at_once(ledger: Ledger, leased: Lease) -> None:
    ledger.fail("w1", leased.task, leased.fence, BROKEN, 0.0)
    assert len(claim(ledger, "w2", hinted=[leased.task])) == 1


def test_a_failure_is_told_with_its_reason(ledger: Ledger, leased: Lease) -> None:
    ledger.fail("w1", leased.task, leased.fence, BROKEN, 60.0)
    event = ledger.events(NEW.id)[-1]
    about = {"stage": "develop", "chunk": 0, "fence": 1, "worker": "w1", "delay": 60.0}
    assert (event.type, event.task) == (E.FAILED, leased.task)
    assert event.data == about | {"kind": "SlotDied", "message": "it died", "verdict": "may work next time"}


def test_a_dead_letter_is_told_twice_as_a_failure_and_as_a_death(ledger: Ledger, leased: Lease) -> None:
    ledger.fail("w1", leased.task, leased.fence, BROKEN, None)
    assert [e.type for e in ledger.events(NEW.id)[-2:]] == [E.FAILED, E.DEAD]
    job = ledger.job(NEW.id)
    assert (job.state, job.counts.dead, job.counts.live, job.counts.failures) == (JobState.RUNNING, 1, 2, 1)
    assert task_state(ledger, PLAN[3].id) is TaskState.WAITING


def test_a_job_fails_when_nothing_of_it_can_run(ledger: Ledger, leased: Lease) -> None:
    ledger.fail("w1", leased.task, leased.fence, BROKEN, None)
    ledger.complete("w1", [done(lease) for lease in claim(ledger, n=5)])
    job = ledger.job(NEW.id)
    assert (job.state, job.counts.done, job.counts.live) == (JobState.FAILED, 3, 0)
    last = ledger.events(NEW.id)[-1]
    assert (last.type, last.data) == (E.FINISHED, {"state": "failed"})
    assert job.finished_at is not None


def test_a_first_task_that_is_dead_fails_the_job(ledger: Ledger) -> None:
    ledger.submit(NEW, first_of(NEW))
    worker(ledger)
    (probe,) = claim(ledger)
    ledger.fail("w1", probe.task, probe.fence, BROKEN, None)
    assert ledger.job(NEW.id).state is JobState.FAILED


def test_a_late_error_never_replaces_a_success(ledger: Ledger, leased: Lease) -> None:
    ledger.complete("w1", [done(leased)])
    assert ledger.fail("w1", leased.task, leased.fence, BROKEN, None) is Verdict.LOST
    assert task_state(ledger, leased.task) is TaskState.DONE


def test_what_is_given_back_is_claimable_at_once_and_counted_as_nothing(ledger: Ledger, leased: Lease) -> None:
    ledger.give_back("w1", [(leased.task, leased.fence), ("ghost", 3)], "drain")
    event = ledger.events(NEW.id)[-1]
    assert (event.type, event.task, event.data["reason"]) == (E.GIVEN_BACK, leased.task, "drain")
    (again,) = claim(ledger, "w2", hinted=[leased.task])
    assert (again.failures, again.losses, again.fence) == (0, 0, 2)


def test_what_is_given_back_with_a_delay_is_claimable_when_its_time_has_come_or_a_revival_ends_it(
    backend: Backend, ledger: Ledger, leased: Lease
) -> None:
    ledger.give_back("w1", [(leased.task, leased.fence)], "AnswerPending", 60)
    assert ledger.tasks(ids=[leased.task]).rows[0].due_in == 60.0
    assert claim(ledger, "w2", hinted=[leased.task]) == ()
    told = ledger.job(NEW.id).last_event
    assert ledger.revive(NEW.id, [leased.task, "ghost"], delayed=True) == (leased.task,)
    assert ledger.revive(NEW.id, [leased.task], delayed=True) == ()
    assert ledger.job(NEW.id).last_event == told
    (again,) = claim(ledger, "w2", hinted=[leased.task])
    assert ledger.revive(NEW.id, [leased.task], delayed=True) == (), "nothing to end while it is leased"
    assert (again.failures, again.losses, again.fence) == (0, 0, 2)
    ledger.give_back("w2", [(again.task, again.fence)], "AnswerPending", 60)
    backend.clock.advance(60)
    worker(ledger, "w2")
    assert leased.task in ledger.sweep().ready
    assert [lease.fence for lease in claim(ledger, "w2", hinted=[leased.task])] == [3]


def test_a_revival_of_what_is_delayed_leaves_dead_tasks_and_cancelled_jobs_alone(ledger: Ledger, leased: Lease) -> None:
    ledger.fail("w1", leased.task, leased.fence, BROKEN, None)
    assert ledger.revive(NEW.id, [leased.task], delayed=True) == ()
    assert task_state(ledger, leased.task) is TaskState.DEAD
    (other,) = claim(ledger)
    ledger.fail("w1", other.task, other.fence, BROKEN, 0.0)
    (other,) = claim(ledger, hinted=[other.task])
    ledger.give_back("w1", [(other.task, other.fence)], "AnswerPending", 60)
    (asleep,) = ledger.tasks(ids=[other.task]).rows
    assert (asleep.failures, asleep.failure) == (1, None), "it does not wait because it failed"
    ledger.control(NEW.id, JobCommand.CANCEL)
    ledger.revive(NEW.id, [other.task], delayed=True)
    assert ledger.job(NEW.id).state is JobState.CANCELLED
    assert claim(ledger, n=9) == ()


def test_a_completion_commits_results_events_and_counters_together(ledger: Ledger, leased: Lease) -> None:
    row = result("frames", publishes=True)
    ledger.complete("w1", [Finish(leased.task, leased.fence, (row, result("cuts")), seconds=2.5)])
    assert ledger.known(OWNER, ["frames-key", "cuts-key", "nothing"]) == {
        "frames-key": row,
        "cuts-key": result("cuts"),
    }
    event = ledger.events(NEW.id)[-1]
    assert (event.type, event.task) == (E.DONE, leased.task)
    assert event.data == {"stage": "develop", "chunk": 0, "fence": 1, "worker": "w1", "seconds": 2.5}
    counts = ledger.job(NEW.id).counts
    assert (counts.done, counts.live) == (2, 2)


def test_results_belong_to_the_owner_of_the_job(ledger: Ledger, leased: Lease) -> None:
    ledger.complete("w1", [done(leased, result("a"))])
    assert ledger.known("bob", ["a-key"]) == {}


def test_a_result_that_is_there_never_changes(ledger: Ledger, leased: Lease) -> None:
    other = claim(ledger)[0]
    ledger.complete("w1", [done(leased, result("same"))])
    ledger.complete("w1", [done(other, result("same", publishes=True))])
    assert ledger.known(OWNER, ["same-key"]) == {"same-key": result("same")}


def test_a_task_whose_result_was_there_is_told_as_adopted(ledger: Ledger, leased: Lease) -> None:
    ledger.complete("w1", [Finish(leased.task, leased.fence, adopted=True)])
    assert ledger.events(NEW.id)[-1].type is E.ADOPTED
    assert ledger.tasks(ids=[leased.task]).rows[0].adopted


def test_a_batch_answers_each_finish_and_commits_what_counts(ledger: Ledger, leased: Lease) -> None:
    other = claim(ledger)[0]
    batch = [stale(leased), other, leased, leased]
    said = ledger.complete("w1", [done(lease) for lease in batch]).verdicts
    assert said == (Verdict.LOST, Verdict.OK, Verdict.OK, Verdict.OK)
    assert ledger.job(NEW.id).counts.done == 3
    assert [e.task for e in ledger.events(NEW.id, types={E.DONE})[1:]] == [other.task, leased.task]


def test_a_batch_over_many_jobs_completes_each(ledger: Ledger) -> None:
    jobs = [new_job(f"n{n}") for n in range(5)]
    for new in jobs:
        opened(ledger, new, film(new, 4))
    worker(ledger)
    while leases := claim(ledger, n=7):
        ledger.complete("w1", [done(lease) for lease in leases])
    for new in jobs:
        assert ledger.job(new.id).state is JobState.COMPLETED
        told = ledger.events(new.id)
        assert [e.number for e in told] == list(range(1, 10))
        assert len({e.task for e in told if e.type is E.DONE}) == 6


def test_published_names_are_owed_until_they_are_paid(ledger: Ledger, leased: Lease) -> None:
    ledger.complete("w1", [done(leased, result("a", publishes=True), result("b"))])
    debt = Debt(OWNER, NEW.id, "a-key")
    assert ledger.sweep().debts == (debt,)
    assert ledger.sweep(paid=[debt]).debts == ()
    assert ledger.sweep(paid=[debt]).debts == ()
    assert ledger.complete("w1", [done(leased, result("a", publishes=True))]).verdicts == (Verdict.OK,)
    assert ledger.sweep().debts == ()


def test_a_sweep_announces_what_is_ready_up_to_its_limit(ledger: Ledger) -> None:
    ready = opened(ledger, NEW, PLAN)
    assert ledger.sweep().ready == ready
    assert ledger.sweep(limit=2).ready == ready[:2]


def test_a_sweep_says_when_nothing_goes_on(backend: Backend, ledger: Ledger) -> None:
    worker(ledger)
    assert ledger.sweep().quiet
    new = new_job("alone")
    ledger.submit(new, first_of(new))
    assert not ledger.sweep().quiet, "something is ready"
    (lease,) = claim(ledger)
    assert not ledger.sweep().quiet, "something is leased"
    ledger.fail("w1", lease.task, lease.fence, BROKEN, 60.0)
    assert not ledger.sweep().quiet, "something backs off"
    backend.clock.advance(61)
    worker(ledger, "w2")
    ledger.sweep()
    (lease,) = claim(ledger, "w2")
    ledger.complete("w2", [done(lease, result("a", publishes=True))])
    assert not ledger.sweep().quiet, "a name is owed"
    ledger.sweep(paid=[Debt(OWNER, new.id, "a-key")])
    assert ledger.sweep().quiet


def test_a_paused_job_lets_the_sweep_rest(ledger: Ledger) -> None:
    new = new_job("paused")
    ledger.submit(new, first_of(new))
    ledger.control(new.id, JobCommand.PAUSE)
    ledger.sweep()  # on some stores this hides what was ready
    assert ledger.sweep().quiet


def test_a_sweep_releases_no_more_than_its_limit_at_once(backend: Backend, ledger: Ledger) -> None:
    opened(ledger, NEW, PLAN)
    worker(ledger)
    claim(ledger, n=3)
    backend.gone.add("w1")
    assert [ledger.sweep(limit=2).released for _ in range(3)] == [2, 1, 0]


def test_two_handles_that_race_never_share_a_lease(backend: Backend) -> None:
    jobs = [new_job(f"n{n}") for n in range(6)]
    handles = [backend.open() for _ in range(4)]
    for new in jobs:
        opened(handles[0], new, film(new, 12))
    got: list[Lease] = []
    ready: list[str] = []

    def drain(ledger: Ledger, name: str) -> None:
        worker(ledger, name)
        while leases := claim(ledger, name, 5):
            got.extend(leases)
            ready.extend(ledger.complete(name, [done(lease) for lease in leases]).ready)

    threads = [threading.Thread(target=drain, args=(h, f"w{n}")) for n, h in enumerate(handles)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    drain(handles[0], "last")  # a join may become ready after the others saw nothing
    assert len(got) == len({lease.task for lease in got}) == 6 * 13
    assert sorted(ready) == sorted(film(new, 12)[-1].id for new in jobs)
    for new in jobs:
        assert handles[0].job(new.id).state is JobState.COMPLETED
        told = handles[0].events(new.id)
        assert [e.number for e in told] == list(range(1, len(told) + 1))


def test_one_handle_serves_several_threads(ledger: Ledger) -> None:
    new = new_job("wide")
    opened(ledger, new, film(new, 40))
    got: list[str] = []

    def drain(name: str) -> None:
        worker(ledger, name)
        while leases := claim(ledger, name, 3):
            got.extend(lease.task for lease in leases)
            ledger.complete(name, [done(lease) for lease in leases])

    threads = [threading.Thread(target=drain, args=(f"w{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    drain("last")
    assert len(got) == len(set(got)) == 41
    assert ledger.job(new.id).state is JobState.COMPLETED


def test_a_failure_that_may_be_tried_again_soon_waits_all_the_same(
    backend: Backend, ledger: Ledger, leased: Lease
) -> None:
    ledger.fail("w1", leased.task, leased.fence, BROKEN, 0.5)
    assert claim(ledger, hinted=[leased.task]) == ()
    backend.clock.advance(0.5)
    worker(ledger)
    assert leased.task in ledger.sweep().ready
