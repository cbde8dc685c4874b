"""Every ledger against the model: random verbs by several workers, stale fences, lost replies, crashes between steps.

RUSHES_EXAMPLES=200 asks for that many stories of each ledger instead of the few that take about 12 s.
"""

import contextlib
import os
import tempfile
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from ledger_kit import OPEN, Backend

from rushes import telemetry
from rushes.domain.errors import RushesError, StoreAway
from rushes.domain.event import EventType
from rushes.domain.job import JobCommand, JobState, NewJob
from rushes.domain.keys import job_id, task_id
from rushes.domain.result import Result
from rushes.domain.task import Draft, Failure, Finish, Lease, Need, TaskState
from rushes.domain.worker import Incarnation
from rushes.ledger.bucket import BucketLedger
from rushes.ledger.memory import MemoryLedger
from rushes.ledger.port import Debt, Ledger

EXAMPLES = int(os.environ.get("RUSHES_EXAMPLES", "0"))
DEFAULT = {
    "sqlite": 36,
    "bucket": 6,
    "dynamodb": 2,
}  # servers are slower: 12 each; the emulator takes 6 s
JOBS = [NewJob(job_id("ann", str(n)), "ann", str(n), f"{n}.mp4", "r", "{}", n) for n in range(3)]
COMMANDS = [JobCommand.PAUSE, JobCommand.PAUSE_NOW, JobCommand.RESUME, JobCommand.CANCEL, JobCommand.PRIORITY]
FAULTS = st.sampled_from(["none"] * 8 + ["reopen", "lost before", "lost reply"])
SHM = Path("/dev/shm")  # no power cut is tried here, so that no disk need be waited for
NUMBERS = st.integers(0, 10**6)
STAGES = st.sampled_from(["part", "join", "last"])
FAILURE = Failure("SlotDied", "it died", "hint", "may work next time", ("line",), 11)


def plan(job: str, shape: int) -> list[Draft]:
    """Chunks, joins, a task that needs a key, adopted ones: some of these by the bits of a number."""
    chunks = shape & 3
    probe = (Need(task_id(job, "probe", None)),) if shape & 128 else ()
    parts = [
        Draft(task_id(job, "part", n), job, "part", n, "{}", "cpu", n + 1, probe, adopted=bool(shape >> 4 + n & 1))
        for n in range(chunks)
    ]
    needs = tuple(Need(part.id) for part in parts)
    join = Draft(task_id(job, "join", None), job, "join", None, "{}", "now", 8, needs)
    last = Draft(task_id(job, "last", None), job, "last", None, "{}", "cpu", 9, (Need(join.id), Need("k2", True)))
    return [*parts, *([join] if shape & 4 else []), *([last] if shape & 8 else [])]


