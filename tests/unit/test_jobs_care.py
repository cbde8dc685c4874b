"""Whose results gc clears and repair makes again, when several jobs share them; backups of what moves."""

import hashlib
import json
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rushes.blobs.memory import MemoryBlobs
from rushes.domain.errors import DamagedBlob
from rushes.domain.job import Command, JobState, NewJob
from rushes.domain.keys import manifest_key
from rushes.domain.result import Artifact, Manifest, Provenance, Result, result_of
from rushes.domain.stage import Card, Scope
from rushes.domain.task import Draft, Finish, TaskState
from rushes.domain.worker import Incarnation
from rushes.jobs.backup import copy
from rushes.jobs.gc import Rules, gc
from rushes.jobs.repair import repair, rounds
from rushes.jobs.verify import Damage, verify
from rushes.ledger.memory import MemoryLedger

ME = Incarnation("m.h.b.1", "h", "b", 1, "1")
RULES = Rules({"clip": Card("clip", 1, Scope.VIDEO, ("clip",), expiring=("clip",))}, 1, 30, young_seconds=0.0)


class World:
    """A ledger and blobs in memory; `day` is when things happen."""

    def __init__(self) -> None:
        self.day = 0
        self.ledger = MemoryLedger(wall=lambda: int(self.now().timestamp() * 1000))
        self.blobs = MemoryBlobs()

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=self.day)

    def gc(self, *gone: str) -> int:
        return gc(self.ledger, self.blobs, "me", replace(RULES, gone=frozenset(gone)), self.now()).results

    def submit(self, name: str, key: str, then: bool = False) -> str:
        """A job whose first task makes the result; with `then`, another task follows."""
        job, first = f"job_{name}", f"job_{name}.clip"
        self.ledger.submit(NewJob(job, "me", name, name, "clip", "{}"), Draft(first, job, "clip", None, spec(clip=key)))
        self.ledger.renew(ME, {}, {})
        (lease,) = self.ledger.claim(ME.id, ["cpu"], 1)
        if then:
            later = Draft(f"job_{name}.later", job, "later", None, spec(), order=1)
            self.ledger.draft(job, first, lease.fence, [later], "{}")
        finish = Finish(lease.task, lease.fence, (self.result(key),))
        self.ledger.complete(ME.id, [finish])
        return job

    def planned(self, name: str, probe: str, specs: dict[str, str]) -> str:
        """A job whose plan has these tasks by stage."""
        job, first = f"job_{name}", f"job_{name}.probe"
        self.ledger.submit(
            NewJob(job, "me", name, name, "r", "{}"), Draft(first, job, "probe", None, spec(facts=probe))
        )
        self.ledger.renew(ME, {}, {})
        (lease,) = self.ledger.claim(ME.id, ["cpu"], 1, [first])
        drafts = [
            Draft(f"{job}.{stage}", job, stage, None, one, order=n) for n, (stage, one) in enumerate(specs.items())
        ]
        self.ledger.draft(job, first, lease.fence, drafts, "{}")
        self.ledger.complete(ME.id, [Finish(first, lease.fence)])
        return job

    def result(self, key: str, job: str = "job") -> Result:
        blob = self.blobs.put("me", key.encode())
        origin = Provenance(job, "clip", "p", "1", "fast", "c", "i", 1)
        one = Manifest(key, "clip", (Artifact("clip.mp4", blob.sha256, blob.size, "video/mp4"),), origin)
        self.blobs.create(manifest_key("me", key), one.to_bytes())
        return result_of(one, hashlib.sha256(one.to_bytes()).hexdigest())

    def spoil(self, key: str) -> None:
        data = self.blobs.read(manifest_key("me", key))
        assert data
        self.blobs.drop("me", json.loads(data)["artifacts"][0]["sha256"])


def spec(reads: Collection[str] = (), needs: Collection[str] = (), **results: str) -> str:
    return json.dumps({"results": results, "inputs": {"some.output": list(reads)}, "needs": list(needs)})


@pytest.fixture
def world() -> World:
    return World()


def test_a_clip_goes_when_its_days_are_over(world: World) -> None:
    world.submit("a", "aa-clip")
    world.day = 29
    assert world.gc() == 0
    world.day = 30
    assert world.gc() == 1
    assert world.blobs.read(manifest_key("me", "aa-clip")) is None
    assert list(world.blobs.keys("blobs/")) == []


def test_a_clip_that_a_younger_job_shares_stays(world: World) -> None:
    world.submit("a", "aa-clip")
    world.day = 25
    world.submit("b", "aa-clip")
    world.day = 40
    assert world.gc() == 0
    assert world.blobs.read(manifest_key("me", "aa-clip"))
    world.day = 60
    assert world.gc() == 1


