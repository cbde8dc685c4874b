"""A worker in a thread of the test: a ledger and blobs in memory, real child processes that run toy_slot.py."""

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from rushes.blobs.local_disk import free_bytes
from rushes.blobs.port import Blobs
from rushes.domain.event import EventType
from rushes.domain.job import NewJob
from rushes.domain.keys import parse_task_id
from rushes.domain.result import Result
from rushes.domain.task import Draft, Task
from rushes.domain.worker import Incarnation
from rushes.jobs.control import Reconciler
from rushes.ledger.memory import MemoryLedger
from rushes.media.originals import LocalOriginal
from rushes.transport.poll import Poll
from rushes.transport.port import Transport
from rushes.worker.broker.attempt import Attempt, AttemptDeps
from rushes.worker.child import ChildDeps
from rushes.worker.core import Limits
from rushes.worker.publish import sweep_page
from rushes.worker.shell import Shell, WorkerDeps
from tests.memory_blobs import MemoryBlobs

DEADLINE = 240.0  # far more than anything here takes


@dataclass
class Bench:
    """What a worker is given, and what a test looks at."""

    folder: Path
    ledger: Any = field(default_factory=MemoryLedger)
    blobs: Blobs = field(default_factory=MemoryBlobs)
    transport: Transport = field(default_factory=Poll)
    lives: int = 0
    env: dict[str, str] = field(default_factory=dict)
    opens: Callable[[str], bool] = lambda _stage: False
    open_plan: Callable[..., None] = lambda _lease, _finish: None
    check_plan: Callable[..., tuple[str, ...]] = lambda _lease: ()
    retention: Callable[[], float] | None = None

    def submit(self, name: str, *, priority: int = 0, **options: Any) -> str:
        """A job of one task; its id."""
        job, task = f"job_{name}", f"job_{name}.toy"
        spec = {"results": {"piece": f"key-{name}"}, "owner": "me", "options": options, "inputs": {}, "needs": []}
        draft = Draft(task, job, "toy", None, json.dumps(spec), lane_of(task))
        self.ledger.submit(NewJob(job, "me", name, f"{name}.mp4", "toys", "{}", priority=priority), draft)
        self.transport.announce(draft.lane, [task])
        return task

    def task(self, id: str) -> Task:
        (found,) = self.ledger.tasks(ids=[id]).rows
        return found  # type: ignore[no-any-return]

    def worker(self, until: Callable[[Shell], bool] = lambda _shell: False, limits: Limits | None = None) -> Shell:
        limits = limits or Limits(slots=2, task_seconds=0.0, drain_seconds=DEADLINE)
        limits = replace(limits, by_hint=self.transport.queues)
        deps = WorkerDeps(
            ledger=self.ledger,
            transport=self.transport,
            free_bytes=partial(free_bytes, self.blobs),
            sweep=partial(sweep_page, Reconciler(self.ledger, self.transport, lane_of), self.blobs),
            open_plan=self.open_plan,
            check_plan=self.check_plan,
            opens_plan=self.opens,
            lane_of=lane_of,
            child=ChildDeps(
                argv=[sys.executable, "-S", str(Path(__file__).with_name("toy_slot.py"))],
                env=lambda _scratch: {**os.environ, **self.env},
                scratch=self.folder / "scratch",
                attempt=partial(_ToyAttempt, AttemptDeps.on(self.blobs, partial(LocalOriginal, self.folder), "0")),
            ),
            limits=limits,
            new_incarnation=self._new_incarnation,
            slot_memory=0,
            slot_tasks=100,
            reserve=0,
            retention=self.retention,
        )
        return Shell(deps, until)

    @contextmanager
    def working(self, limits: Limits | None = None) -> Iterator[Shell]:
        """A worker that works while the test goes on."""
        shell = self.worker(limits=limits)
        thread = threading.Thread(target=shell.run)
        thread.start()
        try:
            yield shell
        finally:
            shell.request_stop()
            shell.request_stop()
            thread.join(DEADLINE)
            assert not thread.is_alive(), "the worker never left"

    def run(self, until: Callable[[Shell], bool]) -> Shell:
        """A worker from its begin to its end, which must come."""
        shell = self.worker(until)
        thread = threading.Thread(target=shell.run, daemon=True)
        thread.start()
        thread.join(DEADLINE)
        assert not thread.is_alive(), "the worker never saw that it may leave"
        return shell

    def _new_incarnation(self) -> Incarnation:
        self.lives += 1
        return Incarnation(f"m.h.b.{self.lives}", "h", "b", 1, "1", ("cpu",), 2)


class _ToyAttempt(Attempt):
    """An attempt whose slot gets the lease as it is, and whose results are what the options say."""

    def begin(self) -> Any:
        return {**self.lease._asdict(), "wanted": list(self._keys)}

    @property
    def results(self) -> tuple[Result, ...]:
        more = {"manifest_sha256": "0" * 64, **self._spec["options"].get("result", {})}
        return tuple(Result(key=key, output=name, **more) for name, key in self._keys.items())


def lane_of(task: str) -> str:
    """Every toy is in lane cpu."""
    return {"toy": "cpu"}[parse_task_id(task)[1]]


def wait_for(what: Callable[[], bool], why: str) -> None:
    """Wait for something that must happen."""
    over = time.monotonic() + DEADLINE
    while not what():
        assert time.monotonic() < over, why
        time.sleep(0.005)


def lines_of(ledger: Any, task: str) -> Sequence[str]:
    """The log of a task's last attempt."""
    events = ledger.events(parse_task_id(task)[0], types={EventType.LOG}, task=task)
    return [str(e.data["line"]) for e in events]
