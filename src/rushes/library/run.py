"""Doing the work here and now: submit, work in this process until it is done, and say what came of it."""

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import FrameType

from rushes.domain.errors import Interrupted, RushesError, Terminated
from rushes.domain.job import FINAL, Job, JobState
from rushes.domain.task import Task, TaskState
from rushes.jobs.progress import Snapshot, Watch
from rushes.ledger.pages import all_tasks
from rushes.library.intake import Added
from rushes.wiring import House
from rushes.worker.publish import sweep
from rushes.worker.shell import Shell

LOOK_SECONDS = 0.25

Looker = Callable[[Sequence[Snapshot]], None]
OnSignal = Callable[[int], None]


def stopped(number: int) -> RushesError:
    """What a signal means for work that cannot be shown half done."""
    kind = Interrupted if number == signal.SIGINT else Terminated
    return kind("stopped before it was finished")


@dataclass(frozen=True, slots=True)
class Ran:
    """How a run ended."""

    jobs: tuple[Job, ...]
    refused: tuple[Added, ...]
    seconds: float
    worked: bool  # false: everything was done before
    signal: int = 0  # the signal that ended it
    due_in: float | None = None  # nothing is left but work that backs off this long

    @property
    def exit_code(self) -> int:
        """As the table of exit codes says."""
        if self.signal:
            return 128 + self.signal
        if self.due_in is not None:
            return 5
        bad = [j for j in self.jobs if j.state is not JobState.COMPLETED]
        if not bad and not self.refused:
            return 0
        return 3 if len(bad) + len(self.refused) < len(self.jobs) + len(self.refused) else 1


@dataclass(slots=True)
class Work:
    """Some jobs and the worker that does them."""

    house: House
    jobs: Sequence[str]
    slots: int | None = None
    lanes: tuple[str, ...] = ()
    until_idle: bool = False
    due_in: float | None = None
    signal: int = 0
    on_signal: OnSignal = lambda _number: None
    shell: Shell = field(init=False)

    def __post_init__(self) -> None:
        until = self._nothing_left if self.jobs else self._is_idle
        lanes = self.lanes or (self._every_lane() if self.jobs else ())
        self.shell = self.house.worker(slots=self.slots, lanes=lanes, until=until)

    def _every_lane(self) -> tuple[str, ...]:
        """Here and now means every lane: nobody else may come for the work of these jobs."""
        own = self.house.settings.lanes.split(",")
        return tuple(dict.fromkeys((*own, *(c.lane for c in self.house.cards.values() if c.lane != "now"))))

    def serve(self) -> int:
        """Be a worker of the home until a signal comes (or, if asked, nothing is left); answers the exit code."""
        self.run(signals=True)
        return 128 + self.signal if self.signal else 0

    def run(self, look: Looker | None = None, *, signals: bool = False) -> None:
        """Work until the jobs are final, nothing but back-off is left, or a signal comes."""
        with self._looking(look), self._listening(signals):
            self.shell.run()

    def _nothing_left(self, shell: Shell) -> bool:
        rows = [self.house.ledger.job(job) for job in self.jobs]
        open_jobs = [r for r in rows if r.state not in FINAL]
        if not open_jobs:
            return True
        if not shell.idle:
            return False
        return self._only_waits(open_jobs)

    def _is_idle(self, shell: Shell) -> bool:
        return self.until_idle and shell.idle

    def _only_waits(self, rows: Sequence[Job]) -> bool:
        """Whether nothing of these jobs runs or can run now; remembers when the next try is due."""
        due: list[float] = []
        for row in rows:
            if row.paused:
                continue
            tasks = all_tasks(self.house.ledger, row.id)
            if any(_moves(t) for t in tasks):
                return False
            due += [t.due_in for t in tasks if t.state is TaskState.READY and t.due_in]
        self.due_in = min(due) if due else None
        return True

    @contextmanager
    def _looking(self, look: Looker | None) -> Iterator[None]:
        if look is None:
            yield
            return
        over = threading.Event()
        watches = [Watch(self.house.ledger, job, self.slots or self.house.slots) for job in self.jobs]

        def go() -> None:
            while not over.wait(LOOK_SECONDS):
                with suppress(RushesError):  # a busy store: the next look tells
                    look([watch.look() for watch in watches])

        thread = threading.Thread(target=go, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            with suppress(RushesError):
                look([watch.look() for watch in watches])

    @contextmanager
    def _listening(self, on: bool) -> Iterator[None]:
        if not on:
            yield
            return

        def told(number: int, _frame: FrameType | None) -> None:
            self.signal = number
            self.shell.tell()
            self.on_signal(number)

        before = {s: signal.signal(s, told) for s in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def run(
    house: House,
    added: Sequence[Added],
    slots: int | None = None,
    look: Looker | None = None,
    *,
    signals: bool = False,
    on_signal: OnSignal = lambda _number: None,
) -> Ran:
    """Work on what was added until it is done, and say how it ended."""
    begun = time.monotonic()
    jobs = list(dict.fromkeys(a.job.id for a in added if a.job))
    refused = tuple(a for a in added if a.error)
    todo = [j for j in jobs if house.ledger.job(j).state is not JobState.COMPLETED]
    work = Work(house, todo, slots, on_signal=on_signal)
    if todo:
        work.run(look, signals=signals)
    else:
        sweep(house.ledger, house.blobs)  # names that a killed worker still owed
    rows = tuple(house.ledger.job(job) for job in jobs)
    return Ran(rows, refused, time.monotonic() - begun, bool(todo), work.signal, work.due_in)


def _moves(task: Task) -> bool:
    return task.state is TaskState.LEASED or (task.state is TaskState.READY and not task.due_in and not task.parked)
