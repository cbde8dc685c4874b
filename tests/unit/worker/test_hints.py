"""Workers on hints that wait in a real Valkey: losing all of them, or the server, loses no work."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import redis

from rushes.domain.event import EventType
from rushes.domain.task import TaskState
from rushes.jobs.control import announce_missing
from rushes.ledger.memory import MemoryLedger
from rushes.servers import valkey
from rushes.servers.process import Running
from rushes.transport.redis import RedisHints
from rushes.worker import lane_group
from rushes.worker.core import Limits
from tests.unit.worker_kit import DEADLINE, Bench, wait_for

TASKS = 500
LIMITS = Limits(slots=2, task_seconds=0.0, drain_seconds=60.0)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    running = valkey.start(tmp_path / "valkey")
    yield running
    running.stop()


@pytest.fixture
def bench(tmp_path: Path, server: Running) -> Iterator[Bench]:
    hints = RedisHints(server.url)
    yield Bench(tmp_path, transport=hints)
    hints.close()


def done(bench: Bench) -> int:
    return sum(t.state is TaskState.DONE for t in bench.ledger.tasks(limit=10 * TASKS, state=TaskState.DONE).rows)


def each_once(bench: Bench, tasks: list[str]) -> None:
    ends = Counter(e.task for t in tasks for e in bench.ledger.events(t.partition(".")[0]) if e.type is EventType.DONE)
    assert ends == Counter(tasks)


def test_two_workers_take_what_is_hinted_and_nothing_twice(bench: Bench, server: Running) -> None:
    tasks = [bench.submit(f"n{n}") for n in range(20)]
    with bench.working(LIMITS), bench.working(LIMITS), redis.Redis.from_url(server.url) as look:
        wait_for(lambda: done(bench) == len(tasks), "something was never done")
        wait_for(lambda: look.llen("rushes:hints:cpu") == 0, "a hint is left behind")
    each_once(bench, tasks)


def test_after_flushall_everything_is_back_to_work(bench: Bench, server: Running) -> None:
    tasks = [bench.submit(f"n{n}") for n in range(TASKS)]
    with ExitStack() as stack, redis.Redis.from_url(server.url) as admin:
        stack.enter_context(bench.working(LIMITS))
        stack.enter_context(bench.working(LIMITS))
        wait_for(lambda: done(bench) >= TASKS // 4, "nothing is done")
        admin.flushall()
        wait_for(lambda: done(bench) == TASKS, "hints were lost, and work with them")
    each_once(bench, tasks)


def test_work_that_nobody_was_told_of_is_found_by_a_sweep(bench: Bench, server: Running) -> None:
    with bench.working(LIMITS) as shell, redis.Redis.from_url(server.url) as admin:
        wait_for(lambda: shell.state.idle and all(i.listening for i in shell.state.lane_groups), "it never waits")
        bench.transport = Deaf()  # type: ignore[assignment]
        task = bench.submit("silent")
        wait_for(lambda: bench.task(task).state is TaskState.DONE, "it was never found")
        assert admin.ping()


def test_without_the_server_work_goes_on(bench: Bench, server: Running) -> None:
    tasks = [bench.submit(f"n{n}") for n in range(TASKS // 8)]
    with bench.working(LIMITS):
        wait_for(lambda: done(bench) >= 5, "nothing is done")
        server.stop()
        wait_for(lambda: done(bench) == len(tasks), "a server of hints stopped the work")
    each_once(bench, tasks)


def test_who_may_leave_when_nothing_is_left_waits_for_no_hint(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lane_group, "LISTEN_SECONDS", 1e6)
    gate = bench.folder / "gate"
    gate.touch()
    bench.submit("last", gate=str(gate))
    shell = bench.worker(lambda shell: shell.idle, LIMITS)
    thread = threading.Thread(target=shell.run, daemon=True)
    thread.start()
    wait_for(
        lambda: bool(shell.state.held) and all(g.empty for g in shell.state.lane_groups), "its free slot never waits"
    )
    gate.unlink()
    thread.join(DEADLINE)
    assert not thread.is_alive(), "it waits for a hint that nobody will send"


def test_reconciling_announces_what_has_no_hint_and_nothing_else(server: Running) -> None:
    hints = RedisHints(server.url, "apart")
    hints.announce("cpu", ["job_a.toy.00001"])
    ready = ["job_a.toy.00001", "job_a.toy.00002", "job_a.strange.00001"]
    told = announce_missing(MemoryLedger(), hints, lambda task: "cpu" if "toy" in task else None, ready)
    assert told == ("job_a.toy.00002",)
    assert sorted(hints.wait(["cpu"], 0, 10)) == ["job_a.toy.00001", "job_a.toy.00002"]
    hints.close()


class Deaf:
    """Announces nothing."""

    def announce(self, lane: str, tasks: list[str]) -> None:
        """The hint is lost."""


def test_what_is_urgent_goes_first_though_it_was_announced_last(bench: Bench) -> None:
    gate = bench.folder / "gate"
    gate.touch()
    with bench.working(Limits(slots=1, task_seconds=0.0, drain_seconds=60.0)):
        first = bench.submit("first", gate=str(gate))
        wait_for(lambda: bench.task(first).state is TaskState.LEASED, "it never began")
        later = [bench.submit(f"n{n}") for n in range(10)]
        urgent = bench.submit("urgent", priority=9)
        gate.unlink()
        wait_for(lambda: done(bench) == 12, "something was never done")
    ends = {task: bench.ledger.events(task.partition(".")[0])[-1].at for task in (*later, urgent)}
    assert ends[urgent] <= min(ends.values())
