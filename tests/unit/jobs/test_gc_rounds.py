"""gc and verify over much: a step at a time, on with what was cut short, and history that is too old."""

import hashlib
import stat
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rushes.domain.errors import NotFound, StoreAway
from rushes.domain.event import EventType
from rushes.domain.job import JobCommand, JobState
from rushes.domain.keys import blob_key, manifest_key
from rushes.domain.task import Failure
from rushes.jobs.maintenance.deletion import Deletion, RetentionRules
from rushes.jobs.maintenance.gc import GcRound, gc
from rushes.jobs.maintenance.reports import GcReport, Selection, VerifyProgress
from rushes.jobs.maintenance.verify import verify
from rushes.jobs.maintenance.work_file import WorkFile
from tests.unit.maintenance_kit import ME, RULES, World, spec


@pytest.fixture
def world() -> World:
    return World()


def round_of(world: World, file: WorkFile, rules: RetentionRules = RULES) -> GcRound:
    return GcRound(Deletion(world.ledger, world.blobs, "me", rules, world.now()), file)


def sweep_with(world: World, rules: RetentionRules) -> GcReport:
    return gc(world.ledger, world.blobs, "me", rules, world.now())


def test_a_round_that_is_cut_short_after_any_step_is_gone_on_with(tmp_path: Path) -> None:
    """Every step by another process; what one of them has seen the others know."""
    world, steps = World(), 0
    for n in range(3):
        world.submit(f"{n}", f"a{n}-clip", publish=f"videos/clips/{n}.mp4")
    world.blobs.put("me", b"left by a killed attempt")
    world.day = 40
    while True:
        file = WorkFile(tmp_path / "gc.sqlite", "me", keep_seconds=3600.0)
        assert file.resumed == bool(steps)
        more = round_of(world, file).step()
        report = round_of(world, file).report
        file.close()
        if not more:
            break
        steps += 1
    assert steps > 500, "each folder of results and files is a step"
    assert (report.results, report.blobs) == (3, 4)
    assert [*world.blobs.keys("")] == []


def test_a_round_is_begun_again_when_its_file_is_old_damaged_or_for_somebody_else(tmp_path: Path) -> None:
    path = tmp_path / "gc.sqlite"
    WorkFile(path, "me").set(phase="blobs")
    assert WorkFile(path, "me", keep_seconds=60.0).get("phase") == "blobs"
    assert WorkFile(path, "me", keep_seconds=0.0).get("phase") == ""
    assert WorkFile(path, "you", keep_seconds=60.0).get("phase") == ""
    path.write_bytes(b"torn by a power cut" * 100)
    assert WorkFile(path, "me", keep_seconds=60.0).get("phase") == ""


def test_what_an_open_job_reads_stays_though_the_job_that_made_it_lets_it_go(world: World) -> None:
    world.submit("a", "aa-clip")
    world.day = 40
    world.planned("reader", "bb-probe", {"later": spec(["aa-clip"])})
    assert world.gc() == 0
    assert world.ledger.known("me", ["aa-clip"])
    assert world.blobs.read(manifest_key("me", "aa-clip"))


@pytest.mark.parametrize("step", range(4))
def test_what_a_job_takes_up_between_two_steps_stays(world: World, step: int) -> None:
    """The jobs are sorted once: who wants something afterwards is found by what has changed since."""
    world.submit("a", "aa-clip")
    world.day = 40
    round = round_of(world, WorkFile(None))
    for _ in range(step):
        round.step()
    world.planned("late", "bb-probe", {"later": spec(["aa-clip"])})
    while round.step():
        pass
    taken_up_in_time = step < 3  # jobs, notes, results: then it is gone
    assert bool(world.ledger.known("me", ["aa-clip"])) == taken_up_in_time
    assert bool(world.blobs.read(manifest_key("me", "aa-clip"))) == taken_up_in_time


