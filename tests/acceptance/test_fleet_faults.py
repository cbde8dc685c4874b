"""Whole workers of a fleet while a server dies or forgets, or a clock is wrong: nothing is lost or done twice."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest
import redis
from proof.audit import Audit, audit
from proof.kills import TOYS, environment
from proof.setups import Servers, servers

from rushes.domain.event import EventType
from rushes.domain.job import JobState
from rushes.domain.task import TaskState
from rushes.home import Home
from rushes.ledger.pages import all_jobs
from rushes.library import JobRequest, Library
from rushes.wiring import open_home
from tests.acceptance.conftest import DEADLINE, draw, wait_for
from tests.acceptance.test_postgres_faults import Server

HOUR = 3600
LEASE_SECONDS = 30.0
WRONG_CLOCK = """
import os, time

_off, _time, _time_ns = int(os.environ["WRONG_BY"]), time.time, time.time_ns
time.time = lambda: _time() + _off
time.time_ns = lambda: _time_ns() + _off * 10**9
"""
SWEEP = "import sys, pathlib; from rushes.wiring import open_home; open_home(pathlib.Path(sys.argv[1])).ledger.sweep()"


@dataclass(slots=True)
class Fleet:
    """A home, its workers, and what a witness outside the ledger saw."""

    folder: Path
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def make(self, settings: str) -> None:
        self.home.mkdir()
        (self.home / "rushes.toml").write_text(settings)

    def add(self, films: Sequence[Path]) -> None:
        with Library(self.home) as library:
            assert all(added.created for added in library.add(films, JobRequest(only=("toy_join",), chunk="5")))

    def start(self, **env: str) -> None:
        argv = [sys.executable, "-m", "rushes", "--home", str(self.home), "worker", "--slots", "2"]
        told, null = environment(self.folder, **env), subprocess.DEVNULL
        self.workers.append(subprocess.Popen(argv, env=told, stdout=null, stderr=null))

    def seen(self, what: str) -> int:
        """How often the witness saw that."""
        witness = self.folder / "witness"
        return sum(line.startswith(what) for line in witness.read_text().splitlines()) if witness.exists() else 0

    def has_seen(self, ends: int) -> bool:
        return self.seen("end") >= ends

    def twice(self) -> list[tuple[str, ...]]:
        """Tasks that the witness saw begin more than once."""
        lines = [line.split() for line in (self.folder / "witness").read_text().splitlines()]
        begun = Counter(tuple(words[1:4]) for words in lines if words[0] == "begin")
        return [task for task, n in begun.items() if n > 1]

    def finish(self) -> Audit:
        """Everything gets done, by the workers that began it; they leave when they are told to."""
        with opened(self.home) as home:
            jobs = [job.id for job in all_jobs(home.ledger, "me")]
            wait_for(lambda: {home.ledger.job(j).state for j in jobs} == {JobState.COMPLETED}, "not all is done")
        assert [worker.poll() for worker in self.workers] == [None] * len(self.workers)
        self.end(signal.SIGTERM)
        assert {worker.returncode for worker in self.workers} == {128 + signal.SIGTERM}
        return audit(self.home, self.folder / "witness")

    def end(self, number: signal.Signals) -> None:
        for worker in self.workers:
            worker.send_signal(number)
        for worker in self.workers:
            worker.wait(DEADLINE)


@contextlib.contextmanager
def opened(folder: Path) -> Iterator[Home]:
    home = open_home(folder, create=False)
    try:
        yield home
    finally:
        home.close()


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fleet]:
    monkeypatch.syspath_prepend(str(TOYS))
    fleet = Fleet(tmp_path)
    yield fleet
    fleet.end(signal.SIGKILL)


@pytest.fixture(scope="module")
def shared_servers() -> Iterator[Servers]:
    with tempfile.TemporaryDirectory() as folder, servers(Path(folder)) as found:
        yield found


@pytest.fixture
def server() -> Iterator[Server]:
    with tempfile.TemporaryDirectory(prefix="postgres-") as folder:  # another user must be let in
        server = Server(Path(folder))
        yield server
        server.running.stop()


def test_a_database_that_is_killed_and_comes_back_finds_every_finished_result_kept(
    fleet: Fleet, server: Server, tmp_path: Path
) -> None:
    fleet.make(f'store = "{server.running.url}"\nshared = true\n')
    fleet.add([draw(tmp_path / f"{n}.mp4", 40 - n, rate=2) for n in range(2)])
    for _ in range(2):
        fleet.start(TOY_SECONDS="0.3")
    longest = 0.0
    for some in (2, 8):
        wait_for(partial(fleet.has_seen, some), "nobody worked")
        began = time.monotonic()
        server.die()
        wait_for(lambda: fleet.seen("end") == fleet.seen("begin"), "what was begun did not end")
        server.come_back()
        longest = max(longest, time.monotonic() - began)
    found = fleet.finish()
    assert found.bad == ()
    assert fleet.twice() == [] or longest > LEASE_SECONDS / 3  # then leases may be over, and others go on


def test_hints_that_are_all_forgotten_in_the_middle_of_many_tasks(
    fleet: Fleet, shared_servers: Servers, tmp_path: Path
) -> None:
    """Of 500 tasks tests/unit/worker/test_hints.py tells; here are whole workers."""
    valkey = shared_servers.valkey.url
    fleet.make(shared_servers.settings("postgres", "forgotten") + f'hints = "{valkey}"\n')
    fleet.add([draw(tmp_path / f"{n}.mp4", 245 - n, rate=1) for n in range(2)])
    with contextlib.closing(redis.Redis.from_url(valkey)) as store:
        for _ in range(2):
            fleet.start()
        hints = 0
        for some in (10, 50):
            wait_for(partial(fleet.has_seen, some), "nobody worked")
            hints += store.dbsize()
            store.flushall()
        found = fleet.finish()
    assert hints
    assert found.bad == ()
    assert fleet.twice() == []
    assert found.tasks == 2 * (1 + 49 + 1)


@pytest.mark.parametrize("wrong", [HOUR, -HOUR])
@pytest.mark.parametrize("setup", ["postgres", "aws"])
def test_a_worker_whose_clock_is_an_hour_wrong_keeps_its_lease_and_takes_nobodys(
    setup: str, wrong: int, fleet: Fleet, shared_servers: Servers
) -> None:
    fleet.make(shared_servers.settings(setup, f"clock-{setup}-{wrong}"))
    clock = fleet.folder / "clock"
    clock.mkdir()
    (clock / "sitecustomize.py").write_text(WRONG_CLOCK)
    gate = fleet.folder / "gate.toy_chunk.1"
    gate.touch()
    fleet.add([draw(fleet.folder / "film.mp4", 20, rate=2)])
    path = os.pathsep.join([str(clock), environment(fleet.folder)["PYTHONPATH"]])
    off = {"PYTHONPATH": path, "TOY_GATE": str(fleet.folder / "gate")}
    fleet.start(**off, WRONG_BY=str(wrong))
    with opened(fleet.home) as home:
        (job,) = all_jobs(home.ledger, "me")
        wait_for(partial(fleet.has_seen, 3), "nobody worked")
        wait_for(lambda: fleet.seen("begin toy_chunk 1") == 1, "the task never began")
        home.ledger.sweep()
        other = environment(fleet.folder, PYTHONPATH=path, WRONG_BY=str(-wrong))
        subprocess.run([sys.executable, "-c", SWEEP, str(fleet.home)], env=other, check=True)
        (held,) = home.ledger.tasks(job.id, TaskState.LEASED).rows
        assert (held.stage, held.chunk) == ("toy_chunk", 1)
        gate.unlink()
        found = fleet.finish()
        assert (found.bad, fleet.twice()) == ((), [])
        events = home.ledger.events(job.id)
        assert EventType.LOST not in {e.type for e in events}
        assert all(abs((datetime.fromisoformat(e.at) - datetime.now(UTC)).total_seconds()) < HOUR / 2 for e in events)
