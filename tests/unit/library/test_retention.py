"""Retention by workers: one at a time clears up, its place is taken when it dies, and a round comes once a day."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from rushes.home import Home
from rushes.jobs.maintenance.backup import maintenance_lock
from rushes.library import Library
from rushes.library.work.retention import EVERY_SECONDS, LEASE_SECONDS, REST_SECONDS, ROUND, Retention
from rushes.wiring import open_home


class Clock:
    """Seconds that a test moves."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    home = open_home(tmp_path / ".rushes", create=True)
    yield home
    home.close()


def leftover(home: Home, text: bytes = b"left by a killed attempt") -> str:
    """A file that no manifest names, from the day before yesterday."""
    blob = home.blobs.put(home.owner, text)
    path = home.blobs.local(home.owner, blob.sha256)
    os.utime(path, (0, 0))
    return blob.sha256


def steps(one: Retention) -> int:
    """Work until it is over or not ours; how many steps that took."""
    count = 0
    while one.step() < REST_SECONDS:
        count += 1
    return count


def test_a_worker_clears_up_by_itself_step_by_step_and_once_a_day(home: Home) -> None:
    sha256, one = leftover(home), Retention(home, "one")
    assert steps(one) > 500
    assert home.blobs.stat(home.owner, sha256) is None
    later = leftover(home)
    assert steps(one) == 0, "not again on the same day"
    assert steps(Retention(home, "two", wall=lambda: time.time() + EVERY_SECONDS + 1)) > 500
    assert home.blobs.stat(home.owner, later) is None
    assert not (home.folder / f"{ROUND}.sqlite").exists()


def test_only_one_worker_clears_up_at_a_time(home: Home) -> None:
    one, two = Retention(home, "one"), Retention(home, "two")
    assert one.step() < REST_SECONDS
    assert two.step() == REST_SECONDS
    assert one.step() < REST_SECONDS


def test_the_round_of_a_dead_worker_is_gone_on_with_where_it_was(home: Home) -> None:
    clock, sha256 = Clock(), leftover(home)
    one, two = Retention(home, "one", clock), Retention(home, "two", clock)
    done = [one.step() for _ in range(400)]
    one.close()
    assert max(done) < REST_SECONDS
    assert two.step() == REST_SECONDS
    clock.now += LEASE_SECONDS + 1
    assert steps(two) < 300, "what the dead one has seen is kept"
    assert home.blobs.stat(home.owner, sha256) is None


def test_who_is_slow_but_alive_keeps_its_round(home: Home) -> None:
    clock = Clock()
    one, two = Retention(home, "one", clock), Retention(home, "two", clock)
    for _ in range(10):
        assert one.step() < REST_SECONDS
        assert two.step() == REST_SECONDS
        clock.now += LEASE_SECONDS / 5


def test_who_was_frozen_leaves_the_round_to_the_one_that_took_it(home: Home) -> None:
    clock = Clock()
    one, two = Retention(home, "one", clock), Retention(home, "two", clock)
    one.step()
    two.step()
    clock.now += LEASE_SECONDS + 1
    assert two.step() < REST_SECONDS
    assert one.step() == REST_SECONDS


def test_nothing_is_cleared_while_a_backup_is_made(home: Home) -> None:
    sha256, one = leftover(home), Retention(home, "one")
    with maintenance_lock(home.folder):
        assert one.step() == REST_SECONDS
    assert home.blobs.stat(home.owner, sha256)
    steps(one)
    assert home.blobs.stat(home.owner, sha256) is None


BY_HAND: dict[str, Callable[[Library, Path], object]] = {
    "gc": lambda library, _to: library.maintenance.gc(),
    "backup": lambda library, to: library.maintenance.backup(to),
}


@pytest.mark.parametrize("command", BY_HAND)
def test_a_command_by_hand_waits_for_the_step_of_a_worker(command: str, tmp_path: Path) -> None:
    with Library(tmp_path / ".rushes") as library, ExitStack() as step:
        step.enter_context(maintenance_lock(library.home.folder))
        threading.Timer(0.1, step.close).start()
        BY_HAND[command](library, tmp_path / "backup")
