"""Results cleared while others take them up, and clearings that are killed: no job is left without its files."""

import hashlib
from collections.abc import Callable, Collection, Iterator
from typing import Any, cast

import pytest

from rushes.blobs.documents import read_document
from rushes.domain.job import JobCommand, JobState, NewJob
from rushes.domain.keys import manifest_key
from rushes.domain.task import Draft, Finish, Lease, Need, TaskState
from rushes.jobs.maintenance.gc import drop
from rushes.jobs.maintenance.repair import repair
from rushes.jobs.maintenance.verify import find_missing, verify
from rushes.jobs.open_plan import PlanOpener
from rushes.worker.broker.attempt import adopt as _adopt
from tests.memory_blobs import MemoryBlobs
from tests.unit.maintenance_kit import ME, RULES, World, spec

CLIP = manifest_key("me", "aa-clip")


class Busy(MemoryBlobs):
    """A store in which something happens just before the first manifest is removed."""

    meanwhile: Callable[[], object] = staticmethod(lambda: None)

    def delete(self, key: str, was: bytes | None = None, older: float = 0.0) -> bool:
        if key.startswith("results/"):
            do, self.meanwhile = self.meanwhile, lambda: None
            do()
        return super().delete(key, was, older)


@pytest.fixture
def world() -> World:
    world = World()
    world.blobs = Busy()
    return world


@pytest.fixture
def busy(world: World) -> Busy:
    return cast(Busy, world.blobs)


def claim(world: World, name: str = "b") -> Lease:
    """A job that asks for the same clip, in a slot's hands."""
    job, first = f"job_{name}", f"job_{name}.clip"
    draft = Draft(first, job, "clip", None, spec(clip="aa-clip"))
    world.ledger.submit(NewJob(job, "me", name, name, "clip", "{}"), draft)
    world.ledger.renew(ME, {}, {})
    (lease,) = world.ledger.claim(ME.id, ["cpu"], 1, [first])
    return lease


def finish(world: World, lease: Lease) -> None:
    result = _adopt(world.blobs, "me", "aa-clip")
    assert result, "the slot finds the manifest, which is sound"
    world.ledger.complete(ME.id, [Finish(lease.task, lease.fence, (result,))])


def whole(world: World) -> bool:
    """Whether every result of a done task that nobody may clear is there."""
    sound = not verify(world.ledger, world.blobs, "me").damages
    return sound and not lost(world)


def lost(world: World) -> list[tuple[str, str]]:
    return [(d.task, d.key) for d in find_missing(world.ledger, "me", RULES.specs, ["job_gone"])]


def test_what_a_slot_adopts_just_before_its_manifest_goes_is_brought_back(world: World, busy: Busy) -> None:
    world.submit("a", "aa-clip")
    world.day = 40
    busy.meanwhile = lambda: finish(world, claim(world))
    assert world.gc() == 0
    assert world.ledger.job("job_b").state is JobState.COMPLETED
    assert world.ledger.known("me", ["aa-clip"])
    assert busy.read(CLIP)
    assert whole(world)


def test_what_a_frozen_slot_has_found_is_there_when_it_completes(world: World, busy: Busy) -> None:
    world.submit("a", "aa-clip")
    world.day = 40
    found: list[Any] = []
    busy.meanwhile = lambda: found.extend((claim(world), _adopt(busy, "me", "aa-clip")))
    world.gc()
    world.ledger.complete(ME.id, [Finish(found[0].task, found[0].fence, (found[1],))])
    assert whole(world)
    assert world.ledger.job("job_b").state is JobState.COMPLETED


def probing(world: World) -> Lease:
    """A job whose plan is written but not open: it adopts a clip, and reads it."""
    job, first = "job_b", "job_b.probe"
    probe = Draft(first, job, "probe", None, spec(facts="bb-probe"))
    world.ledger.submit(NewJob(job, "me", "b", "b", "r", "{}"), probe)
    world.ledger.renew(ME, {}, {})
    (lease,) = world.ledger.claim(ME.id, ["cpu"], 1)
    clip = Draft("job_b.clip", job, "clip", None, spec(clip="aa-clip"), adopted=True)
    later = Draft("job_b.later", job, "later", None, spec(["aa-clip"]), needs=(Need(clip.id),), order=1)
    world.ledger.draft(job, first, lease.fence, [clip, later], "{}")
    return lease


def opened(world: World) -> Lease:
    """The same, open, after a gc came between."""
    world.submit("a", "aa-clip")
    world.day = 40
    lease = probing(world)
    assert world.gc() == 1
    world.ledger.complete(ME.id, [Finish(lease.task, lease.fence, (world.result("bb-probe"),))])
    return lease


