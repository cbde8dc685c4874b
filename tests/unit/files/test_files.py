"""A file that is copied somewhere is there whole, or not at all."""

import errno
import os
import shutil
from pathlib import Path
from typing import BinaryIO

import pytest

from rushes.domain.errors import NoRoom
from rushes.jobs.own_outputs import copy_file


def test_a_file_is_copied_whole(tmp_path: Path) -> None:
    (tmp_path / "blob").write_bytes(b"film")
    (tmp_path / ".x.mp4.part").write_bytes(b"half of one by somebody who was killed")
    copy_file(tmp_path / "blob", tmp_path / "x.mp4")
    assert (tmp_path / "x.mp4").read_bytes() == b"film"
    assert {f.name for f in tmp_path.iterdir()} == {"blob", "x.mp4"}


@pytest.mark.parametrize(("number", "raised"), [(errno.ENOSPC, NoRoom), (errno.EIO, OSError)])
def test_a_copy_that_fails_leaves_nothing(
    number: int, raised: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(_given: BinaryIO, out: BinaryIO) -> None:
        out.write(b"half")
        raise OSError(number, os.strerror(number))

    (tmp_path / "blob").write_bytes(b"film")
    monkeypatch.setattr(shutil, "copyfileobj", half)  # a full disk is hard to come by
    with pytest.raises(raised, match=os.strerror(number) if raised is OSError else "no room"):
        copy_file(tmp_path / "blob", tmp_path / "x.mp4")
    assert [f.name for f in tmp_path.iterdir()] == ["blob"]
