"""What a slot tells its worker: marks around each task, progress in measure, and which layers confine it."""

import ctypes
import errno
import json
from pathlib import Path
from typing import Any, cast

import pytest

from rushes.domain.errors import SandboxMissing
from rushes.worker import sandbox, slot
from rushes.worker.sandbox import ON, REQUIRE, REQUIRED, Confinement, kernel, privileges, report


def test_a_mark_is_a_line_of_its_own_after_all_that_was_printed(capfd: pytest.CaptureFixture[str]) -> None:
    print("half a line", end="")
    slot._mark(b"mark")
    said = capfd.readouterr()
    assert said.out == "half a line"
    assert said.err == "\nmark\n"


def test_progress_is_told_at_most_five_times_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([0.0, 0.1, 0.25, 0.4, 0.5])
    monkeypatch.setattr("rushes.worker.slot.time.monotonic", lambda: next(times))
    sent: list[bytes] = []
    line = cast(Any, type("Line", (), {"send_bytes": staticmethod(sent.append)}))
    send = slot._progress_sender(line)
    for fraction in (0.1, 0.2, 0.3, 0.4, 0.5):
        send(fraction)
    assert [json.loads(one)["fraction"] for one in sent] == [0.1, 0.3, 0.5]


def test_a_call_that_the_kernel_refuses_is_an_error() -> None:
    assert kernel._checked(1) == 1
    ctypes.set_errno(errno.EPERM)
    with pytest.raises(PermissionError):
        kernel._checked(-1)


def test_missing_layers_are_named_with_their_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    layers = {**dict.fromkeys(REQUIRED, ON), REQUIRED[0]: "off: too old"}
    monkeypatch.setattr(report, "layers_here", lambda: layers)
    assert report.missing_layers() == (f"{REQUIRED[0]} (too old)",)


@pytest.mark.parametrize("missing", [(), REQUIRED[:1]])
def test_a_slot_that_requires_every_layer_is_refused_without_one(
    missing: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    layers = {**dict.fromkeys(REQUIRED, ON), **dict.fromkeys(missing, "off: too old")}
    monkeypatch.setattr(sandbox, "_confined", lambda *_: layers)
    if missing:
        with pytest.raises(SandboxMissing, match=missing[0]):
            sandbox.confine(Confinement(REQUIRE), tmp_path)
    else:
        assert sandbox.confine(Confinement(REQUIRE), tmp_path) == {"environment": ON, **layers}


@pytest.mark.parametrize("can_live", [True, False])
def test_a_slot_of_root_becomes_nobody_who_owns_its_folder(can_live: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[tuple[object, ...]] = []
    monkeypatch.setattr(privileges, "can_live_as", lambda *_: can_live)
    monkeypatch.setattr("rushes.worker.sandbox.os.chown", lambda *args: done.append(args))
    monkeypatch.setattr(privileges, "become", lambda user: done.append((user,)))
    if can_live:
        sandbox._leave_root(["/"])
        assert done == [(".", privileges.NOBODY, privileges.NOBODY), (privileges.NOBODY,)]
    else:
        with pytest.raises(ValueError, match="another user"):
            sandbox._leave_root(["/"])
        assert done == []
