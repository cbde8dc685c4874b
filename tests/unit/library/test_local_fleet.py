"""A part of the fleet that ends is started again, not in a hurry."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from rushes.library import local_fleet
from rushes.library.local_fleet import PAUSES, STEADY_SECONDS, Ended, Fleet, Part
from rushes.servers.process import Running


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    made = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(local_fleet, "time", SimpleNamespace(monotonic=lambda: made.now))
    return made


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: SimpleNamespace) -> Fleet:
    """With no server, and one worker that has ended as soon as it is started."""

    def failed(_fleet: Fleet, name: str) -> Part:
        process = subprocess.Popen([sys.executable, "-IS", "-c", "raise SystemExit(7)"])
        process.wait()
        return Part(name, "", Running("", process), tmp_path / "log")

    monkeypatch.setattr(Fleet, "_worker", failed)
    monkeypatch.setattr(Fleet, "_servers", {})
    made = Fleet(tmp_path, workers=1, slots=1)
    made._begin("worker 1")
    assert clock.now
    return made


def ended(fleet: Fleet) -> Ended:
    (change,) = fleet.mend()
    assert isinstance(change, Ended)
    return change


def test_the_pause_before_a_part_is_started_again_grows_to_a_bound(fleet: Fleet, clock: SimpleNamespace) -> None:
    for pause in (*PAUSES, PAUSES[-1], PAUSES[-1]):
        assert (ended(fleet).why, fleet._restarts["worker 1"].due) == ("ended with exit code 7", clock.now + pause)
        assert not list(fleet.mend()), "not before its time"
        clock.now += pause
        (part,) = fleet.mend()
        assert isinstance(part, Part)


def test_a_part_that_ran_for_long_is_started_again_soon(fleet: Fleet, clock: SimpleNamespace) -> None:
    ended(fleet)
    clock.now += PAUSES[0]
    assert list(fleet.mend())
    clock.now += STEADY_SECONDS + 1
    assert ended(fleet).pause == PAUSES[0]
