"""Verify, repair, gc, backup, restore: damage is found, exactly that is made again, and nothing needed is cleared."""

import hashlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from proof.audit import outputs
from proof.kills import ROOT, TOYS

from rushes.blobs.manifests import read_manifest
from rushes.domain.errors import NotFound, Refused
from rushes.domain.event import EventType
from rushes.jobs.maintenance.backup import maintenance_lock
from rushes.jobs.maintenance.deletion import RetentionRules
from rushes.jobs.maintenance.gc import gc
from rushes.library import JobRequest, Library
from rushes.plan.planner import results_of
from rushes.uploads.service import Uploads
from tests.acceptance.conftest import draw

WISH = JobRequest(only=("toy_join",), chunk="5")


@pytest.fixture(autouse=True, scope="module")
def toys() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(TOYS))
        patch.setenv("PYTHONPATH", os.pathsep.join(map(str, (ROOT, TOYS))))
        yield


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, toy_film: Path) -> Path:
    """A home with one finished film."""
    home = tmp_path_factory.mktemp("finished") / "home"
    with Library(home) as library:
        assert library.run([toy_film], WISH).exit_code == 0
    return home


@pytest.fixture
def library(tmp_path: Path, finished: Path) -> Iterator[Library]:
    """A copy of it, which a test may damage."""
    shutil.copytree(finished, tmp_path / "home")
    with Library(tmp_path / "home") as library:
        yield library


def blobs(library: Library) -> list[Path]:
    return sorted((library.home.folder / "files" / "blobs").rglob("?" * 64))


