"""Root's PostgreSQL comes as a copy that its user can run and only root can change."""

import os
import pwd
from pathlib import Path

import pytest

from rushes.domain.errors import Refused
from rushes.servers import postgres
from rushes.servers.postgres import COPIES, VERSIONS, programs

NOBODY = pwd.getpwnam("nobody").pw_uid
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root's PostgreSQL runs as another user")


def test_anybody_else_runs_the_wheel_itself() -> None:
    for version in VERSIONS:
        assert (programs(version, None) / "postgres").is_file()
        assert COPIES not in programs(version, None).parents


@as_root
def test_only_root_can_change_the_copy() -> None:
    site = programs(18, NOBODY).parents[2]
    for path in (COPIES, site, *site.rglob("*")):
        assert (path.stat().st_uid, path.stat().st_mode & 0o022) == (0, 0), path
    assert site.parent == COPIES


@as_root
def test_the_copy_is_made_once() -> None:
    first = (programs(18, NOBODY) / "postgres").stat()
    assert (programs(18, NOBODY) / "postgres").stat().st_ino == first.st_ino


@as_root
def test_a_copy_that_its_user_cannot_run_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o700)
    monkeypatch.setattr(postgres, "COPIES", tmp_path / "copies")
    with pytest.raises(Refused, match="cannot be copied"):
        programs(18, NOBODY)
    assert not list((tmp_path / "copies").iterdir())


@as_root
def test_a_copy_that_somebody_else_may_have_made_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copies = tmp_path / "copies"
    (copies / programs(18, NOBODY).parents[2].name).mkdir(parents=True)
    os.chown(copies, NOBODY, -1)
    monkeypatch.setattr(postgres, "COPIES", copies)
    with pytest.raises(Refused, match="belongs to another user"):
        programs(18, NOBODY)