class LedgerMachine(RuleBasedStateMachine):
    """Does everything twice: to the model, and to a backend with faults."""

    name: str

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(dir=SHM if SHM.is_dir() else None)
        self.backend = Backend(self.name, Path(self.folder.name))
        self.model = MemoryLedger(self.backend.clock.now, self.backend.clock.wall, self.backend.is_gone)
        self.real = self.backend.open()
        self.leases: list[tuple[str, Lease]] = []
        self.submitted: list[str] = []
        self.debts: tuple[Debt, ...] = ()
        self.workers = [Incarnation(f"w{n}", "h", "b", n, "1") for n in range(3)]

    def teardown(self) -> None:
        self.backend.close()
        self.folder.cleanup()

    def both(self, fault: str, verb: Callable[[Ledger], Any]) -> Any:
        """The same answer from both, whatever happens on the way."""
        self.hold()
        if fault == "reopen":
            self.crash()
        if fault == "lost before":
            with no_effect(), contextlib.suppress(RushesError):
                verb(self.real)
            self.crash()
        expected, got = attempt(verb, self.model), attempt(verb, self.real)
        assert got == expected
        if fault == "lost reply":
            assert attempt(verb, self.real) == attempt(verb, self.model)
        return expected

    def pick(self, n: int) -> tuple[str, Lease]:
        """A lease that counts, or now and then any there ever was."""
        held = {task.id: task.fence for task in self.model.tasks(state=TaskState.LEASED).rows}
        live = [(w, lease) for w, lease in self.leases if held.get(lease.task) == lease.fence]
        pool = live if live and n % 4 else self.leases
        return pool[n // 4 % len(pool)]

    def hold(self) -> None:
        """A film of a bucket that is released answers LOST to all that is late: whoever works holds it."""
        if isinstance(self.real, BucketLedger):
            self.real.films.take("film")

    def crash(self) -> None:
        if isinstance(self.real, BucketLedger):  # its workers die with the process: test_bucket_machine
            return
        self.backend.handles.pop().close()
        self.real = self.backend.open()

    @initialize(shape=NUMBERS)
    def begin(self, shape: int) -> None:
        """Most stories are about an open plan."""
        for n in range(3):
            self.renew(n, 0.0, "none")
        for n in (0, 1):
            self.submit(n, False, "none")
            self.claim(0, 1, "none")
            self.write_plan(1, shape | 13 if n else shape, "none")
            self.complete([1], 0, "none")

    @rule(n=st.integers(0, 2), waits=st.booleans(), fault=FAULTS)
    def submit(self, n: int, waits: bool, fault: str) -> None:
        new = JOBS[n]
        needs = (Need("k1", True),) if waits else ()
        first = Draft(task_id(new.id, "probe", None), new.id, "probe", None, "{}", needs=needs)
        self.both(fault, lambda g: g.submit(new, first))
        self.submitted = list(dict.fromkeys([*self.submitted, new.id]))

    @rule(
        n=st.integers(0, 2), count=st.integers(1, 4), fault=st.sampled_from(["none", "none", "reopen", "lost before"])
    )
    def claim(self, n: int, count: int, fault: str) -> None:
        worker = self.workers[n].id
        got = self.both(fault, lambda g: g.claim(worker, ["cpu", "now"], count))
        if isinstance(got, tuple):
            self.leases += [(worker, lease) for lease in got]

    @precondition(lambda self: self.leases)
    @rule(n=NUMBERS, shape=NUMBERS, fault=FAULTS)
    def write_plan(self, n: int, shape: int, fault: str) -> None:
        _, lease = self.pick(n)
        if lease.stage == "probe":
            drafts = plan(lease.job, shape)
            self.both(fault, lambda g: g.draft(lease.job, lease.task, lease.fence, drafts, f"facts {shape}"))

    @precondition(lambda self: self.leases)
    @rule(numbers=st.lists(NUMBERS, min_size=1, max_size=4), kind=st.integers(0, 7), fault=FAULTS)
    def complete(self, numbers: list[int], kind: int, fault: str) -> None:
        chosen = [self.pick(n) for n in numbers]
        worker = chosen[0][0]
        finishes = [
            Finish(lease.task, lease.fence, results(lease, kind), kind == 7, float(kind)) for _, lease in chosen
        ]
        self.both(fault, lambda g: g.complete(worker, finishes))

    @precondition(lambda self: self.leases)
    @rule(n=NUMBERS, back=st.integers(1, 3), fault=FAULTS)
    def a_zombie_wakes(self, n: int, back: int, fault: str) -> None:
        """A worker uses a lease that it had on the task before."""
        worker, lease = self.pick(n)
        old = lease._replace(fence=lease.fence - back)
        self.both(fault, lambda g: g.complete(worker, [Finish(old.task, old.fence, results(old, 3))]))
        self.both(fault, lambda g: g.fail(worker, old.task, old.fence, FAILURE, None))
        self.both(fault, lambda g: g.give_back(worker, [(old.task, old.fence)], "late"))

    @precondition(lambda self: self.leases)
    @rule(n=NUMBERS, delay=st.sampled_from([None, 0.0, 10.0, 60.0]), fault=FAULTS)
    def fail(self, n: int, delay: float | None, fault: str) -> None:
        worker, lease = self.pick(n)
        self.both(fault, lambda g: g.fail(worker, lease.task, lease.fence, FAILURE, delay))

    @precondition(lambda self: self.leases)
    @rule(numbers=st.lists(NUMBERS, min_size=1, max_size=3), delay=st.sampled_from([0.0, 15.0]), fault=FAULTS)
    def give_back(self, numbers: list[int], delay: float, fault: str) -> None:
        chosen = [self.pick(n) for n in numbers]
        held = [(lease.task, lease.fence) for _, lease in chosen]
        self.both(fault, lambda g: g.give_back(chosen[0][0], held, "drain", delay))

    @rule(n=st.integers(0, 2), fraction=st.floats(0, 1), fault=FAULTS)
    def renew(self, n: int, fraction: float, fault: str) -> None:
        worker = self.workers[n]
        holding = {lease.task: lease.fence for w, lease in self.leases if w == worker.id}
        self.both(fault, lambda g: g.renew(worker, holding, dict.fromkeys(holding, fraction), "note"))

    @rule(limit=st.sampled_from([1, 500]), pays=st.booleans(), fault=FAULTS)
    def sweep(self, limit: int, pays: bool, fault: str) -> None:
        paid = self.debts if pays else ()
        self.debts = self.both(fault, lambda g: g.sweep(limit, paid)).debts

    @rule(n=st.integers(0, 2), command=st.sampled_from(COMMANDS), value=st.integers(0, 3), fault=FAULTS)
    def steer_job(self, n: int, command: JobCommand, value: int, fault: str) -> None:
        self.both(fault, lambda g: g.control(JOBS[n].id, command, value))

    @rule(n=st.integers(0, 2), stages=st.sets(STAGES, min_size=1), fault=FAULTS)
    def cancel_stages(self, n: int, stages: set[str], fault: str) -> None:
        self.both(fault, lambda g: g.control(JOBS[n].id, JobCommand.CANCEL, 0, stages))

    @rule(n=st.integers(0, 2), seconds=st.sampled_from([0, 15, 60]), fault=FAULTS)
    def trim(self, n: int, seconds: int, fault: str) -> None:
        self.both(fault, lambda g: g.control(JOBS[n].id, JobCommand.TRIM, seconds))

    @rule(n=st.integers(0, 2), fault=FAULTS)
    def forget(self, n: int, fault: str) -> None:
        if self.both(fault, lambda g: g.control(JOBS[n].id, JobCommand.FORGET)) is None:
            self.submitted.remove(JOBS[n].id)

    @rule(n=st.integers(0, 2), command=st.sampled_from([JobCommand.DRAIN, JobCommand.LEAVE]), fault=FAULTS)
    def steer_worker(self, n: int, command: JobCommand, fault: str) -> None:
        self.both(fault, lambda g: g.control(self.workers[n].id, command))

    @rule(n=st.integers(0, 2), stages=st.sets(STAGES), again=st.booleans(), fault=FAULTS)
    def revive(self, n: int, stages: set[str], again: bool, fault: str) -> None:
        self.both(fault, lambda g: g.revive(JOBS[n].id, (), stages, again))

    @rule(n=st.integers(0, 1), again=st.booleans(), fault=FAULTS)
    def revive_a_cancelled_one(self, n: int, again: bool, fault: str) -> None:
        self.steer_job(n, JobCommand.CANCEL, 0, fault)
        self.revive(n, set(), again, fault)

    @precondition(lambda self: self.leases)
    @rule(n=NUMBERS, again=st.booleans(), delayed=st.booleans(), fault=FAULTS)
    def revive_one(self, n: int, again: bool, delayed: bool, fault: str) -> None:
        _, lease = self.pick(n)
        self.both(fault, lambda g: g.revive(lease.job, [lease.task], (), again, delayed))

    @rule(key=st.sampled_from(["k1", "k2"]), etag=st.sampled_from(["e1", "e2"]), fault=FAULTS)
    def arrived(self, key: str, etag: str, fault: str) -> None:
        self.both(fault, lambda g: g.arrived(key, etag))

    @precondition(lambda self: self.leases)
    @rule(n=NUMBERS, first=st.integers(1, 5), fault=FAULTS)
    def log(self, n: int, first: int, fault: str) -> None:
        _, lease = self.pick(n)
        self.both(fault, lambda g: g.log(lease.task, lease.fence, first, ["a", "b"]))

    @precondition(lambda self: self.leases)
    @rule(n=NUMBERS, fault=FAULTS)
    def set_aside(self, n: int, fault: str) -> None:
        keys = [r.key for r in results(self.pick(n)[1], 3)]
        self.both(fault, lambda g: g.set_aside("ann", keys, "damaged"))

    @rule()
    def they_list_the_same(self) -> None:
        assert lists(self.real) == lists(self.model)

    @rule(seconds=st.sampled_from([1.0, 10.0, 20.0, 31.0, 70.0]))
    def time_passes(self, seconds: float) -> None:
        self.backend.clock.advance(seconds)

    @rule(n=st.integers(0, 2))
    def a_process_dies(self, n: int) -> None:
        self.backend.gone.add(self.workers[n].id)

    @rule(n=st.integers(0, 2), fault=FAULTS)
    def a_process_starts(self, n: int, fault: str) -> None:
        old = self.workers[n].id
        if any(w.incarnation.id == old for w in self.model.workers()):
            return
        self.workers[n] = Incarnation(f"{old}x", "h", "b", n, "1")
        self.renew(n, 0.0, fault)

    @invariant()
    def they_look_the_same(self) -> None:
        assert picture(self.real, self.submitted) == picture(self.model, self.submitted)

    @invariant()
    def counters_and_events_agree_with_the_tasks(self) -> None:
        for job in self.submitted:
            row, tasks, told = self.real.job(job), self.real.tasks(job).rows, self.real.events(job)
            first = told[0].number
            assert [e.number for e in told] == list(range(first, row.last_event + 1))
            assert first == 1 or told[0].type is EventType.TRUNCATED
            wanted = [t for t in tasks if t.state is not TaskState.CANCELLED]
            assert row.state is JobState.CANCELLED or row.counts.total == len(wanted)
            assert row.counts.done == sum(t.state is TaskState.DONE for t in tasks)
            assert (row.finished_at is not None) == (row.state in ("completed", "failed", "cancelled"))
            if row.state is JobState.COMPLETED:
                assert row.counts.done == len(wanted)


@contextlib.contextmanager
def no_effect() -> Iterator[None]:
    """The process dies just before its first effect: every backend has a crash point there."""

    def die(_point: str) -> None:
        raise StoreAway("died before the effect")

    with mock.patch.object(telemetry, "_crash", die):
        yield


def attempt(verb: Callable[[Ledger], Any], ledger: Ledger) -> Any:
    """The answer, or the class of the refusal."""
    try:
        answer = verb(ledger)
    except RushesError as e:
        return type(e)
    if isinstance(answer, tuple) and all(isinstance(one, Lease) for one in answer):
        return tuple(lease._replace(token=0) for lease in answer)  # of a lock, which not every ledger has
    return answer


def results(lease: Lease, kind: int) -> tuple[Result, ...]:
    """None, one or three results."""
    one, *others = results_of(lease.task)
    one = one._replace(size=kind, manifest_sha256=str(kind) * 64, publishes=kind > 3)
    return () if kind == 0 else (one, *others) if kind == 3 else (one,)


def results_of(task: str) -> tuple[Result, ...]:
    """Results that a task may have; one is shared by all."""
    return tuple(Result(key, "out", "ab" * 32) for key in (f"{task}-a", f"{task}-b", "shared"))


def picture(ledger: Ledger, jobs: Collection[str]) -> object:
    """What readers look at most."""
    each = [(ledger.job(job), ledger.tasks(job).rows, ledger.events(job)) for job in jobs]
    return each, set(ledger.changed()[0]), ledger.workers()


def lists(ledger: Ledger) -> object:
    """What readers look at now and then."""
    tasks = ledger.tasks().rows
    logs = [ledger.events(task.job, types={EventType.LOG}, task=task.id) for task in tasks]
    keys = {r.key for task in tasks for r in results_of(task.id)}
    jobs = [ledger.jobs("ann", state).rows for state in (None, *JobState)]
    return tasks, logs, ledger.known("ann", keys), jobs, [ledger.tasks(state=state).rows for state in TaskState]


# A remote ledger has only the verbs of a worker: its own suite is the contract of leases.
@pytest.mark.parametrize("name", sorted(set(OPEN) - {"memory", "remote"}))
def test_a_ledger_answers_as_the_model_does(name: str) -> None:
    chosen = settings(
        max_examples=EXAMPLES or DEFAULT.get(name, 12),
        stateful_step_count=25 if name == "dynamodb" and not EXAMPLES else 40,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    machine: type[LedgerMachine] = type(name, (LedgerMachine,), {"name": name})
    run_state_machine_as_test(machine, settings=chosen)