def spoil(path: Path, how: str) -> None:
    if how == "deleted":
        path.unlink()
        return
    path.chmod(0o644)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data[: len(data) // 2] if how == "truncated" else data)


def test_a_sound_home_is_verified_without_a_word(library: Library) -> None:
    found = library.maintenance.verify()
    assert found.damages == ()
    assert found.results == 18
    assert found.files == len(blobs(library))


@pytest.mark.parametrize("how", ["deleted", "truncated", "flipped"])
def test_damage_is_found_and_exactly_that_is_made_again(how: str, library: Library) -> None:
    before = outputs(library.home)
    victim = max(blobs(library), key=lambda p: p.stat().st_size)
    spoil(victim, how)
    damages = library.maintenance.verify().damages
    assert len(damages) == 1
    job = damages[0].job
    last = library.jobs.find(job).last_event
    assert library.maintenance.repair(damages).exit_code == 0
    done = [e.task for e in library.jobs.follow(job, last) if e.type is EventType.DONE]
    assert done == [damages[0].task]
    assert library.maintenance.verify().damages == ()
    assert outputs(library.home) == before


def published(library: Library) -> Path:
    return next((library.home.folder / "files" / "toys").rglob("whole.bin"))


@pytest.mark.parametrize("how", ["deleted", "truncated", "flipped"])
def test_a_published_file_that_is_missing_or_changed_is_found_and_published_again(how: str, library: Library) -> None:
    before, file = outputs(library.home), published(library)
    data = file.read_bytes()
    file.unlink()
    if how != "deleted":  # a file of its own, not the link to the blob
        file.write_bytes(data[:-1] if how == "truncated" else data[:-1] + bytes([data[-1] ^ 1]))
    (damage,) = library.maintenance.verify().damages
    assert "whole.bin" in damage.what
    last = library.jobs.find(damage.job).last_event
    assert library.maintenance.repair((damage,)).exit_code == 0
    assert not list(library.jobs.follow(damage.job, last)), "nothing is worked on"
    assert published(library).read_bytes() == data
    assert library.maintenance.verify().damages == ()
    assert outputs(library.home) == before


def test_missing_published_files_are_counted_by_doctor_and_made_again_by_a_run(
    library: Library, toy_film: Path
) -> None:
    assert next(c for c in library.maintenance.doctor() if c.name == "published").ok
    file = published(library)
    file.unlink()
    check = next(c for c in library.maintenance.doctor() if c.name == "published")
    assert not check.ok
    assert check.detail.startswith("1 published file missing")
    ran = library.run([toy_film], WISH)
    assert (ran.worked, ran.exit_code) == (False, 0)
    assert file.exists()
    assert next(c for c in library.maintenance.doctor() if c.name == "published").ok


def test_a_missing_manifest_is_found_and_mended(library: Library) -> None:
    before = outputs(library.home)
    next((library.home.folder / "files" / "results").rglob("*.json")).unlink()
    damages = library.maintenance.verify().damages
    assert [d.what for d in damages] == ["the manifest is missing"]
    library.maintenance.repair(damages)
    assert library.maintenance.verify().damages == ()
    assert outputs(library.home) == before


def test_a_home_whose_results_are_all_lost_is_mended_in_an_order_in_which_nothing_fails(library: Library) -> None:
    before = outputs(library.home)
    for manifest in (library.home.folder / "files" / "results").rglob("*.json"):
        manifest.unlink()
    damages = library.maintenance.verify().damages
    assert len(damages) == 18
    last = library.jobs.find(damages[0].job).last_event
    assert library.maintenance.repair(damages).exit_code == 0
    told = list(library.jobs.follow(damages[0].job, last))
    assert not [e for e in told if e.type is EventType.FAILED]
    assert next(e.task for e in told if e.type is EventType.DONE) == f"{damages[0].job}.probe"
    assert library.maintenance.verify().damages == ()
    assert outputs(library.home) == before


def test_what_a_repair_that_was_cut_short_took_out_is_told_again(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = outputs(library.home)
    spoil(max(blobs(library), key=lambda p: p.stat().st_size), "flipped")
    damages = library.maintenance.verify().damages
    with monkeypatch.context() as patch:
        patch.setattr(type(library.home.ledger), "revive", _dies)
        with pytest.raises(KeyboardInterrupt):
            library.maintenance.repair(damages)
    assert not library.home.ledger.known("me", [damages[0].key]), "the ledger knows nothing of it any more"
    assert library.maintenance.verify().damages == damages
    assert library.maintenance.repair(damages).exit_code == 0
    assert library.maintenance.verify().damages == ()
    assert outputs(library.home) == before


def _dies(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_gc_clears_what_only_other_stages_read_after_its_time_and_keeps_the_rest(
    library: Library, rules: RetentionRules
) -> None:
    home = library.home
    assert gc(home.ledger, home.blobs, "me", rules).results == 0
    cleared = gc(home.ledger, home.blobs, "me", rules, later())
    assert (cleared.results, cleared.blobs) == (8, 8)
    assert library.maintenance.verify().damages == (), "what was set aside does not exist for verify"
    assert [p.name for p in (home.folder / "files" / "toys").rglob("*.bin")] == ["whole.bin"]


@pytest.fixture
def rules(library: Library, monkeypatch: pytest.MonkeyPatch) -> RetentionRules:
    """Rules under which the pieces of the toy's chunks may go after a day."""
    spec = library.home.specs["toy_chunk"]
    specs = {**library.home.specs, "toy_chunk": replace(spec, intermediate=("piece",))}
    library.home.__dict__["specs"] = specs  # verify asks the home
    return RetentionRules(specs, keep_days=1, clip_days=30, young_seconds=0.0)


def later(days: int = 2) -> datetime:
    return datetime.now(UTC) + timedelta(days=days)


def test_repair_after_gc_makes_what_was_cleared_again_as_far_as_it_is_read(
    library: Library, rules: RetentionRules
) -> None:
    home = library.home
    before = outputs(home)
    gc(home.ledger, home.blobs, "me", rules, later())
    whole = next((home.folder / "files" / "toys").rglob("whole.bin")).read_bytes()
    spoil(blob_of(library, whole), "flipped")
    damages = library.maintenance.verify().damages
    assert [d.output for d in damages] == ["whole"]
    assert library.maintenance.repair(damages).exit_code == 0
    assert library.maintenance.verify().damages == ()
    assert outputs(home) == before


def blob_of(library: Library, data: bytes) -> Path:
    sha256 = hashlib.sha256(data).hexdigest()
    return library.home.folder / "files" / "blobs" / "me" / sha256[:2] / sha256


def test_damage_met_while_a_plan_is_opened_is_made_again_at_once(library: Library, toy_film: Path) -> None:
    """Another recipe of the same film adopts probe's result, whose facts are damaged by now."""
    (job,) = library.jobs.page().rows
    (probe,) = [t for t in library.jobs.tasks(job.id) if t.stage == "probe"]
    key = results_of(probe.spec)["facts"]
    facts = read_manifest(library.home.blobs, "me", key).artifact("facts.json")
    spoil(library.home.folder / "files" / "blobs" / "me" / facts.sha256[:2] / facts.sha256, "flipped")
    ran = library.run([toy_film], JobRequest(only=("toy_join",), chunk="10"))
    assert ran.exit_code == 0
    assert library.maintenance.verify().damages == ()


def test_gc_clears_blobs_that_no_manifest_names_but_not_young_ones(library: Library) -> None:
    orphan = library.home.blobs.put("me", b"left by a killed attempt")
    assert library.maintenance.gc().blobs == 0
    path = library.home.folder / "files" / "blobs" / "me" / orphan.sha256[:2] / orphan.sha256
    os.utime(path, (0, 0))
    assert library.maintenance.gc().blobs == 1
    assert not path.exists()


def test_a_backup_is_restored_and_goes_on(library: Library, tmp_path: Path, toy_film: Path) -> None:
    first = library.maintenance.backup(tmp_path / "backup")
    assert first.copied == first.files
    assert library.maintenance.backup(tmp_path / "backup").copied == 0
    Library.restore(tmp_path / "backup", tmp_path / "other" / "home")
    with Library(tmp_path / "other" / "home") as restored:
        assert outputs(restored.home) == outputs(library.home)
        assert restored.maintenance.verify().damages == ()
        ran = restored.run([toy_film], WISH)
        assert (ran.worked, ran.exit_code) == (False, 0)


def test_a_backup_leaves_out_what_is_damaged_and_says_so(library: Library, tmp_path: Path) -> None:
    victim = max(blobs(library), key=lambda p: p.stat().st_size)
    spoil(victim, "flipped")
    made = library.maintenance.backup(tmp_path / "backup")
    assert [key.rsplit("/", 1)[-1] for key in made.damaged] == [victim.name]
    assert not list((tmp_path / "backup" / "files" / "blobs").rglob(victim.name))
    Library.restore(tmp_path / "backup", tmp_path / "new")
    with Library(tmp_path / "new") as restored:
        damages = restored.maintenance.verify().damages
        assert len(damages) == 1
        assert restored.maintenance.repair(damages).exit_code == 0
        assert restored.maintenance.verify().damages == ()


def test_a_backup_with_a_manifest_that_is_none_is_restored_and_mended(library: Library, tmp_path: Path) -> None:
    before, backed_up = outputs(library.home), tmp_path / "backup"
    library.maintenance.backup(backed_up)
    victim = next((backed_up / "files" / "results").rglob("*.json"))
    victim.chmod(0o644)
    victim.write_bytes(b"no manifest any more")
    Library.restore(backed_up, tmp_path / "new")
    with Library(tmp_path / "new") as restored:
        assert restored.maintenance.repair(restored.maintenance.verify().damages).exit_code == 0
        assert outputs(restored.home) == before


def test_a_home_that_lost_its_ledger_is_restored_with_an_index_that_follows_it(
    library: Library, tmp_path: Path
) -> None:
    home = library.home.folder
    videos = library.videos.page()[0]
    library.maintenance.backup(tmp_path / "backup")
    assert library.run([draw(tmp_path / "later.mp4", 2)], WISH).exit_code == 0
    assert len(library.videos.page()[0]) == 2
    library.close()
    for file in (*home.glob("ledger.sqlite*"), *home.glob("records.sqlite*")):
        file.unlink()
    Library.restore(tmp_path / "backup", home)
    with Library(home) as restored:
        assert restored.videos.page()[0] == videos, "what the ledger does not know is not shown"
        assert restored.run([tmp_path / "later.mp4"], WISH).exit_code == 0
        assert len(restored.videos.page()[0]) == 2


def test_a_backup_and_gc_keep_out_of_each_others_way(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rushes.jobs.maintenance.backup.PATIENCE_SECONDS", 0.0)
    with maintenance_lock(library.home.folder):
        with pytest.raises(Refused):
            library.maintenance.gc()
        with pytest.raises(Refused):
            library.maintenance.backup(tmp_path / "backup")
    library.maintenance.gc()


def test_a_backup_waits_for_no_upload_that_gc_finishes(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(_uploads: Uploads) -> int:
        library.maintenance.backup(tmp_path / "backup")  # meanwhile: a large film takes hours on its way to a bucket
        return 0

    monkeypatch.setattr("rushes.library.work.retention.finish_all", slow)
    library.maintenance.gc()
    assert (tmp_path / "backup" / "backup.json").exists()


def test_half_a_backup_is_no_backup(library: Library, tmp_path: Path) -> None:
    library.maintenance.backup(tmp_path / "backup")
    (tmp_path / "backup" / "backup.json").unlink()
    with pytest.raises(NotFound):
        Library.restore(tmp_path / "backup", tmp_path / "new")
    assert not (tmp_path / "new" / "ledger.sqlite").exists()


def test_a_home_is_never_restored_over(library: Library, tmp_path: Path) -> None:
    library.maintenance.backup(tmp_path / "backup")
    with pytest.raises(Refused):
        Library.restore(tmp_path / "backup", library.home.folder)


def test_the_settings_of_a_home_are_part_of_its_backup(library: Library, tmp_path: Path) -> None:
    (library.home.folder / "rushes.toml").write_text("slots = 3\n")
    library.maintenance.backup(tmp_path / "backup")
    Library.restore(tmp_path / "backup", tmp_path / "new")
    with Library(tmp_path / "new") as restored:
        assert restored.home.settings.slots == 3
