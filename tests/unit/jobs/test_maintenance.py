"""Whose results gc clears and repair makes again, when several jobs share them; backups of what moves."""

from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from rushes.blobs.documents import read_document
from rushes.blobs.port import ByteRange
from rushes.domain.errors import DamagedBlob, Refused
from rushes.domain.job import JobCommand, JobState, NewJob
from rushes.domain.keys import blob_key, manifest_key
from rushes.domain.task import Draft, Finish, TaskState
from rushes.home_folder import RESTORING
from rushes.jobs.maintenance.backup import SEAL, backup, copy
from rushes.jobs.maintenance.repair import repair, rounds
from rushes.jobs.maintenance.reports import BackupReport, Damage
from rushes.jobs.maintenance.restore import LEDGER, restore
from rushes.jobs.maintenance.verify import find_missing, verify
from rushes.ledger.memory import MemoryLedger
from rushes.worker.publish import sweep
from tests.memory_blobs import MemoryBlobs
from tests.unit.maintenance_kit import ME, RULES, World, spec


@pytest.fixture
def world() -> World:
    return World()


def test_a_clip_goes_when_its_days_are_over(world: World) -> None:
    world.submit("a", "aa-clip")
    world.day = 29
    assert world.gc() == 0
    world.day = 30
    assert world.gc() == 1
    assert read_document(world.blobs, manifest_key("me", "aa-clip")) is None
    assert list(world.blobs.keys("blobs/")) == []


def test_a_clip_that_a_younger_job_shares_stays(world: World) -> None:
    world.submit("a", "aa-clip")
    world.day = 25
    world.submit("b", "aa-clip")
    world.day = 40
    assert world.gc() == 0
    assert read_document(world.blobs, manifest_key("me", "aa-clip"))
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
    assert read_document(world.blobs, manifest_key("me", "aa-probe"))
    world.gc(job, "job_again")
    assert read_document(world.blobs, manifest_key("me", "aa-probe")) is None


class Busy(MemoryLedger):
    """A ledger in which something happens just before results are set aside."""

    meanwhile: Callable[[], object] = staticmethod(lambda: None)

    def set_aside(self, owner: str, keys: Collection[str], reason: str, note_only: bool = False) -> int:
        do, self.meanwhile = self.meanwhile, lambda: None
        do()
        return super().set_aside(owner, keys, reason, note_only)


def test_what_a_job_takes_up_while_gc_sets_it_aside_is_given_back(world: World) -> None:
    world.ledger = busy = Busy(wall=lambda: int(world.now().timestamp() * 1000))
    world.submit("a", "aa-clip")
    world.day = 40
    busy.meanwhile = lambda: world.submit("b", "aa-clip")
    assert world.gc() == 0
    (task,) = busy.tasks("job_b").rows
    assert task.state is TaskState.READY, "it adopts its result again"
    assert read_document(world.blobs, manifest_key("me", "aa-clip")), "which is there still"


def test_two_takes_that_share_a_name_are_both_sound_whichever_has_it(world: World) -> None:
    for take in ("aa-one", "aa-two"):
        world.submit(take, take, publish="videos/film.mp4")
        sweep(world.ledger, world.blobs)
    assert verify(world.ledger, world.blobs, "me").damages == ()
    world.blobs.delete("videos/film.mp4")
    assert [d.names_only for d in verify(world.ledger, world.blobs, "me").damages] == [True, True]


def test_a_damage_is_told_of_a_job_that_can_mend_it(world: World) -> None:
    world.submit("old", "aa-clip")
    world.day = 1
    world.submit("cancelled", "aa-clip", then=True)
    world.ledger.control("job_cancelled", JobCommand.CANCEL)
    world.spoil("aa-clip")
    (damage,) = verify(world.ledger, world.blobs, "me").damages
    assert damage.job == "job_old"
    assert repair(world.ledger, world.blobs, "me", (damage,)) == ("job_old.clip",)
    assert world.ledger.job("job_cancelled").state is JobState.CANCELLED


def test_a_damage_of_a_cancelled_job_alone_is_set_aside_and_nothing_is_revived(world: World) -> None:
    world.submit("cancelled", "aa-clip", then=True)
    world.ledger.control("job_cancelled", JobCommand.CANCEL)
    world.spoil("aa-clip")
    damages = verify(world.ledger, world.blobs, "me").damages
    assert repair(world.ledger, world.blobs, "me", damages) == ()
    assert verify(world.ledger, world.blobs, "me").damages == ()


