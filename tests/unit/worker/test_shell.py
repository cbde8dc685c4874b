"""A worker with real child processes: what it may not do to others, whatever a task, a store or a server does."""

import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rushes.blobs.documents import read_document
from rushes.blobs.folder import FolderBlobs
from rushes.domain.errors import DamagedBlob, LeaseLost, RushesError, StoreAway, WrongHome
from rushes.domain.event import EventType
from rushes.domain.job import JobCommand, NewJob
from rushes.domain.result import Artifact, Manifest, Provenance
from rushes.domain.task import Draft, Failure, Finish, Lease, TaskState, Verdict
from rushes.domain.worker import Incarnation
from rushes.ledger.memory import MemoryLedger
from rushes.ledger.port import Completed, Debt, Renewed, SweepResult
from rushes.telemetry import BugLog
from rushes.worker import commands, core, inputs, scratch, shell
from rushes.worker.core import Limits
from rushes.worker.hints import Hints
from rushes.worker.outbox import Outbox
from tests.disk_space import report_free_bytes
from tests.memory_blobs import MemoryBlobs
from tests.unit.worker_kit import DEADLINE, Bench, lane_of, lines_of, wait_for


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def done(bench: Bench, task: str) -> bool:
    return bench.task(task).state is TaskState.DONE


def test_a_worker_without_work_sees_at_once_that_it_is_idle(bench: Bench) -> None:
    bench.run(lambda shell: shell.idle)


def test_a_worker_is_idle_only_when_everything_is_done(bench: Bench) -> None:
    tasks = [bench.submit(f"a{n}") for n in range(7)]
    bench.run(lambda shell: shell.idle)
    assert all(done(bench, task) for task in tasks)


def test_a_worker_clears_up_meanwhile_and_work_does_not_wait_for_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shell, "RETENTION_SECONDS", 0.0)
    monkeypatch.setattr(shell, "HOUSEKEEPING_SECONDS", 0.01)
    steps, go_on = [0], threading.Event()

    def step() -> float:
        steps[0] += 1
        if steps[0] == 1:
            raise StoreAway("the bucket is away")
        go_on.wait(DEADLINE)
        return 0.0

    bench.retention = step
    with bench.working():
        wait_for(lambda: steps[0] == 2, "it was not tried again")
        task = bench.submit("meanwhile")
        wait_for(lambda: done(bench, task), "the task waited for a step that takes long")
        go_on.set()
        wait_for(lambda: steps[0] > 5, "it was not gone on with")


def test_every_line_of_a_failed_attempt_stays_with_it(bench: Bench) -> None:
    bad = [bench.submit(f"bad{n}", broke="no", print=[f"line {n} {m}" for m in range(50)]) for n in range(4)]
    bench.run(lambda shell: shell.idle)
    for n, task in enumerate(bad):
        failure = bench.task(task).failure
        assert failure is not None
        assert failure.lines == tuple(f"line {n} {m}" for m in range(10, 50))
        assert lines_of(bench.ledger, task) == [f"line {n} {m}" for m in range(50)]


def test_lines_after_an_attempt_are_not_booked_to_the_next(bench: Bench) -> None:
    limits = Limits(slots=1, task_seconds=0.0)
    with bench.working(limits):
        first = bench.submit("first", late="said too late")
        wait_for(lambda: done(bench, first), "the first was never done")
        second = bench.submit("second", broke="no", print=["mine"])
        wait_for(lambda: bench.task(second).failures == 1, "the second never failed")
    failure = bench.task(second).failure
    assert failure is not None
    assert failure.lines == ("mine",)


