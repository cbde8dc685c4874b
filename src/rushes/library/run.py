"""Doing the work here and now: submit, work in this process until it is done, and say what came of it."""

import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import cast

from rushes.domain import errors
from rushes.domain.errors import Interrupted, RushesError, Terminated
from rushes.domain.job import FINAL, Job, JobState
from rushes.domain.task import Task, TaskState
from rushes.home import Home
from rushes.jobs.intake import IntakeResult
from rushes.jobs.models import missing
from rushes.jobs.progress import Snapshot, Watches
from rushes.ledger.pages import all_tasks
from rushes.ledger.port import Ledger
from rushes.library.weights import Weights
from rushes.plan.planner import JobSpec
from rushes.wiring import worker
from rushes.worker import drain
from rushes.worker.inputs import DiskSpace, Input
from rushes.worker.publish import sweep
from rushes.worker.shell import Shell
from rushes.worker.task_filter import AbleWork, OwnWork, is_due

LOOK_SECONDS = 0.25
FIRST_SECONDS = 2.0  # for the first look, which tells what was done before; hundreds of films hold nothing up

Looker = Callable[[Sequence[Snapshot]], None]
OnSignal = Callable[[int], None]
OnRoom = Callable[[DiskSpace], None]  # called in the worker's loop, more than once for one change


def stopped(number: int) -> RushesError:
    """What a signal means for work that cannot be shown half done."""
    kind = Interrupted if number == signal.SIGINT else Terminated
    return kind("stopped before it was finished")


@dataclass(frozen=True, slots=True)
class RunReport:
    """How a run ended."""

    jobs: tuple[Job, ...]
    refused: tuple[IntakeResult, ...]
    seconds: float
    before: Mapping[str, int] = field(default_factory=dict)  # jobs that were open when it began: tasks done by then
    signal: int = 0  # the signal that ended it
    due_in: float | None = None  # nothing is left but work that backs off this long
    lacks: tuple[str, ...] = ()  # nothing is left but work that needs these models
    skipped: tuple[IntakeResult, ...] = ()  # passed over, which is no fault
    code: int = 1  # when nothing came of it: the only thing's own, if there was but one
    due_job: str = ""  # whose turn it is then

    @property
    def worked(self) -> bool:
        """Whether there was anything to do."""
        return bool(self.before)

    @property
    def paused(self) -> tuple[Job, ...]:
        """Jobs that somebody paused meanwhile."""
        return tuple(j for j in self.jobs if j.paused and j.state not in FINAL)

    @property
    def exit_code(self) -> int:
        """As the table of exit codes says; 3 as soon as something came of it."""
        if self.signal:
            return 128 + self.signal
        if self.due_in is not None or self.lacks or self.paused:
            return 5
        bad = [j for j in self.jobs if j.state is not JobState.COMPLETED]
        if not bad and not self.refused:
            return 0
        some = len(bad) < len(self.jobs) or any(job.facts for job in bad)
        return 3 if some else self.code