def states(world: World, job: str) -> dict[str, TaskState]:
    return {task.stage: task.state for task in world.ledger.tasks(job).rows}


def test_what_goes_while_a_plan_adopts_it_is_made_once_the_plan_is_open(world: World) -> None:
    lease = opened(world)
    opening = PlanOpener(world.ledger, world.blobs, {})
    assert opening.check(lease) == ("job_b.clip",)
    assert states(world, "job_b") == {"probe": "done", "clip": "ready", "later": "waiting"}
    assert opening.check(lease) == ()


def test_what_is_missing_of_a_plan_whose_opener_was_killed_is_found_and_mended(world: World) -> None:
    opened(world)
    damages = find_missing(world.ledger, "me", RULES.specs, [])
    assert [(d.task, d.key) for d in damages] == [("job_b.clip", "aa-clip")]
    assert repair(world.ledger, world.blobs, "me", damages) == ("job_b.clip",)
    assert lost(world) == [], "it is on its way"


def test_what_went_by_the_rules_is_not_missing(world: World) -> None:
    world.submit("a", "aa-clip")
    world.day = 40
    world.gc()
    assert lost(world) == []


def test_what_lasts_is_missing_unless_its_job_was_deleted(world: World) -> None:
    for name in ("gone", "b", "c"):
        world.planned(name, "aa-facts", {})
    assert lost(world) == [("job_c.probe", "aa-facts")]
    world.ledger.set_aside("me", ["aa-facts"], "lost")
    assert find_missing(world.ledger, "me", RULES.specs, ["job_gone", "job_b", "job_c"]) == ()


def test_what_only_cancelled_jobs_had_is_not_missing(world: World) -> None:
    world.submit("a", "aa-clip", then=True)
    world.ledger.control("job_a", JobCommand.CANCEL)
    world.ledger.set_aside("me", ["aa-clip"], "damaged")
    assert lost(world) == []


def test_what_was_made_anew_after_a_killed_clearing_stays(world: World, busy: Busy) -> None:
    world.submit("a", "aa-clip")
    world.day = 40
    busy.meanwhile = _die
    with pytest.raises(KeyboardInterrupt):
        world.gc()
    MemoryBlobs.delete(busy, CLIP)  # it was just about to
    lease = claim(world)
    world.ledger.complete(ME.id, [Finish(lease.task, lease.fence, (world.result("aa-clip", lease.job),))])
    made = busy.read(CLIP)
    world.gc()
    assert busy.read(CLIP) == made
    assert world.ledger.job("job_b").state is JobState.COMPLETED
    assert list(busy.keys("clearing/")) == []


def make_anew(world: World) -> None:
    """Another job makes the clip itself, from the first byte to the ledger's row."""
    lease = claim(world)
    world.ledger.complete(ME.id, [Finish(lease.task, lease.fence, (world.result("aa-clip", lease.job),))])


def test_what_is_made_anew_just_before_its_manifest_goes_stays(world: World, busy: Busy) -> None:
    world.submit("a", "aa-clip")
    world.day = 40

    def mended() -> None:
        MemoryBlobs.delete(busy, CLIP)  # a slot found it damaged
        make_anew(world)

    busy.meanwhile = mended
    assert world.gc() == 0
    assert whole(world)
    assert b"job_b" in (read_document(busy, CLIP) or b"")


def test_what_had_no_manifest_and_is_made_while_it_goes_stays(world: World, busy: Busy) -> None:
    world.submit("a", "aa-clip")
    MemoryBlobs.delete(busy, CLIP)
    world.day = 40
    set_aside = world.ledger.set_aside

    def and_meanwhile(owner: str, keys: Collection[str], reason: str) -> int:
        count = set_aside(owner, keys, reason)
        make_anew(world)
        return count

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(world.ledger, "set_aside", and_meanwhile)
        world.gc()
    assert busy.read(CLIP)
    assert whole(world)


def test_a_damaged_note_hinders_nobody(world: World) -> None:
    world.submit("a", "aa-clip")
    world.blobs.create("clearing/me/note.json", b"bit rot")
    world.day = 40
    assert world.gc() == 1


def _die() -> None:
    raise KeyboardInterrupt


def test_a_deletion_leaves_what_another_job_has(world: World) -> None:
    world.submit("a", "aa-clip")
    finish(world, claim(world))
    assert drop(world.ledger, world.blobs, "me", ["job_a"]) == 0
    assert whole(world)
    assert drop(world.ledger, world.blobs, "me", ["job_b"], ["job_a"]) == 1
    assert read_document(world.blobs, CLIP) is None