def test_what_a_slot_finished_after_its_job_was_deleted_goes(world: World) -> None:
    job = world.submit("a", "aa-clip")
    world.result("aa-late", job)
    world.result("aa-lost", "job_of_a_lost_ledger")
    world.gc(job)
    assert sorted(world.blobs.keys("results/")) == sorted(manifest_key("me", key) for key in ("aa-clip", "aa-lost"))
    world.gc(job)
    assert len(list(world.blobs.keys("blobs/"))) == 2, "and its blob with the next gc"


def test_what_a_deleted_job_made_stays_for_another_that_will_take_it_up(world: World) -> None:
    job = world.planned("a", "aa-probe", {})
    world.result("aa-probe", job)
    again = NewJob("job_again", "me", "again", "again", "r", "{}")
    world.ledger.submit(again, Draft("job_again.probe", "job_again", "probe", None, spec(facts="aa-probe")))
    world.gc(job)
    assert world.blobs.read(manifest_key("me", "aa-probe"))
    world.gc(job, "job_again")
    assert world.blobs.read(manifest_key("me", "aa-probe")) is None


class Busy(MemoryLedger):
    """A ledger in which something happens just before results are set aside."""

    meanwhile: Callable[[], object] = staticmethod(lambda: None)

    def set_aside(self, owner: str, keys: Collection[str], reason: str) -> int:
        do, self.meanwhile = self.meanwhile, lambda: None
        do()
        return super().set_aside(owner, keys, reason)


def test_what_a_job_takes_up_while_gc_sets_it_aside_is_given_back(world: World) -> None:
    world.ledger = busy = Busy(wall=lambda: int(world.now().timestamp() * 1000))
    world.submit("a", "aa-clip")
    world.day = 40
    busy.meanwhile = lambda: world.submit("b", "aa-clip")
    assert world.gc() == 0
    (task,) = busy.tasks("job_b").rows
    assert task.state is TaskState.READY, "it adopts its result again"
    assert world.blobs.read(manifest_key("me", "aa-clip")), "which is there still"


def test_a_damage_is_told_of_a_job_that_can_mend_it(world: World) -> None:
    world.submit("old", "aa-clip")
    world.day = 1
    world.submit("cancelled", "aa-clip", then=True)
    world.ledger.control("job_cancelled", Command.CANCEL)
    world.spoil("aa-clip")
    (damage,) = verify(world.ledger, world.blobs, "me").damages
    assert damage.job == "job_old"
    assert repair(world.ledger, world.blobs, "me", (damage,)) == ("job_old.clip",)
    assert world.ledger.job("job_cancelled").state is JobState.CANCELLED


def test_a_damage_of_a_cancelled_job_alone_is_set_aside_and_nothing_is_revived(world: World) -> None:
    world.submit("cancelled", "aa-clip", then=True)
    world.ledger.control("job_cancelled", Command.CANCEL)
    world.spoil("aa-clip")
    damages = verify(world.ledger, world.blobs, "me").damages
    assert repair(world.ledger, world.blobs, "me", damages) == ()
    assert verify(world.ledger, world.blobs, "me").damages == ()


def test_rounds_of_a_repair_follow_what_reads_without_waiting(world: World) -> None:
    """A task waits by itself for those that its plan names: not for probe, and not for what another job makes."""
    ledger = world.ledger
    job = world.planned("a", "aa-probe", {
        "chunk": spec(["aa-probe"], part="aa-part"),
        "join": spec(["aa-probe", "aa-part"], ["job_a.chunk"], whole="aa-whole"),
    })  # fmt: skip
    other = world.planned("b", "bb-probe", {
        "chunk": spec(["bb-probe"], part="aa-part"),
        "cut": spec(["aa-part"], ["job_b.chunk"], cut="bb-cut"),
        "last": spec(["bb-cut"], ["job_b.cut"], last="bb-last"),
    })  # fmt: skip
    probe, part, whole = (Damage(job, f"{job}.{stage}", f"aa-{key}", key, "lost") for stage, key in TASKS)
    cut, last = (Damage(other, f"{other}.{stage}", f"bb-{stage}", stage, "lost") for stage in ("cut", "last"))
    assert rounds(ledger, ()) == ((),)
    assert rounds(ledger, (last, cut)) == ((last, cut),)
    assert rounds(ledger, (whole, part)) == ((whole, part),)
    assert rounds(ledger, (whole, probe)) == ((probe,), (whole,))
    assert rounds(ledger, (last, part, cut, probe, whole)) == ((probe,), (part, whole), (last, cut))


TASKS = (("probe", "probe"), ("chunk", "part"), ("join", "whole"))


class Vanishing(MemoryBlobs):
    """A store in which gc clears a blob between the listing and the copy."""

    def local(self, owner: str, sha256: str) -> Path:
        self.drop(owner, sha256)
        raise DamagedBlob("it is gone")


def test_what_vanishes_while_it_is_copied_is_passed_over() -> None:
    source = Vanishing()
    source.put("me", b"cleared")
    source.create("results/me/aa/aa.json", b"{}")
    copied = copy(source, MemoryBlobs())
    assert copied.damaged == ()
    assert copied.copied == 2
