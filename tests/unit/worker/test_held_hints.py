"""Hints that wait in a queue are kept until their task is settled, and announced again when others need them."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from rushes.domain.task import TaskState
from rushes.telemetry import BugLog
from rushes.transport.poll import Poll
from rushes.worker import commands as c
from rushes.worker import inputs
from rushes.worker.core import Limits
from rushes.worker.hints import Hints
from tests.unit.worker_kit import Bench, lane_of, wait_for

ONE = Limits(slots=1, task_seconds=0.0, drain_seconds=60.0)


class Queue(Poll):
    """A queue that writes down what it is told, each with the state of its task at that moment."""

    queues = True
    look_seconds = 5.0

    def __init__(self) -> None:
        super().__init__()
        self.told: list[tuple[str, str, str]] = []
        self.state_of: Callable[[str], str] = lambda _task: ""

    def announce(self, lane: str, tasks: Sequence[str], attempt: int = 1) -> None:
        self._note("announce", tasks)
        super().announce(lane, tasks, attempt)

    def settle(self, tasks: Sequence[str]) -> None:
        self._note("settle", tasks)

    def keep(self, tasks: Sequence[str]) -> None:
        self._note("keep", tasks)

    def _note(self, verb: str, tasks: Sequence[str]) -> None:
        self.told += [(verb, task, self.state_of(task)) for task in tasks]

    def of(self, task: str, after: int = 0) -> list[tuple[str, str]]:
        return [(verb, state) for verb, id, state in self.told[after:] if id == task]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    queue = Queue()
    made = Bench(tmp_path, transport=queue)
    queue.state_of = lambda task: made.task(task).state.value
    return made


def queue_of(bench: Bench) -> Queue:
    assert isinstance(bench.transport, Queue)
    return bench.transport


def test_a_hint_is_settled_when_its_task_is_done_and_not_before(bench: Bench) -> None:
    gate = bench.folder / "gate"
    gate.touch()
    with bench.working(ONE) as shell:
        wait_for(lambda: shell.state.idle, "it never waits")
        task = bench.submit("a", gate=str(gate))
        wait_for(lambda: task in shell.state.held, "it never began")
        shell._inputs.put(inputs.StoreUnavailable(doubt=True))  # so that it renews now
        wait_for(lambda: ("keep", "leased") in queue_of(bench).of(task), "the hint was not kept")
        assert "settle" not in dict(queue_of(bench).of(task))
        gate.unlink()
        wait_for(lambda: ("settle", "done") in queue_of(bench).of(task), "the hint was never settled")
    assert [verb for verb, _ in queue_of(bench).of(task) if verb != "keep"] == ["announce", "settle"]


def test_a_hint_of_a_task_that_failed_is_settled_after_the_failure_is_written(bench: Bench) -> None:
    with bench.working(ONE) as shell:
        wait_for(lambda: shell.state.idle, "it never waits")
        task = bench.submit("bad", broke="no")
        wait_for(lambda: "settle" in dict(queue_of(bench).of(task)), "the hint was never settled")
    assert bench.task(task).failures == 1
    assert ("settle", "leased") not in queue_of(bench).of(task)


def test_a_hint_that_has_nothing_behind_it_is_settled_at_once(bench: Bench) -> None:
    with bench.working(ONE) as shell:
        wait_for(lambda: shell.state.idle, "it never waits")
        task = bench.submit("a")
        wait_for(lambda: bench.task(task).state is TaskState.DONE, "it was never done")
        before = len(queue_of(bench).told)
        bench.transport.announce("cpu", [task])
        wait_for(lambda: ("settle", "done") in queue_of(bench).of(task, before), "a stale hint stays for ever")


def test_what_is_given_back_is_announced_again(bench: Bench) -> None:
    gate = bench.folder / "gate"
    gate.touch()
    with bench.working(Limits(slots=1, task_seconds=0.0, drain_seconds=0.0)) as shell:
        wait_for(lambda: shell.state.idle, "it never waits")
        task = bench.submit("a", gate=str(gate))
        wait_for(lambda: task in shell.state.held, "it never began")
        before = len(queue_of(bench).told)
        shell.request_stop("a test")
        wait_for(lambda: ("announce", "ready") in queue_of(bench).of(task, before), "nobody else is told")
    assert ("settle", "ready") in queue_of(bench).of(task, before)
    assert bench.transport.wait(["cpu"], 0) == (task,)


def test_hints_that_no_slot_is_free_for_are_announced_before_they_are_settled(bench: Bench) -> None:
    gate = bench.folder / "gate"
    gate.touch()
    with bench.working(ONE) as shell:
        first = bench.submit("first", gate=str(gate))
        wait_for(lambda: first in shell.state.held, "it never began")
        others = [bench.submit(f"n{n}") for n in range(3)]
        before = len(queue_of(bench).told)
        shell._do(c.PassOn(tuple(others)))
        wait_for(lambda: all(len(queue_of(bench).of(task, before)) == 2 for task in others), "they were lost")
        for task in others:
            assert queue_of(bench).of(task, before) == [("announce", "ready"), ("settle", "ready")]
        gate.unlink()
        wait_for(lambda: all(bench.task(t).state is TaskState.DONE for t in (first, *others)), "work was lost")


def test_a_worker_that_leaves_gives_the_hints_that_it_took_to_others(tmp_path: Path) -> None:
    transport, told = Queue(), list[inputs.Input]()
    hints = Hints(transport, lane_of, told.append, BugLog(), takes=True)
    taken, left = threading.Event(), threading.Event()
    wait = transport.wait

    def slow(lanes: Sequence[str], seconds: float, n: int = 10) -> tuple[str, ...]:
        found = wait(lanes, 0, n)
        taken.set()
        assert left.wait(60)
        return found

    transport.announce("cpu", ["job_a.toy"])
    transport.wait = slow  # type: ignore[method-assign]
    hints.listen(c.Listen(("cpu",), 10, 20.0))
    assert taken.wait(60)
    hints.leave()
    left.set()
    hints.close(60)
    assert told == []
    assert wait(["cpu"], 0) == ("job_a.toy",)
