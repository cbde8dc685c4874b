"""Bookkeeping of a worker: no outcome is lost while the store is away, and answers to an older lease change nothing."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rushes.domain.errors import DamagedBlob, LeaseLost, NeverWorks, NoRoom, StoreAway
from rushes.domain.event import EventType
from rushes.domain.result import Result
from rushes.domain.task import Failure, Finish, Lease, TaskState, Verdict
from rushes.ledger.memory import MemoryLedger
from rushes.ledger.port import Completed
from rushes.telemetry import BugLog
from rushes.worker import commands as c
from rushes.worker import core, inputs
from rushes.worker.core import Limits
from rushes.worker.hints import Hints
from rushes.worker.outbox import Outbox
from tests.unit.worker_kit import Bench, lane_of, wait_for

OLD = Lease("job_a.toy", 1, "job_a", "toy", None, "cpu", "{}", 0, 0)
NEW = OLD._replace(fence=2)
WHY = Failure("SlotDied", "ended by signal 11", "hint", "may work next time")
ENTRIES: list[Callable[[Lease], c.OutboxEntry]] = [
    lambda lease: c.Complete(lease, Finish(lease.task, lease.fence)),
    lambda lease: c.Fail(lease, WHY, 60.0),
    lambda lease: c.GiveBack(lease, "drained"),
]


def holding(lease: Lease) -> core.State:
    state, _ = core.step(core.begin(Limits(1)), inputs.Claimed(("cpu",), (lease,), 1), 0.0)
    return state


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_write_of_an_older_lease_that_is_confirmed_late_ends_nothing(entry: Callable[[Lease], c.OutboxEntry]) -> None:
    state, _ = core.step(holding(NEW), inputs.OutboxEntryWritten(entry(OLD)), 1.0)
    assert state.held["job_a.toy"].lease == NEW
    assert not state.held["job_a.toy"].settled


def test_an_outcome_of_an_older_lease_is_not_written_for_the_new_one() -> None:
    for input in (inputs.TaskFinished(Finish("job_a.toy", 1)), inputs.TaskFailed("job_a.toy", 1, WHY, 0.5)):
        state, todo = core.step(holding(NEW), input, 1.0)
        assert (state.outbox, state.held["job_a.toy"].settled) == ((), False)
        assert not [x for x in todo if isinstance(x, c.Complete | c.Fail)]


def test_an_outcome_that_comes_twice_is_written_once() -> None:
    state, _ = core.step(holding(NEW), inputs.TaskFinished(Finish("job_a.toy", 2)), 1.0)
    state, _ = core.step(state, inputs.TaskFailed("job_a.toy", 2, WHY, 0.5), 1.1)
    assert [type(entry) for entry in state.outbox] == [c.Complete]


def test_the_outbox_is_tried_again_after_a_pause_and_not_before() -> None:
    state, todo = core.step(holding(NEW), inputs.TaskFinished(Finish("job_a.toy", 2)), 10.0)
    assert any(isinstance(x, c.Complete) for x in todo)
    state, todo = core.step(state, inputs.StoreUnavailable(), 10.5)
    assert not any(isinstance(x, c.Complete) for x in todo)
    state, todo = core.step(state, inputs.Tick(), 10.5 + core.RETRY_SECONDS - 0.01)
    assert not any(isinstance(x, c.Complete) for x in todo)
    assert state.wake_at() <= 10.5 + core.RETRY_SECONDS
    state, todo = core.step(state, inputs.Tick(), 10.5 + core.RETRY_SECONDS)
    assert any(isinstance(x, c.Complete) for x in todo)
    assert "job_a.toy" in state.held, "it is renewed while its outcome waits"


class Away(MemoryLedger):
    """A ledger whose verbs do not answer so many times."""

    def __init__(self, error: Callable[[], Exception], **times: int) -> None:
        super().__init__()
        self._error, self.left = error, times

    def _ask(self, verb: str) -> None:
        if self.left.get(verb, 0) > 0:
            self.left[verb] -= 1
            raise self._error()

    def complete(self, worker: str, finishes: Sequence[Finish]) -> Completed:
        self._ask("complete")
        return super().complete(worker, finishes)

    def fail(self, *args: Any) -> Verdict:
        self._ask("fail")
        return super().fail(*args)

    def give_back(self, *args: Any) -> Any:
        self._ask("give_back")
        return super().give_back(*args)


@pytest.mark.parametrize("error", [lambda: StoreAway("away"), lambda: NoRoom("its disk is full")])
def test_every_outcome_reaches_a_store_that_was_away(tmp_path: Path, error: Callable[[], Exception]) -> None:
    bench = Bench(tmp_path, Away(error, complete=2, fail=2))
    good, bad = bench.submit("good"), bench.submit("bad", broke="no")
    with bench.working():
        wait_for(lambda: bench.task(good).state is TaskState.DONE, "the finish was lost")
        wait_for(lambda: bench.task(bad).failures == 1, "the failure was lost")
    assert bench.ledger.left == {"complete": 0, "fail": 0}
    for task, kind in ((good, EventType.DONE), (bad, EventType.FAILED)):
        assert [e.type for e in bench.ledger.events(task.partition(".")[0])].count(kind) == 1
    assert bench.task(good).fence == bench.task(bad).fence == 1, "nothing was made twice"


def test_what_is_given_back_reaches_a_store_that_was_away(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Away(lambda: StoreAway("away"), give_back=2))
    gate = tmp_path / "gate"
    gate.touch()
    task = bench.submit("held", gate=str(gate))
    with bench.working(Limits(slots=1, task_seconds=0.0, drain_seconds=0.0)) as shell:
        wait_for(lambda: bench.task(task).state is TaskState.LEASED, "it never began")
        shell.request_stop("a test")
        wait_for(lambda: bench.task(task).state is TaskState.READY, "it was never given back")
    assert bench.ledger.left["give_back"] == 0


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("error", [StoreAway("away"), NoRoom("full"), LeaseLost("whose row is over")])
def test_an_entry_counts_as_written_only_when_it_is(
    tmp_path: Path, entry: Callable[[Lease], c.OutboxEntry], error: Exception
) -> None:
    bench, told = Bench(tmp_path, Away(lambda: error, complete=1, fail=1, give_back=1)), list[inputs.Input]()
    hints = Hints(bench.transport, lane_of, told.append, BugLog(), takes=True)
    outbox, written = Outbox(bench.ledger, bench.open_plan, told.append, hints, lambda _lease: {}), entry(OLD)
    with pytest.raises(type(error)):
        outbox.complete("m.h.b.1", [written]) if isinstance(written, c.Complete) else outbox.send("m.h.b.1", written)
    hints.close(60)
    assert told == []


def test_a_plan_is_not_opened_for_a_lease_that_is_over(tmp_path: Path) -> None:
    opened: list[int] = []
    bench = Bench(tmp_path, opens=lambda _stage: True, open_plan=lambda lease, _finish: opened.append(lease.fence))
    shell = bench.worker()
    bench.submit("a")
    bench.ledger.renew(shell.me, {}, {})
    (lease,) = bench.ledger.claim(shell.me.id, ["cpu"], 1)
    result = Result("key-a", "piece", "0" * 64)
    entry = c.Complete(lease, Finish(lease.task, lease.fence, (result,)))
    shell._open(entry)
    assert (opened, bench.task(lease.task).state) == ([], TaskState.LEASED), "it holds nothing"
    shell.state = holding(lease._replace(fence=lease.fence + 1))
    shell._open(entry)
    assert (opened, bench.task(lease.task).state) == ([], TaskState.LEASED), "it holds a newer lease"
    shell.state = holding(lease)
    shell._open(entry)
    assert (opened, bench.task(lease.task).state) == ([lease.fence], TaskState.DONE)


@pytest.mark.parametrize(
    ("error", "soonest"), [(DamagedBlob("rot"), 0.0), (RuntimeError("a bug"), 1.0), (NeverWorks("never"), None)]
)
def test_an_outcome_that_cannot_be_written_is_tried_again_at_once_only_if_a_file_was_damaged(
    error: Exception, soonest: float | None
) -> None:
    written: list[float | None] = []
    outbox = SimpleNamespace(_write=lambda _worker, _entry, _failure, delay: written.append(delay))
    entry = cast(c.Complete, SimpleNamespace(lease=SimpleNamespace(failures=0)))
    Outbox._fail(cast(Outbox, outbox), "w1", entry, error)
    (delay,) = written
    assert delay == soonest if not soonest else (delay or 0.0) >= soonest


def test_a_worker_wakes_when_the_time_of_a_task_is_over() -> None:
    state, _ = core.step(core.begin(Limits(1, task_seconds=5.0)), inputs.Tick(), 100.0)
    state, _ = core.step(state, inputs.Claimed(("cpu",), (OLD._replace(chunk=0),), 1), 100.0)
    state = replace(state, renew_at=200.0, sweep_at=200.0, rest_until=200.0)
    assert state.wake_at() == 105.0
