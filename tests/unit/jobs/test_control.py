"""Commands to jobs and workers: who may give them, and what a plan's writer does when its lease is gone."""

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from rushes.domain.errors import LeaseLost, NotAllowed, NotFound
from rushes.domain.task import Draft, Finish, Lease, Verdict
from rushes.domain.video import Fingerprint
from rushes.home import Home
from rushes.jobs import open_plan
from rushes.jobs.control import drain
from rushes.jobs.open_plan import PlanOpener
from rushes.ledger.port import Ledger
from rushes.plan.planner import JobSpec
from tests.memory_blobs import MemoryBlobs
from tests.unit.maintenance_kit import ME, World


def opened(world: World, owner: str, admin: bool = False) -> Home:
    return cast(Home, SimpleNamespace(ledger=world.ledger, owner=owner, settings=SimpleNamespace(fleet_admin=admin)))


@pytest.mark.parametrize(("owner", "admin"), [("ann", False), ("bob", True)])
def test_a_worker_is_drained_by_whoever_started_it_or_administers_the_fleet(owner: str, admin: bool) -> None:
    world = World()
    mine = replace(ME, owner="ann")
    world.ledger.renew(mine, {}, {})
    drain(opened(world, owner, admin), mine.id)
    assert world.ledger.renew(mine, {}, {}).drain


def test_others_cannot_drain_it_and_nobody_one_that_is_not_there() -> None:
    world = World()
    mine = replace(ME, owner="ann")
    assert not world.ledger.renew(mine, {}, {}).drain
    with pytest.raises(NotAllowed, match="another owner"):
        drain(opened(world, "bob"), mine.id)
    with pytest.raises(NotFound):
        drain(opened(world, "ann"), "nobody")
    assert not world.ledger.renew(mine, {}, {}).drain


def test_a_plan_whose_lease_is_gone_is_not_written_on(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = JobSpec("ann", Fingerprint("film.mp4", 1, 1), ("probe",))
    job = SimpleNamespace(id="job_a", payload=spec.to_text(), name="film.mp4")
    drafts = [Draft(f"job_a.develop.{n:05d}", "job_a", "develop", n, "{}") for n in range(3)]
    answers = [Verdict.OK, Verdict.LOST, Verdict.OK]
    ledger = SimpleNamespace(job=lambda _: job, batch=1, draft=lambda *_: answers.pop(0))
    for name, stand_in in (("plan", drafts), ("job_facts", "{}"), ("source_of", spec.source)):
        monkeypatch.setattr(open_plan, name, lambda *_, answer=stand_in: answer)
    monkeypatch.setattr(PlanOpener, "_found", lambda *_: (None, None))
    monkeypatch.setattr(PlanOpener, "_adopted", lambda _, _owner, drafts: drafts)
    lease = Lease("job_a.probe", 1, "job_a", "probe", None, "cpu", '{"results": {"facts": "key"}}', 0, 0)
    with pytest.raises(LeaseLost):
        PlanOpener(cast(Ledger, ledger), MemoryBlobs(), {})(lease, Finish(lease.task, 1))
    assert answers == [Verdict.OK], "nothing is written after that"