def test_a_blob_that_is_stored_again_during_a_round_is_young(world: World) -> None:
    """A slot finds the same bytes that a killed attempt left, and has not written its manifest yet."""
    old = world.blobs.put("me", b"the same bytes")
    round = round_of(world, WorkFile(None), replace(RULES, young_seconds=3600.0))
    world.blobs._stored[blob_key("me", old.sha256)] -= 7200.0
    for _ in range(300):
        round.step()
    world.blobs.put("me", b"the same bytes")
    while round.step():
        pass
    assert world.blobs.stat("me", old.sha256)


@pytest.mark.parametrize("paused_in", ["manifests", "blobs"])
def test_what_is_finished_during_a_round_stays_however_long_the_round_pauses(
    world: World, monkeypatch: pytest.MonkeyPatch, paused_in: str
) -> None:
    """The machine sleeps for days after the manifests were read: what they did not name yet is old by now."""
    left, pause, wall = world.blobs.put("me", b"left by a killed attempt"), 5 * 86400.0, time.time
    world.blobs._stored[blob_key("me", left.sha256)] -= 7200.0
    file = WorkFile(None)
    round = round_of(world, file, replace(RULES, young_seconds=3600.0))
    while round.progress.phase != paused_in or (paused_in == "manifests" and file.get("cursor") != "ff"):
        round.step()
    world.submit("late", "aa-clip")
    for key in world.blobs._stored:
        world.blobs._stored[key] -= pause
    monkeypatch.setattr(time, "time", lambda: wall() + pause)
    while round.step():
        pass
    assert world.blobs.stat("me", hashlib.sha256(b"aa-clip").hexdigest())
    assert world.blobs.stat("me", left.sha256) is None, "what was old before the manifests were read goes"


def test_a_work_file_is_its_owners_alone(tmp_path: Path) -> None:
    file = WorkFile(tmp_path / "gc.sqlite", "me")
    file.close()
    assert stat.S_IMODE((tmp_path / "gc.sqlite").stat().st_mode) == 0o600


def test_a_work_file_can_be_removed_twice(tmp_path: Path) -> None:
    file = WorkFile(tmp_path / "gc.sqlite", "me", 60.0)
    file.set(phase="blobs")
    file.remove()
    file.remove()
    assert not list(tmp_path.iterdir())


def test_events_go_after_their_days_and_the_rest_of_the_job_stays(world: World) -> None:
    job = world.submit("a", "aa-clip")
    rules = replace(RULES, clip_days=400, events_days=30)
    world.day = 29
    assert sweep_with(world, rules).trimmed == 0
    world.day = 31
    assert sweep_with(world, rules).trimmed == 1
    assert [e.type for e in world.ledger.events(job)] == [EventType.TRUNCATED, EventType.FINISHED]
    assert sweep_with(world, rules).trimmed == 0, "only once"
    assert world.ledger.known("me", ["aa-clip"])


def test_events_stay_for_ever_with_no_days(world: World) -> None:
    job = world.submit("a", "aa-clip")
    before = world.ledger.events(job)
    world.day = 4000
    sweep_with(world, RULES)
    assert world.ledger.events(job) == before


ENDS: dict[str, Callable[[World, str], object]] = {
    "cancelled": lambda world, job: world.ledger.control(job, JobCommand.CANCEL),
    "failed": lambda world, _job: _kill(world),
}


def _kill(world: World) -> None:
    (lease,) = world.ledger.claim(ME.id, ["cpu"], 1)
    world.ledger.fail(ME.id, lease.task, lease.fence, Failure("SlotDied", "it died", "", ""), None)


@pytest.mark.parametrize("way", ENDS)
def test_a_job_that_came_to_nothing_is_forgotten_with_what_it_made(world: World, way: str) -> None:
    job = world.submit("a", "aa-clip", then=True)
    ENDS[way](world, job)
    world.day = 89
    rules = replace(RULES, clip_days=400, jobs_days=90)
    assert sweep_with(world, rules).jobs == 0
    world.day = 91
    assert sweep_with(world, rules) == GcReport(1, 1, len(b"aa-clip"), 0, 1)
    with pytest.raises(NotFound):
        world.ledger.job(job)