def test_a_task_cancelled_and_retried_at_once_never_speaks_for_another(bench: Bench, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    gate.touch()
    first = bench.submit("first", gate=str(gate))
    with bench.working():
        wait_for(lambda: bench.task(first).state is TaskState.LEASED, "the task was never begun")
        bench.ledger.control("job_first", JobCommand.CANCEL)
        bench.ledger.revive("job_first")
        wait_for(lambda: bench.task(first).fence == 2, "the task was never leased again")
        other = bench.submit("other", die=True)
        wait_for(lambda: bench.task(other).failures == 1, "the other one never failed")
        gate.unlink()
        wait_for(lambda: done(bench, first), "the task was never done")
    assert bench.ledger.known("me", ["key-first", "key-other"]).keys() == {"key-first"}


def test_a_slot_that_says_what_nobody_understands_has_failed(bench: Bench) -> None:
    task = bench.submit("odd", result={"of": "a newer version"})
    bench.run(lambda shell: shell.idle)
    failure = bench.task(task).failure
    assert failure is not None
    assert failure.kind == "SlotDied"


def test_a_slot_that_left_a_thread_at_work_is_replaced(bench: Bench) -> None:
    limits = Limits(slots=1, task_seconds=0.0)
    with bench.working(limits):
        tasks = [bench.submit(f"t{n}", broke="too slow", replace=n == 1, say_pid=True) for n in range(3)]
        wait_for(lambda: all(bench.task(task).failures == 1 for task in tasks), "not all were tried")
    (first,), (second,), (third,) = (lines_of(bench.ledger, task) for task in tasks)
    assert first == second != third
    assert {bench.task(task).failure.message for task in tasks} == {"too slow"}  # type: ignore[union-attr]


@pytest.mark.parametrize("spec", ["", "no JSON", "[]", "{}", '{"results": {}}', '{"owner": "me", "results": {"a": 1}}'])
def test_a_task_whose_spec_cannot_be_read_is_a_dead_letter_at_once(bench: Bench, spec: str) -> None:
    task = "job_odd.toy"
    bench.ledger.submit(
        NewJob("job_odd", "me", "odd", "odd.mp4", "toys", "{}"), Draft(task, "job_odd", "toy", None, spec)
    )
    good = bench.submit("good")
    bench.run(lambda shell: shell.idle)
    found = bench.task(task)
    assert (found.state, found.failures) == (TaskState.DEAD, 1)
    assert found.failure is not None
    assert (found.failure.kind, "cannot be read" in found.failure.message or "lacks" in found.failure.message) == (
        "NeverWorks",
        True,
    )
    assert done(bench, good)


class GrownLedger(MemoryLedger):
    """Once a newer version has changed it, it answers a worker of this one no more."""

    grown = False

    def claim(self, worker: str, lanes: Sequence[str], n: int, hinted: Collection[str] = ()) -> tuple[Lease, ...]:
        if self.grown:
            raise LeaseLost("ask for your row")
        return super().claim(worker, lanes, n, hinted)

    def renew(
        self, worker: Incarnation, holding: Mapping[str, int], progress: Mapping[str, float], note: str = ""
    ) -> Renewed:
        if self.grown:
            raise WrongHome("a newer version has changed it")
        return super().renew(worker, holding, progress, note)


def test_a_worker_that_its_ledger_refuses_hands_back_what_it_has_and_says_why(tmp_path: Path) -> None:
    bench = Bench(tmp_path, GrownLedger())
    gate = tmp_path / "gate"
    gate.touch()
    task = bench.submit("held", gate=str(gate))
    shell, refused = bench.worker(), []

    def run() -> None:
        with pytest.raises(WrongHome, match="a newer version"):
            shell.run()
        refused.append(True)

    thread = threading.Thread(target=run)
    thread.start()
    wait_for(lambda: bench.task(task).state is TaskState.LEASED, "the task was never begun")
    bench.ledger.grown = True
    bench.transport.announce("cpu", ["look again"])
    thread.join(DEADLINE)
    assert refused
    assert bench.task(task).state is TaskState.READY
    assert bench.task(task).failures == bench.task(task).losses == 0
    assert bench.ledger.workers() == ()


class FussyLedger(MemoryLedger):
    """Cannot write what one task made, nor text with a NUL."""

    def complete(self, worker: str, finishes: Sequence[Finish]) -> Completed:
        if any("odd" in f.task for f in finishes):
            raise ValueError("a result that no column can hold")
        return super().complete(worker, finishes)

    def fail(self, worker: str, task: str, fence: int, failure: Failure, delay: float | None) -> Verdict:
        if "\x00" in failure.message:
            raise ValueError("text must not hold NUL")
        return super().fail(worker, task, fence, failure, delay)


def test_an_outcome_that_cannot_be_written_fails_its_own_task_alone(tmp_path: Path) -> None:
    bench = Bench(tmp_path, FussyLedger())
    gate = tmp_path / "gate"
    gate.touch()
    odd, good, nul = (
        bench.submit("odd", gate=str(gate)),
        bench.submit("good", gate=str(gate)),
        bench.submit("nul", broke="a \x00 byte"),
    )
    with bench.working():
        gate.unlink()
        wait_for(lambda: done(bench, good), "the good one was never done")
        wait_for(lambda: bench.task(odd).failures == 1, "the odd one never failed")
        wait_for(lambda: bench.task(nul).failures == 1, "the failure was never written")
    failure = bench.task(odd).failure
    assert failure is not None
    assert failure.kind == "ValueError"


def test_of_outcomes_posted_together_only_the_one_that_cannot_be_written_fails(tmp_path: Path) -> None:
    bench = Bench(tmp_path, FussyLedger())
    tasks = [bench.submit(name) for name in ("odd", "good")]
    told: list[inputs.Input] = []
    me = bench._new_incarnation()
    bench.ledger.renew(me, {}, {})
    posted = [commands.Complete(x, Finish(x.task, x.fence)) for x in bench.ledger.claim(me.id, ["cpu"], 2)]
    hints = Hints(bench.transport, lane_of, told.append, BugLog(), takes=True)
    Outbox(bench.ledger, bench.open_plan, told.append, hints, lambda _lease: {}).complete(me.id, posted)
    hints.close(60)
    assert [bench.task(task).state for task in tasks] == [TaskState.READY, TaskState.DONE]
    assert told == [inputs.OutboxEntryWritten(entry) for entry in posted]


def test_a_spec_larger_than_the_pipe_does_not_stop_the_worker(tmp_path: Path) -> None:
    bench = Bench(tmp_path, env={"TOY_START": "3600"})
    with bench.working(Limits(slots=1, task_seconds=0.0, drain_seconds=0.0)) as shell:
        bench.submit("large", blank=" " * 5_000_000)
        wait_for(lambda: bool(shell.state.held), "it was never claimed")
        before = shell.state.renew_at
        shell.request_stop("a test")
        wait_for(lambda: shell.state.renew_at > before or shell.state.left, "the loop stands still")


def test_the_scratch_of_a_slot_that_died_is_removed(bench: Bench) -> None:
    scratch = bench.folder / "scratch"
    bench.submit("dies", scratch=str(scratch), die=True)
    with bench.working():
        wait_for(lambda: bench.task("job_dies.toy").failures == 1, "it never died")
        wait_for(lambda: not list(scratch.glob("*")), "its scratch is still there")


def test_scratch_that_a_killed_worker_left_is_removed_at_the_next_start(bench: Bench) -> None:
    left = bench.folder / "scratch" / "4194303-left"
    left.mkdir(parents=True)
    kept = bench.folder / "scratch" / "cache"
    kept.mkdir()
    bench.run(lambda shell: shell.idle)
    assert not left.exists()
    assert kept.exists()


class SlowBlobs(MemoryBlobs):
    """Publishing takes until the test lets it go on."""

    def __init__(self) -> None:
        super().__init__()
        self.began, self.go_on = threading.Event(), threading.Event()

    def publish(self, name: str, owner: str, sha256: str) -> None:
        self.began.set()
        assert self.go_on.wait(60)
        super().publish(name, owner, sha256)


def manifest(bench: Bench, key: str) -> None:
    blob = bench.blobs.put("me", b"bytes")
    origin = Provenance("job", "toy", "p", "1", "fast", "c", "i", 1)
    one = Manifest(key, "piece", (Artifact("a", blob.sha256, 5, "x/y", f"toys/{key}"),), origin)
    bench.blobs.create(f"results/me/{key[:2]}/{key}.json", one.to_bytes())


def test_a_slow_blob_store_holds_up_nothing_but_its_names(tmp_path: Path) -> None:
    blobs = SlowBlobs()
    bench = Bench(tmp_path, blobs=blobs)
    manifest(bench, "key-named")
    bench.submit("named", result={"publishes": True})
    with bench.working() as shell:
        assert blobs.began.wait(60)
        task = bench.submit("meanwhile")
        wait_for(lambda: done(bench, task), "the loop waits for the blob store")
        assert not shell.state.left
        blobs.go_on.set()
        wait_for(lambda: read_document(blobs, "toys/key-named") == b"bytes", "it was never published")


class SmallPages(MemoryLedger):
    """A ledger that tells of one debt at a time."""

    def sweep(self, limit: int = 500, paid: Sequence[Debt] = ()) -> SweepResult:
        swept = super().sweep(limit, paid)
        return replace(swept, debts=swept.debts[:1])


class Noting(SlowBlobs):
    """A slow blob store that keeps note of the names."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []

    def publish(self, name: str, owner: str, sha256: str) -> None:
        super().publish(name, owner, sha256)
        self.told.append(name)


def test_a_plan_is_opened_between_two_pages_of_names(tmp_path: Path) -> None:
    blobs, opens, made = Noting(), threading.Event(), threading.Event()
    bench = Bench(tmp_path, SmallPages(), blobs)
    bench.opens = lambda _stage: opens.is_set()
    bench.open_plan = lambda *_: blobs.told.append("plan")
    for name in "abcd":
        manifest(bench, f"key-{name}")
        bench.submit(name, result={"publishes": True})
    with bench.working() as shell:
        wait_for(lambda: blobs.began.is_set() and all(done(bench, f"job_{n}.toy") for n in "abcd"), "never done")
        shell.on_input = lambda one: made.set() if isinstance(one, inputs.TaskFinished) else None
        opens.set()
        plan = bench.submit("plan")
        assert made.wait(60)
        task = bench.submit("after", result={})
        wait_for(lambda: bench.task(task).state is not TaskState.READY, "the loop does not go on")
        blobs.go_on.set()
        wait_for(lambda: done(bench, plan) and len(blobs.told) > 4, "it was never opened")
    assert blobs.told.index("plan") < 3


def test_a_run_ends_only_when_its_names_are_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "PATIENCE_SECONDS", 0.0)
    blobs = SlowBlobs()
    bench = Bench(tmp_path, blobs=blobs)
    manifest(bench, "key-named")
    bench.submit("named", result={"publishes": True})
    threading.Timer(0.2, blobs.go_on.set).start()  # longer than the worker would need to leave
    bench.run(lambda _shell: done(bench, "job_named.toy"))
    assert read_document(blobs, "toys/key-named") == b"bytes"


def test_a_plan_that_meets_damage_is_tried_again_at_once(tmp_path: Path) -> None:
    met: list[str] = []

    def open_plan(lease: Any, _finish: Finish) -> None:
        met.append(lease.task)
        if len(met) == 1:
            raise DamagedBlob("the facts are gone")

    bench = Bench(tmp_path, opens=lambda _stage: True, open_plan=open_plan)
    task = bench.submit("plan")
    bench.run(lambda _shell: done(bench, task))
    assert len(met) == 2
    assert bench.task(task).failures == 1


def test_a_plan_is_looked_at_again_once_it_is_open(tmp_path: Path) -> None:
    seen: list[TaskState] = []

    def check_plan(lease: Any) -> tuple[str, ...]:
        seen.append(planner.task(lease.task).state)
        return ()

    planner = Bench(tmp_path, opens=lambda _stage: True, check_plan=check_plan)
    task = planner.submit("plan")
    planner.run(lambda _shell: bool(seen))
    assert planner.task(task).state is TaskState.DONE
    assert seen == [TaskState.DONE]


def test_a_drained_worker_says_why_and_its_tasks_are_claimable_at_once(bench: Bench) -> None:
    gate = bench.folder / "gate"
    gate.touch()
    task = bench.submit("held", gate=str(gate))
    with bench.working(Limits(slots=1, task_seconds=0.0, drain_seconds=0.0)) as shell:
        wait_for(lambda: bench.task(task).state is TaskState.LEASED, "it was never claimed")
        bench.transport.wait(["cpu"], 0)  # the hint of its submission, if nobody took it
        shell.request_stop("SIGTERM")
        wait_for(lambda: shell.state.left, "it never left")
    (event,) = [e for e in bench.ledger.events("job_held") if e.type is EventType.GIVEN_BACK]
    assert event.data["reason"] == "drained: SIGTERM"
    found = bench.task(task)
    assert (found.state, found.failures, found.losses, found.due_in) == (TaskState.READY, 0, 0, None)
    assert bench.transport.wait(["cpu"], 0) == (task,), "others were told at once"


def test_a_full_disk_is_logged_once_and_work_goes_on_when_there_is_room(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = [-1]
    report_free_bytes(monkeypatch, lambda: free[0])
    bench = Bench(tmp_path, blobs=FolderBlobs(tmp_path / "files"))
    task = bench.submit("patient")
    with bench.working():
        wait_for(lambda: any(w.note == "disk full" for w in bench.ledger.workers()), "nobody said that it is full")
        free[0] = 1
        wait_for(lambda: done(bench, task), "it never went on")
    said = [
        r.message
        for r in caplog.records
        if r.message in ("disk full: no new tasks are taken", "the disk has space again")
    ]
    assert said == ["disk full: no new tasks are taken", "the disk has space again"]


def test_a_plan_that_could_not_be_looked_at_is_on_the_next_round(tmp_path: Path) -> None:
    asked: list[str] = []

    def check_plan(lease: Any) -> tuple[str, ...]:
        asked.append(lease.task)
        if len(asked) == 1:
            raise StoreAway("not now")
        return ()

    bench = Bench(tmp_path, opens=lambda _stage: True, check_plan=check_plan)
    with bench.working() as shell:
        task = bench.submit("film")
        wait_for(lambda: len(asked) > 1, "it was never looked at again")
    assert asked == [task, task]
    assert shell._opened == []


def test_a_plan_that_cannot_be_looked_at_is_not_asked_for_again_and_again(tmp_path: Path) -> None:
    asked: list[str] = []

    def check_plan(lease: Any) -> tuple[str, ...]:
        asked.append(lease.task)
        raise StoreAway("not now") if len(asked) < 10 else AssertionError("it does not wait for the next sweep")

    shell = Bench(tmp_path, check_plan=check_plan).worker()
    shell._opened.append(cast(Lease, SimpleNamespace(task="job_a.probe")))
    with pytest.raises(StoreAway):
        shell._check_plans()
    assert len(asked) == len(shell._opened) == 1


def test_a_plan_that_can_never_be_looked_at_holds_up_no_sweep(tmp_path: Path) -> None:
    bench = Bench(tmp_path, blobs=MemoryBlobs(), opens=lambda _stage: True, check_plan=_unheard_of)
    manifest(bench, "key-named")
    with bench.working():
        bench.submit("named", result={"publishes": True})
        wait_for(lambda: read_document(bench.blobs, "toys/key-named") == b"bytes", "its name was never published")


def _unheard_of(_lease: Any) -> tuple[str, ...]:
    raise RushesError("the store failed in a way that nobody thought of")


class FaultyLedger(MemoryLedger):
    """Its first claims raise what the test says."""

    def __init__(self, *errors: Exception) -> None:
        super().__init__()
        self.errors = list(errors)

    def claim(self, worker: str, lanes: Sequence[str], n: int, hinted: Collection[str] = ()) -> tuple[Lease, ...]:
        if self.errors:
            raise self.errors.pop()
        return super().claim(worker, lanes, n, hinted)


def test_a_bug_is_logged_once_as_a_bug_and_counted_and_the_worker_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bench = Bench(tmp_path, FaultyLedger(*(KeyError("lane") for _ in range(3))))
    task = bench.submit("film")
    shell = bench.run(lambda _shell: done(bench, task))
    assert not [r for r in caplog.records if "store" in r.message]
    (bug,) = [r for r in caplog.records if r.exc_info]
    assert (bug.levelname, bug.message) == ("ERROR", "bug: KeyError: 'lane'")
    assert list(shell.bugs.counts.values()) == [3]


def test_an_outage_of_the_store_is_no_bug(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(tmp_path, FaultyLedger(StoreAway("it does not answer")))
    task = bench.submit("film")
    shell = bench.run(lambda _shell: done(bench, task))
    (warning,) = [r for r in caplog.records if "does not answer" in r.message]
    assert (warning.levelname, warning.exc_info) == ("WARNING", None)
    assert not shell.bugs.counts


@pytest.mark.parametrize("more", [True, False])
def test_what_one_page_of_a_sweep_leaves_is_swept_at_once(
    more: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker, again = Bench(tmp_path).worker(), list[bool]()
    worker._deps = replace(worker._deps, sweep=lambda: (SweepResult(quiet=True), more))
    monkeypatch.setattr(worker, "_sweep", lambda: again.append(True))
    worker._sweep_page()
    assert again == [True] * more


def test_what_a_link_in_the_scratch_leads_to_is_left_alone(tmp_path: Path) -> None:
    root, elsewhere = tmp_path / "scratch", tmp_path / "elsewhere"
    root.mkdir()
    elsewhere.mkdir()
    (root / "1-link").symlink_to(elsewhere)
    (root / "2-left").mkdir()
    assert scratch.clear(root) == 1
    assert elsewhere.is_dir()