@dataclass(slots=True)
class Work:
    """Some jobs and the worker that does them."""

    home: Home
    jobs: Sequence[str]
    slots: int | None = None
    lanes: tuple[str, ...] = ()
    until_idle: bool = False
    due_in: float | None = None
    due_job: str = ""
    lacks: frozenset[str] = frozenset()
    signal: int = 0
    on_signal: OnSignal = lambda _number: None
    on_room: OnRoom = lambda _room: None
    weights: Weights | None = None  # lacking; until they are here, what needs them is left alone
    shell: Shell = field(init=False)
    _able: AbleWork | None = field(init=False, default=None)
    _open: list[str] = field(init=False)  # jobs that were not final when they were last looked at
    _lacking: dict[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._open = list(self.jobs)
        until = self._nothing_left if self.jobs else self._is_idle
        lanes = self.lanes or (self._every_lane() if self.jobs else ())
        self.shell = worker(self.home, slots=self.slots, lanes=lanes, until=until, ledger=self._some_work())
        self.shell.seen = self._seen

    def _some_work(self) -> Ledger | None:
        """The ledger that hands out what is to be done here; None for all of it."""
        if self.jobs:
            return cast(Ledger, OwnWork(self.home.ledger, self.jobs, self._can))
        if self.weights is None or self.weights.here():
            return None
        self._able = AbleWork(self.home.ledger, self._can, self.weights.here)
        return cast(Ledger, self._able)

    def _every_lane(self) -> tuple[str, ...]:
        """Here and now means every lane: nobody else may come for the work of these jobs."""
        return tuple(dict.fromkeys((*self.home.lanes, *self.home.every_lane)))

    def serve(self) -> int:
        """Be a worker of the home until a signal comes (or, if asked, nothing is left); answers the exit code."""
        self.run(signals=True)
        return 128 + self.signal if self.signal else 0

    def run(self, look: Looker | None = None, *, signals: bool = False) -> None:
        """Work until the jobs are final, nothing but back-off is left, or a signal comes."""
        with self._looking(look), self._listening(signals):
            self.shell.run()

    def _nothing_left(self, shell: Shell) -> bool:
        """One look while the last job is open: with 500 jobs, all of them would take 30 ms every second."""
        while self._open and self.home.ledger.job(self._open[-1]).state in FINAL:
            self._open.pop()
        if not self._open:  # unless somebody tries one of them again
            self._open = [job for job in self.jobs if self.home.ledger.job(job).state not in FINAL]
        if not self._open:
            return True
        if not shell.idle:
            return False
        open_jobs = [r for job in self._open if (r := self.home.ledger.job(job)).state not in FINAL]
        return self._only_waits(open_jobs)

    def _is_idle(self, shell: Shell) -> bool:
        waits = not shell.state.room or (self.weights and self.weights.fetching)
        reads = self._able and self._able.halfway
        return self.until_idle and shell.idle and not waits and not reads

    def _only_waits(self, rows: Sequence[Job]) -> bool:
        """Whether nothing of these jobs runs or can run now; remembers when the next try is due, or what is missing."""
        due: list[tuple[float, str]] = []
        lacks: set[str] = set()
        for row in rows:
            if row.paused:
                continue
            tasks = all_tasks(self.home.ledger, row.id)
            if any(t.state is TaskState.LEASED or (is_due(t) and self._can(t)) for t in tasks):
                return False
            due += [(t.due_in, t.job) for t in tasks if t.state is TaskState.READY and t.due_in]
            lacks |= {model for t in tasks if is_due(t) for model in self._missing(t.job).get(t.stage, ())}
        self.due_in, self.due_job = min(due) if due else (None, "")
        self.lacks = frozenset(lacks)
        return True

    def _can(self, task: Task) -> bool:
        return task.stage not in self._missing(task.job)

    def _missing(self, job: str) -> Mapping[str, tuple[str, ...]]:
        """The models that the stages of a job lack, looked up once: whoever fetches them begins again."""
        if job not in self._lacking:
            asked = JobSpec.from_text(self.home.ledger.job(job).payload)
            self._lacking[job] = missing(self.home, asked.stages, asked.profile)
        return self._lacking[job]

    @contextmanager
    def _looking(self, look: Looker | None) -> Iterator[None]:
        if look is None:
            yield
            return
        over, first = threading.Event(), threading.Event()
        watches = Watches(self.home.ledger, self.jobs, self.slots or self.home.slots)

        def once() -> None:
            with suppress(RushesError):  # a busy store: the next look tells
                look(watches.look())

        def go() -> None:
            once()
            first.set()
            while not over.wait(LOOK_SECONDS):
                once()

        thread = threading.Thread(target=go, daemon=True)
        thread.start()
        first.wait(FIRST_SECONDS)
        try:
            yield
        finally:
            over.set()
            thread.join()
            once()

    @contextmanager
    def _listening(self, on: bool) -> Iterator[None]:
        if not on:
            yield
            return
        with drain.signals(self._told), drain.notices(self.home.settings.spot_notice, self._noticed):
            yield

    def _seen(self, happening: Input) -> None:
        if isinstance(happening, DiskSpace):
            self.on_room(happening)

    def _told(self, number: int) -> None:
        self.signal = number
        self.shell.tell(signal.Signals(number).name)
        self.on_signal(number)

    def _noticed(self, why: str, within: float) -> None:
        self.signal = signal.SIGTERM
        self.shell.tell(why, within)


def run(
    home: Home,
    added: Sequence[IntakeResult],
    slots: int | None = None,
    look: Looker | None = None,
    *,
    signals: bool = False,
    on_signal: OnSignal = lambda _number: None,
    on_room: OnRoom = lambda _room: None,
) -> RunReport:
    """Work on what was added until it is done, and say how it ended."""
    begun = time.monotonic()
    jobs = list(dict.fromkeys(a.job.id for a in added if a.job))
    refused = tuple(a for a in added if a.error)
    before = {r.id: r.counts.done for r in map(home.ledger.job, jobs) if r.state is not JobState.COMPLETED}
    work = Work(home, [*before], slots, on_signal=on_signal, on_room=on_room)
    if before:
        work.run(look, signals=signals)
    else:
        sweep(home.ledger, home.blobs)  # names that a killed worker still owed
    rows = tuple(home.ledger.job(job) for job in jobs)
    skipped = tuple(a for a in added if a.skipped)
    return RunReport(
        rows,
        refused,
        time.monotonic() - begun,
        before,
        work.signal,
        work.due_in,
        tuple(sorted(work.lacks)),
        skipped,
        _code(home, rows, refused),
        work.due_job,
    )


def _code(home: Home, jobs: Sequence[Job], refused: Sequence[IntakeResult]) -> int:
    """What the failure of the only thing means as an exit code; several things have none of their own."""
    if len(jobs) + len(refused) != 1:
        return 1
    if refused and refused[0].error:
        return refused[0].error.exit_code
    dead = home.ledger.tasks(jobs[0].id, TaskState.DEAD, limit=1).rows
    kind = getattr(errors, dead[0].failure.kind, RushesError) if dead and dead[0].failure else RushesError
    return int(kind.exit_code)
