"""Backups that are killed half way, and backups that somebody else has written."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from proof.audit import outputs
from proof.kills import ROOT, TOYS

from rushes import home_folder
from rushes.domain.errors import NotFound, Refused, WrongHome
from rushes.domain.keys import manifest_key
from rushes.library import JobRequest, Library

WISH = JobRequest(only=("toy_join",), chunk="5")


@pytest.fixture(autouse=True, scope="module")
def toys() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(TOYS))
        patch.setenv("PYTHONPATH", os.pathsep.join(map(str, (ROOT, TOYS))))
        yield


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, toy_film: Path) -> Path:
    """A home with one finished film, beside a backup of it."""
    home = tmp_path_factory.mktemp("finished") / "home"
    with Library(home) as library:
        assert library.run([toy_film], WISH).exit_code == 0
        library.maintenance.backup(home.with_name("backup"))
    return home


@pytest.fixture
def home(finished: Path, tmp_path: Path) -> Path:
    shutil.copytree(finished, tmp_path / "home")
    return tmp_path / "home"


@pytest.fixture
def made(finished: Path, tmp_path: Path) -> Path:
    """A backup that a test may change."""
    shutil.copytree(finished.with_name("backup"), tmp_path / "made")
    return tmp_path / "made"


def killed(at: str, folder: Path, *command: str) -> None:
    """Run a command that dies at a named point."""
    env = {**os.environ, "RUSHES_CRASH": at, "RUSHES_CRASH_COUNT": str(folder / "count")}
    ended = subprocess.run([sys.executable, "-m", "rushes", *command], check=False, env=env, capture_output=True)
    assert ended.returncode == -9, (ended.returncode, ended.stderr)
    (folder / "count").unlink()


BACKUP_POINTS = ("blob:before#1", "blob:after#3", "manifest:before#2", "manifest:after#9", "backup:before#1")
RESTORE_POINTS = (*BACKUP_POINTS[:-1], "publish:before#1", "restore:before#1")


@pytest.mark.parametrize("at", [*BACKUP_POINTS, "backup:after#1"])
def test_a_backup_killed_half_way_is_none_and_goes_on(at: str, home: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    killed(at, tmp_path, "--home", str(home), "backup", str(target))
    if at != "backup:after#1":
        with pytest.raises(NotFound, match="not a complete backup"):
            Library.restore(target, tmp_path / "too-early")
        assert not (tmp_path / "too-early").exists()
    with Library(home) as library:
        library.maintenance.backup(target)
        assert len([path for path in target.iterdir() if path.name.startswith("snapshot-")]) == 1
        Library.restore(target, tmp_path / "new")
        with Library(tmp_path / "new") as restored:
            assert outputs(restored.home) == outputs(library.home)
            assert restored.maintenance.verify().damages == ()


def test_a_repeated_backup_killed_half_way_leaves_the_earlier_one(home: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    with Library(home) as library:
        library.maintenance.backup(target)
        before = outputs(library.home)
        library.home.records.put("note", "me", "later", {})
        library.home.blobs.put("me", b"later")
    killed("backup:before#1", tmp_path, "--home", str(home), "backup", str(target))
    Library.restore(target, tmp_path / "new")
    with Library(tmp_path / "new") as restored:
        assert outputs(restored.home) == before
        assert restored.maintenance.verify().damages == ()
        assert restored.home.records.get("note", "me", "later") is None


@pytest.mark.parametrize("at", RESTORE_POINTS)
def test_a_restore_killed_half_way_is_no_home_and_begins_again(
    at: str, finished: Path, tmp_path: Path, toy_film: Path
) -> None:
    new, backup = tmp_path / "new", finished.with_name("backup")
    killed(at, tmp_path, "--home", str(new), "restore", str(backup))
    with pytest.raises(WrongHome, match="was not finished"):
        Library(new)
    Library.restore(backup, new)
    with Library(finished) as library, Library(new) as restored:
        assert outputs(restored.home) == outputs(library.home)
        assert restored.maintenance.verify().damages == ()
        assert not restored.run([toy_film], WISH).worked
    with pytest.raises(Refused, match="already a home"):
        Library.restore(backup, new)


def _seal(backup: Path, **files: str) -> None:
    doc = json.loads((backup / "backup.json").read_text())
    doc["files"] |= files
    (backup / "backup.json").write_text(json.dumps(doc))


@pytest.mark.parametrize("name", ["../.bashrc", "../../.bashrc", "/tmp/x", "files/blobs/x", "logs", "..", "a.sqlite"])
def test_a_backup_names_nothing_but_the_files_of_a_home(name: str, made: Path, tmp_path: Path) -> None:
    victim = tmp_path / ".bashrc"
    victim.write_text("mine")
    snapshot = made / json.loads((made / "backup.json").read_text())["snapshot"]
    (made / ".bashrc").write_text("theirs")
    (snapshot / "a.sqlite").write_text("theirs")
    _seal(made, **{name: hashlib.sha256(b"theirs").hexdigest()})
    with pytest.raises(Refused):
        Library.restore(made, tmp_path / "new")
    assert victim.read_text() == "mine"
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("snapshot", ["../made", ".", "/tmp", "snapshot-../../etc", "linked"])
def test_a_snapshot_lies_in_its_backup(snapshot: str, made: Path, tmp_path: Path) -> None:
    doc = json.loads((made / "backup.json").read_text())
    if snapshot == "linked":
        (made / doc["snapshot"]).rename(tmp_path / "elsewhere")
        (made / doc["snapshot"]).symlink_to(tmp_path / "elsewhere")
    else:
        (made / "backup.json").write_text(json.dumps({**doc, "snapshot": snapshot}))
    with pytest.raises(Refused):
        Library.restore(made, tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("how", ["changed", "linked", "missing", "a pipe"])
@pytest.mark.parametrize("name", ["ledger.sqlite", "records.sqlite"])
def test_nothing_is_replaced_before_everything_is_checked(how: str, name: str, made: Path, tmp_path: Path) -> None:
    new = tmp_path / "new"
    new.mkdir(0o700)
    (new / "rushes.toml").write_text("slots = 3\n")
    file = made / json.loads((made / "backup.json").read_text())["snapshot"] / name
    if how == "changed":
        file.write_bytes(file.read_bytes() + b"x")
    else:
        file.rename(tmp_path / name)
    if how == "linked":
        file.symlink_to(tmp_path / name)
    if how == "a pipe":
        os.mkfifo(file)
    with pytest.raises(Refused, match="damaged"):
        Library.restore(made, new)
    assert {path.name for path in new.iterdir()} == {"rushes.toml"}
    assert (new / "rushes.toml").read_text() == "slots = 3\n"


def test_strange_names_among_the_results_are_passed_over(made: Path, tmp_path: Path) -> None:
    for name in ("blobs/x", "blobs/me/aa/short", "blobs/../me/x", "results/me/aa/other.json", "results/x"):
        file = made / "files" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"{}")
    swapped = sorted((made / "files" / "results").rglob("*-*.json"))
    swapped[0].unlink()
    shutil.copy(swapped[1], swapped[0])
    Library.restore(made, tmp_path / "new")
    with Library(tmp_path / "new") as restored:
        assert [damage.what for damage in restored.maintenance.verify().damages] == ["the manifest is missing"]
    assert not list((tmp_path / "new" / "files" / "results").rglob("other.json"))


def test_the_settings_of_a_foreign_backup_reach_nobody(made: Path, tmp_path: Path) -> None:
    doc = json.loads((made / "backup.json").read_text())
    settings = b'webhook = "http://127.0.0.1:9/theirs"\n'
    (made / doc["snapshot"] / "rushes.toml").write_bytes(settings)
    _seal(made, **{"rushes.toml": hashlib.sha256(settings).hexdigest()})
    with pytest.raises(WrongHome, match="not trusted"):
        Library.restore(made, tmp_path / "new")
    assert not (tmp_path / "new").exists()
    home_folder.trust(made)
    Library.restore(made, tmp_path / "new")
    with Library(tmp_path / "new") as restored:
        assert restored.settings.webhook == "http://127.0.0.1:9/theirs"


def test_a_backup_that_others_can_change_is_refused(made: Path, tmp_path: Path) -> None:
    made.chmod(0o777)
    with pytest.raises(WrongHome, match="can be changed by other users"):
        Library.restore(made, tmp_path / "new")


def test_the_manifest_of_another_result_is_damage(home: Path) -> None:
    with Library(home) as library:
        before = outputs(library.home)
        first, second = sorted((home / "files" / "results").rglob("*.json"))[:2]
        first.unlink()
        shutil.copy(second, first)
        (damage,) = library.maintenance.verify().damages
        assert manifest_key("me", damage.key).endswith(first.name)
        assert library.maintenance.repair((damage,)).exit_code == 0
        assert library.maintenance.verify().damages == ()
        assert outputs(library.home) == before