def test_a_deletion_gives_back_what_another_job_takes_up_meanwhile(world: World, busy: Busy) -> None:
    world.submit("a", "aa-clip")
    busy.meanwhile = lambda: finish(world, claim(world))
    assert drop(world.ledger, busy, "me", ["job_a"]) == 0
    assert world.ledger.job("job_a").state is JobState.COMPLETED, "what was deleted is not revived"
    assert busy.read(CLIP)
    assert world.ledger.known("me", ["aa-clip"])


def test_a_deletion_without_jobs_meddles_with_nothing(world: World) -> None:
    world.blobs.create("clearing/me/other.json", b"the note of somebody who was killed")
    assert drop(world.ledger, world.blobs, "me", []) == 0
    assert read_document(world.blobs, "clearing/me/other.json")


def share_a_name(world: World) -> None:
    """Three takes that gave one name to what they made, the last of them now."""
    for n, take in enumerate(("aa-one", "aa-two", "aa-clip")):
        world.day = n
        world.submit(take, take, publish="films/vid.mp4")
        world.blobs.publish("films/vid.mp4", "me", hashlib.sha256(take.encode()).hexdigest())


def test_a_name_that_another_take_shares_is_its_own_afterwards(world: World) -> None:
    share_a_name(world)
    for left, gone in (("aa-two", "job_aa-clip"), ("aa-two", "job_aa-one")):
        drop(world.ledger, world.blobs, "me", [gone])
        assert read_document(world.blobs, "films/vid.mp4") == left.encode()
    drop(world.ledger, world.blobs, "me", ["job_aa-two"])
    assert read_document(world.blobs, "films/vid.mp4") is None


class Dying:
    """A store whose process is killed before or after its n-th write."""

    WRITES = ("set_aside", "revive", "create", "remove", "publish", "drop")

    def __init__(self, store: object, count: Iterator[int], at: int) -> None:
        self._store, self._count, self._at = store, count, at

    def __getattr__(self, verb: str) -> Any:
        do = getattr(self._store, verb)
        return (lambda *args, **named: self._write(do, *args, **named)) if verb in self.WRITES else do

    def _write(self, do: Callable[..., object], *args: Any, **named: Any) -> object:
        self._die()
        answer = do(*args, **named)
        self._die()
        return answer

    def _die(self) -> None:
        if next(self._count) == self._at:
            raise KeyboardInterrupt


@pytest.mark.parametrize("at", range(40))
def test_a_clearing_that_is_killed_anywhere_is_gone_on_with(at: int, world: World, busy: Busy) -> None:
    share_a_name(world)
    world.day = 2 + 30
    busy.meanwhile = lambda: finish(world, claim(world))  # one take is taken up again meanwhile, another stays
    ledger, blobs, count = world.ledger, world.blobs, iter(range(1000))
    world.ledger, world.blobs = cast(Any, Dying(ledger, count, at)), cast(Any, Dying(blobs, count, at))
    killed = False
    try:
        world.gc()
    except KeyboardInterrupt:
        killed = True
    world.ledger, world.blobs = ledger, busy
    if killed:
        world.gc()
    elif at > 30:
        assert next(count) < 40, "every write was met"
    assert list(busy.keys("clearing/")) == []
    if states(world, "job_b")["clip"] is TaskState.READY:
        (lease,) = ledger.claim(ME.id, ["cpu"], 1)
        finish(world, lease)
    assert whole(world)
    assert read_document(busy, "films/vid.mp4") == b"aa-clip"
    assert len(list(busy.keys("results/"))) == 1


def test_a_deletion_looks_at_no_job_of_other_footage(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, sha256 in (("gone", "a"), ("same", "a"), ("other", "b")):
        world.planned(name, f"{name}-probe", {"clip": spec(clip=f"{sha256}-clip")}, f'{{"sha256": "{sha256}"}}')
    world.result("a-clip")
    claim(world, "unread")
    looked: list[str] = []
    tasks = world.ledger.tasks

    def seen(job: str = "", *of: Any, **more: Any) -> Any:
        looked.append(job)
        return tasks(job, *of, **more)

    monkeypatch.setattr(world.ledger, "tasks", seen)
    assert drop(world.ledger, world.blobs, "me", ["job_gone"]) == 0
    assert read_document(world.blobs, manifest_key("me", "a-clip")), "the other job of that footage wants it"
    assert set(looked) == {"job_gone", "job_same", "job_unread"}