def test_a_repair_leaves_what_was_mended_since_it_was_found(world: World) -> None:
    world.submit("a", "aa-clip")
    world.spoil("aa-clip")
    damages = verify(world.ledger, world.blobs, "me").damages
    world.blobs.put("me", b"aa-clip")
    repair(world.ledger, world.blobs, "me", damages)
    assert read_document(world.blobs, manifest_key("me", "aa-clip"))
    assert world.ledger.known("me", ["aa-clip"])


def test_what_is_made_anew_while_a_repair_sets_it_aside_stays(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.submit("a", "aa-clip")
    world.spoil("aa-clip")
    set_aside = world.ledger.set_aside

    def and_meanwhile(owner: str, keys: Collection[str], reason: str, note_only: bool = False) -> int:
        count = set_aside(owner, keys, reason, note_only)
        if note_only:
            return count
        world.blobs.delete(manifest_key("me", "aa-clip"))  # a slot of another job meets the damage as well
        world.result("aa-clip", "job_b")
        return count

    monkeypatch.setattr(world.ledger, "set_aside", and_meanwhile)
    repair(world.ledger, world.blobs, "me", verify(world.ledger, world.blobs, "me").damages)
    assert b"job_b" in (read_document(world.blobs, manifest_key("me", "aa-clip")) or b"")


def test_what_is_sound_and_only_missing_in_the_ledger_is_not_made_again(world: World) -> None:
    world.submit("a", "aa-clip")
    world.ledger.set_aside("me", ["aa-clip"], "a clearing was killed")
    damages = find_missing(world.ledger, "me", {}, ())
    assert repair(world.ledger, world.blobs, "me", damages) == ("job_a.clip",)
    assert read_document(world.blobs, manifest_key("me", "aa-clip")), "its slot adopts it"


class Bucket(MemoryBlobs):
    """A store that knows when a document is not what was written, and does not hand it out."""

    def read(self, key: str, start: int = 0, end: int | None = None) -> ByteRange | None:
        found = super().read(key, start, end)
        if found and found.data == b"bit rot":
            raise DamagedBlob(f"{key} does not have the content that was written")
        return found


def test_a_manifest_that_a_bucket_cannot_give_back_is_found_and_set_aside(world: World) -> None:
    world.blobs = Bucket()
    world.submit("a", "aa-clip")
    world.blobs.delete(manifest_key("me", "aa-clip"))
    world.blobs.create(manifest_key("me", "aa-clip"), b"bit rot")
    damages = verify(world.ledger, world.blobs, "me").damages
    assert [damage.what for damage in damages] == ["the manifest is damaged"]
    assert repair(world.ledger, world.blobs, "me", damages) == ("job_a.clip",)
    assert read_document(world.blobs, manifest_key("me", "aa-clip")) is None


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


def test_a_repair_makes_what_is_missing_and_leaves_what_its_task_reads_if_that_is_there(world: World) -> None:
    ledger, plan = world.ledger, {
        "chunk": spec(["aa-probe"], part="aa-part"),
        "cut": spec(["aa-part"], ["job_a.chunk"], cut="aa-cut"),
        "last": spec(["aa-cut"], ["job_a.cut"], last="aa-last"),
    }  # fmt: skip
    job = world.planned("a", "aa-probe", plan)
    keys = {"job_a.chunk": "aa-part", "job_a.cut": "aa-cut", "job_a.last": "aa-last"}
    while leases := ledger.claim(ME.id, ["cpu"], 1):
        (lease,) = leases
        ledger.complete(ME.id, [Finish(lease.task, lease.fence, (world.result(keys[lease.task], job),))])
    lost = Damage(job, "job_a.last", "aa-last", "last", "lost")
    world.spoil("aa-last")
    assert repair(ledger, world.blobs, "me", [lost]) == ("job_a.last",)
    ledger.set_aside("me", ["aa-cut"], "cleared by gc")
    assert set(repair(ledger, world.blobs, "me", [lost])) == {"job_a.cut"}, "its maker as well; the rest is there"
    assert {task.stage for task in ledger.tasks(job, TaskState.DONE).rows} == {"probe", "chunk"}


TASKS = (("probe", "probe"), ("chunk", "part"), ("join", "whole"))


class Vanishing(MemoryBlobs):
    """A store in which gc clears a blob between the listing and the copy."""

    def local(self, owner: str, sha256: str) -> Path:
        self.delete(blob_key(owner, sha256))
        raise DamagedBlob("it is gone")


def test_what_may_go_is_missing_only_while_somebody_is_going_to_read_it(world: World) -> None:
    job = world.planned("a", "aa-facts", {"clip": spec(clip="aa-clip"), "later": spec(["aa-clip"])})

    def finish_next() -> None:
        (lease,) = world.ledger.claim(ME.id, ["cpu"], 1)
        world.ledger.complete(ME.id, [Finish(lease.task, lease.fence)])

    def missing() -> list[str]:
        return [d.key for d in find_missing(world.ledger, "me", RULES.specs, ()) if d.task == f"{job}.clip"]

    finish_next()
    assert missing() == ["aa-clip"]
    finish_next()
    assert missing() == []


def test_what_vanishes_while_it_is_copied_is_passed_over(world: World) -> None:
    world.blobs = Vanishing()
    world.result("aa-clip")
    copied = copy(world.blobs, MemoryBlobs())
    assert copied.damaged == ()
    assert copied.copied == 2


def test_a_backup_says_how_much_there_is_and_how_much_of_it_is_new(world: World) -> None:
    world.result("aa-clip")
    world.blobs.put("me", b"a file of no result")
    target = MemoryBlobs()
    sizes = [len(world.blobs.read(key).data) for key in world.blobs.keys("results/")]  # type: ignore[union-attr]
    whole = sum(sizes) + len(b"aa-clip") + len(b"a file of no result")
    assert copy(world.blobs, target) == BackupReport(3, whole, 3, ())
    assert copy(world.blobs, target) == BackupReport(3, whole, 0, ())


def test_a_manifest_that_is_none_is_left_out_of_a_backup_and_told(world: World) -> None:
    world.result("aa-clip")
    spoilt, target = manifest_key("me", "aa-spoilt"), MemoryBlobs()
    world.blobs.create(spoilt, b"no manifest any more")
    assert copy(world.blobs, target).damaged == (spoilt,)
    assert list(target.keys("results/")) == [manifest_key("me", "aa-clip")]


def test_a_restored_home_has_every_name_whose_result_is_there(world: World, tmp_path: Path) -> None:
    for key in ("aa-first", "bb-left-out", "cc-last"):
        world.result(key, name=f"films/{key}.mp4")
    world.spoil("bb-left-out")
    (tmp_path / SEAL).write_text('{"snapshot": "snapshot-0123456789abcdef", "files": {}}')
    home = MemoryBlobs()
    home.create(manifest_key("me", "ab-spoilt"), b"what a disk made of a home that was here before")
    restore(tmp_path, tmp_path / "home", lambda _: world.blobs, lambda _: home)
    assert list(home.keys("films/")) == ["films/aa-first.mp4", "films/cc-last.mp4"]
    assert read_document(home, "films/cc-last.mp4") == b"cc-last"


def test_a_home_is_not_restored_over_unless_its_own_restore_was_cut_short(world: World, tmp_path: Path) -> None:
    (tmp_path / SEAL).write_text('{"snapshot": "snapshot-0123456789abcdef", "files": {}}')
    home = tmp_path / "home"
    home.mkdir()
    (home / LEDGER).touch()
    with pytest.raises(Refused, match="already a home"):
        restore(tmp_path, home, lambda _: world.blobs, lambda _: MemoryBlobs())
    (home / RESTORING).touch()
    world.result("aa-clip")
    assert restore(tmp_path, home, lambda _: world.blobs, lambda _: MemoryBlobs()) == 2
    assert not (home / RESTORING).exists()


def test_a_manifest_that_a_bucket_cannot_give_back_is_restored(world: World) -> None:
    world.result("aa-clip")
    name, bucket = manifest_key("me", "aa-clip"), Bucket()
    bucket.create(name, b"bit rot")
    assert copy(world.blobs, bucket).copied == 2
    assert read_document(bucket, name) == read_document(world.blobs, name)


def test_a_backup_goes_into_an_empty_folder_or_over_an_earlier_one_alone(world: World, tmp_path: Path) -> None:
    world.result("aa-clip")
    home, to, target = tmp_path / "home", tmp_path / "to", MemoryBlobs()
    home.mkdir()

    def copied() -> int:
        return backup(home, world.blobs, to, {}, lambda _: target).copied

    assert [copied(), copied()] == [2, 0]
    assert (to / SEAL).exists()
    (to / SEAL).unlink()
    (to / "films").mkdir()
    with pytest.raises(Refused, match="not empty and not a backup"):
        copied()


def test_a_job_may_be_forgotten_when_its_days_are_over_to_the_second(world: World) -> None:
    job, rules = world.submit("a", "aa-clip"), replace(RULES, jobs_days=30)
    ended = datetime.fromisoformat(world.ledger.job(job).finished_at or "")
    for late, over in ((timedelta(days=30), True), (timedelta(days=30, seconds=-1), False)):
        assert rules.is_over(world.ledger.job(job), ended + late) is over
