"""A missing original is left to machines that may see it, models that do not answer are asked again later."""

from dataclasses import replace

import pytest

from rushes.domain.task import Failure, Lease
from rushes.domain.worker import ENGINE_AWAY, Incarnation, lanes_at
from rushes.ledger.memory import MemoryLedger
from rushes.worker import core
from rushes.worker.commands import Claim, GiveBack, Renew, Start
from rushes.worker.inputs import Claimed, TaskFailed, Tick
from rushes.worker.lanes import AWAY_SECONDS, BLIND, BLIND_SECONDS, ENOUGH_TRIED, LOOK_SECONDS, EngineLanes, SiteLanes

MISSING = Failure("SourceMissing", "film.mp4: No such file", "", "")
HERE = Incarnation("m.here.b.1", "here", "b", 1, "1", ("cpu", "cpu@studio"))
THERE = replace(HERE, id="m.there.b.2", host="there")
LEASE = Lease("job_a.probe", 1, "job_a", "probe", None, "cpu@studio", "{}", 0, 0)
FAILED = TaskFailed(LEASE.task, 1, MISSING, 0.0, final=True)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def site_lanes(*workers: Incarnation) -> tuple[SiteLanes, Clock]:
    ledger, clock = MemoryLedger(), Clock()
    for worker in (HERE, *workers):
        ledger.renew(worker, {}, {})
    return SiteLanes(ledger, clock), clock


def test_a_missing_original_is_given_back_while_another_machine_may_see_it() -> None:
    eyes, clock = site_lanes(THERE)
    judged = eyes.judge(HERE, LEASE, FAILED)
    assert (judged.counts, judged.final) == (False, False)
    assert (eyes.lanes(HERE.lanes), eyes.note) == (("cpu",), BLIND)
    clock.now = BLIND_SECONDS
    assert (eyes.lanes(HERE.lanes), eyes.note) == (HERE.lanes, "")


def test_one_that_was_blind_a_moment_ago_counts_no_more() -> None:
    ledger = MemoryLedger()
    for worker, note in ((HERE, ""), (THERE, BLIND)):
        ledger.renew(worker, {}, {}, note)
    assert SiteLanes(ledger).judge(HERE, LEASE, FAILED) == FAILED


@pytest.mark.parametrize(
    "others",
    [(), (replace(THERE, lanes=("cpu",)),), (replace(THERE, host="here"),), (replace(THERE, lanes=("cpu@attic",)),)],
    ids=["nobody else", "one that sees nothing of it", "another process of this machine", "another site"],
)
def test_the_last_machine_that_could_see_it_fails_it(others: tuple[Incarnation, ...]) -> None:
    eyes, _ = site_lanes(*others)
    assert eyes.judge(HERE, LEASE, FAILED) == FAILED
    assert eyes.lanes(HERE.lanes) == HERE.lanes


def test_other_failures_and_work_that_every_machine_sees_are_judged_as_before() -> None:
    eyes, _ = site_lanes(THERE)
    changed = replace(FAILED, failure=replace(MISSING, kind="SourceChanged"))
    assert eyes.judge(HERE, LEASE, changed) == changed
    assert eyes.judge(HERE, LEASE._replace(lane="cpu"), FAILED) == FAILED


def test_others_know_that_it_sees_less_before_the_task_is_theirs() -> None:
    state, _ = core.step(core.begin(core.Limits(1, site="studio")), Tick(), 0.0)
    lanes = lanes_at(("cpu",), "studio")
    state, todo = core.step(state, Claimed(lanes, (LEASE,), 1), 1.0)
    assert [c for c in todo if isinstance(c, Start)] == [Start(0, LEASE)]
    _, todo = core.step(state, replace(FAILED, final=False, counts=False), 2.0)
    assert [type(c) for c in todo if isinstance(c, Renew | GiveBack)] == [Renew, GiveBack]


def test_a_worker_takes_the_lanes_of_its_site_and_keeps_a_slot_for_what_cannot_wait() -> None:
    _, todo = core.step(core.begin(core.Limits(2, ("cpu", "gpu"), site="studio")), Tick(), 0.0)
    claims = [(c.lanes, c.n) for c in todo if isinstance(c, Claim)]
    assert claims == [(("cpu", "gpu", "cpu@studio", "gpu@studio"), 2), (("now", "now@studio"), 1)]


def test_lane_gpu_is_left_for_a_while_when_no_service_answers_and_the_worker_does_not_rest() -> None:
    clock, lanes = Clock(), ("cpu", "gpu", "cpu@studio", "gpu@studio")
    engines = EngineLanes(clock)
    assert (engines.lanes(lanes), engines.note, engines.tried_lately) == (lanes, "", False)
    away = replace(FAILED, failure=replace(MISSING, kind="EngineAway"), final=False, counts=False)
    for _ in range(ENOUGH_TRIED - 1):
        engines.judge(away)
    assert (engines.lanes(lanes), engines.note) == (lanes, ENGINE_AWAY), "models of other stages may answer"
    judged = engines.judge(away)
    assert engines.lanes(lanes) == ("cpu", "cpu@studio")
    engines.done("cpu@studio")
    assert engines.lanes(lanes) == ("cpu", "cpu@studio")
    state, _ = core.step(core.begin(core.Limits(2, ("cpu", "gpu"))), Tick(), 0.0)
    state, _ = core.step(state, Claimed(("cpu", "gpu"), (LEASE,), 1), 1.0)
    state, todo = core.step(state, judged, 2.0)
    assert [type(c) for c in todo if isinstance(c, Renew | GiveBack)] == [Renew, GiveBack]
    assert [c.delay for c in todo if isinstance(c, GiveBack)] == [AWAY_SECONDS]
    assert state.takes
    clock.now = AWAY_SECONDS
    engines.judge(away)
    assert engines.lanes(lanes) == ("cpu", "cpu@studio"), "one is enough as long as none is done"
    engines.done("gpu@studio")
    assert engines.lanes(lanes) == lanes
    clock.now *= 2
    assert (engines.lanes(lanes), engines.note, engines.tried_lately) == (lanes, "", True)
    clock.now += LOOK_SECONDS
    assert not engines.tried_lately
    assert (engines.judge(FAILED), engines.note) == (FAILED, "")