def test_a_completed_job_is_forgotten_only_when_nothing_of_it_is_left(world: World) -> None:
    rules = replace(RULES, clip_days=100, jobs_days=10)
    job = world.submit("a", "aa-clip")
    world.day = 50
    assert sweep_with(world, rules).jobs == 0
    assert world.ledger.job(job).state is JobState.COMPLETED
    world.day = 101
    assert sweep_with(world, rules).jobs == 1


def test_what_a_forgotten_job_shared_with_another_stays(world: World) -> None:
    first = world.submit("a", "aa-clip", then=True)
    world.ledger.control(first, JobCommand.CANCEL)
    second = world.submit("b", "aa-clip")
    world.day = 91
    rules = replace(RULES, clip_days=400, jobs_days=90)
    sweep_with(world, rules)
    assert world.ledger.job(second).state is JobState.COMPLETED
    assert world.ledger.known("me", ["aa-clip"])


def test_a_verification_that_is_cut_short_reads_nothing_twice(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(6):
        world.submit(f"{n}", f"a{n}-clip")
    world.spoil("a1-clip")
    read: list[str] = []
    check = world.blobs.verify

    def verify_four(owner: str, sha256: str, **more: bool) -> bool:
        read.append(sha256)
        if len(read) == 4:
            raise StoreAway("the bucket is away")
        return check(owner, sha256, **more)

    monkeypatch.setattr(world.blobs, "verify", verify_four)
    file = WorkFile(tmp_path / "verify.sqlite", "me", 60.0)
    with pytest.raises(StoreAway):
        verify(world.ledger, world.blobs, "me", file=file)
    file.close()
    again = WorkFile(tmp_path / "verify.sqlite", "me", 60.0)
    report = verify(world.ledger, world.blobs, "me", file=again)
    assert (report.results, report.resumed, len(read)) == (6, 3, 7)
    assert [damage.key for damage in report.damages] == ["a1-clip"], "what the first one found is told as well"


def test_a_verification_of_several_pages_of_jobs_reads_each_once(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(5):
        world.submit(f"{n}", f"a{n}-clip")
    jobs, pages = world.ledger.jobs, list[str]()

    def two_jobs(*args: Any, **more: Any) -> Any:
        page = jobs(*args, **{**more, "limit": 2})
        pages.append(page.cursor)
        assert len(pages) < 20, "it does not end"
        return page

    monkeypatch.setattr(world.ledger, "jobs", two_jobs)
    told: list[VerifyProgress] = []
    file = WorkFile(tmp_path / "verify.sqlite", "me", 60.0)
    assert verify(world.ledger, world.blobs, "me", told.append, file=file).results == 5
    assert [progress.jobs for progress in told] == [1, 2, 3, 4, 5]
    assert file.number("jobs") == 5


def test_the_parts_of_a_verification_are_all_of_it_and_a_sample_is_some(world: World) -> None:
    for n in range(60):
        world.submit(f"{n}", f"a{n}-clip")
    parts = [verify(world.ledger, world.blobs, "me", chosen=Selection(1.0, n, 4)).results for n in (1, 2, 3, 4)]
    assert sum(parts) == 60
    assert all(parts)
    some = Selection(0.5)
    assert 0 < verify(world.ledger, world.blobs, "me", chosen=some).results < 60
    chosen = [{key for key in map(str, range(200)) if some.takes(key, seed)} for seed in ("a", "b")]
    assert chosen[0] != chosen[1], "another sample every time: in the end all is read"


def test_a_verification_says_how_far_it_is(world: World) -> None:
    for n in range(3):
        world.submit(f"{n}", f"a{n}-clip")
    told: list[VerifyProgress] = []
    verify(world.ledger, world.blobs, "me", told.append)
    assert [(p.results, p.jobs, p.total, p.name) for p in told] == [(0, 1, 3, "0"), (1, 2, 3, "1"), (2, 3, 3, "2")]
