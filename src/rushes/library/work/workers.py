"""Workers of this process: for some jobs, until nothing of them can run now; or for all jobs of a home."""

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

from rushes import tracing
from rushes.domain.errors import NeverWorks, StoreAway, StoreMissing, StoreRefuses
from rushes.domain.job import FINAL, Job
from rushes.domain.task import Task, TaskState
from rushes.domain.worker import site_of
from rushes.engines.models.background_fetch import BackgroundFetch, OnFetch
from rushes.home import Home
from rushes.jobs.intake import JobRequest, missing_models
from rushes.jobs.needed_models import missing_by_stage
from rushes.ledger.pages import all_tasks
from rushes.library.watching.event_listener import open_listener
from rushes.library.work.metrics_endpoint import serve_metrics
from rushes.library.work.retention import Retention
from rushes.library.work.task_spans import TaskSpans
from rushes.library.work.worker_figures import WorkerFigures
from rushes.metrics import Family, text
from rushes.otlp.figures import sending_figures
from rushes.plan.planner import JobSpec
from rushes.settings import REMOTE
from rushes.wiring import check_stores
from rushes.wiring.workers import worker
from rushes.worker.drain import stop_requests
from rushes.worker.inputs import Input
from rushes.worker.shell import Shell
from rushes.worker.task_filter import TaskFilter, is_due

OnStop = Callable[[int], None]
RETRY_SECONDS = 1.0
__all__ = ["HomeWorker", "OnFetch", "wait_for_store"]


def wait_for_store(home: Home, on_wait: Callable[[StoreAway, float], None]) -> None:
    """Open the stores; one that does not answer yet is waited for, and `on_wait` is told once, with the seconds.

    Raises:
        StoreAway: it did not answer in time, or it answers that it does not know us.
    """
    end, told = time.monotonic() + home.settings.start_seconds, False
    while True:
        try:
            check_stores(home)
        except StoreAway as e:
            if isinstance(e, StoreMissing | StoreRefuses) or time.monotonic() >= end:
                raise
            if not told:
                on_wait(e, home.settings.start_seconds)
            told = True
            time.sleep(RETRY_SECONDS)
        else:
            return


class JobModels:
    """Which models the stages of jobs need and this machine does not have, looked up once a job."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._missing: dict[str, Mapping[str, tuple[str, ...]]] = {}

    def missing(self, task: Task) -> tuple[str, ...]:
        """The models that a task needs and that are not here."""
        if task.job not in self._missing:
            self._missing[task.job] = self._by_stage(task.job)
        return self._missing[task.job].get(task.stage, ())

    def _by_stage(self, job: str) -> Mapping[str, tuple[str, ...]]:
        try:
            spec = JobSpec.from_text(self._home.ledger.job(job).payload)
        except NeverWorks:  # whoever takes its task says so
            return {}
        return missing_by_stage(self._home, set(spec.stages) - {*spec.stub}, spec.profile, spec.models)

    def present(self, task: Task) -> bool:
        """Whether a task can be worked on here."""
        return not self.missing(task)


class _Worker:
    """A worker of this process that may be asked to stop."""

    home: Home
    shell: Shell
    signal = 0  # that asked it to stop

    def listening(self, on_stop: OnStop) -> AbstractContextManager[None]:
        """Stop for signals and Spot notices meanwhile; only in the main thread."""

        def stop(number: int) -> None:
            self.signal = number
            on_stop(number)

        return stop_requests(self.shell.request_stop, self.home.settings.spot_notice, stop)


class JobWorker(_Worker):
    """Works on some jobs in every lane: no other worker may come for them."""

    def __init__(self, home: Home, jobs: Sequence[str], slots: int | None = None) -> None:
        self.home, self.jobs, self.slots = home, tuple(jobs), slots
        self.due_in: float | None = None  # nothing is left but work that backs off this long,
        self.due_job = ""  # of this job
        self.missing_models: tuple[str, ...] = ()  # nothing is left but work that needs these
        self._open = list(jobs)  # those that were not final at the last look
        self._models = JobModels(home)
        lanes = tuple(dict.fromkeys((*home.lanes, *home.every_lane)))
        filter = TaskFilter(self._models.present, self.jobs)
        self.shell = worker(home, slots=slots, lanes=lanes, until=self.nothing_left, filter=filter)

    def run(self, *, signals: bool = False) -> None:
        """Work until the jobs are final, nothing of them can run now, or a signal comes."""
        with self.listening(lambda _signal: None) if signals else nullcontext():
            self.shell.run()

    def nothing_left(self, shell: Shell) -> bool:
        """One look while the last job is open: with 500 jobs, all of them would take 30 ms every second."""
        while self._open and self.home.ledger.job(self._open[-1]).state in FINAL:
            self._open.pop()
        if not self._open:  # unless one of them was retried
            self._open = [job for job in self.jobs if self.home.ledger.job(job).state not in FINAL]
        if not self._open:
            return True
        if not shell.idle:
            return False
        rows = [row for job in self._open if (row := self.home.ledger.job(job)).state not in FINAL]
        return self._only_waits(rows)

    def _only_waits(self, rows: Sequence[Job]) -> bool:
        """Whether nothing of these jobs runs or can run now; keeps when the next try is due, and what is missing."""
        due: list[tuple[float, str]] = []
        lacks: set[str] = set()
        for row in rows:
            if row.paused:
                continue
            tasks = all_tasks(self.home.ledger, row.id)
            if any(t.state is TaskState.LEASED or t.awaits_answer or (is_due(t) and self._takes(t)) for t in tasks):
                return False
            due += [(t.due_in, t.job) for t in tasks if t.state is TaskState.READY and t.due_in]
            lacks |= {model for t in tasks if is_due(t) for model in self._models.missing(t)}
        self.due_in, self.due_job = min(due) if due else (None, "")
        self.missing_models = tuple(sorted(lacks))
        return True

    def _takes(self, task: Task) -> bool:
        """Whether it can be worked on here: its models are there, and its original is seen."""
        return site_of(task.lane) in ("", self.home.site) and self._models.present(task)


class HomeWorker(_Worker):
    """Takes tasks of every job; those that need models which are still missing wait."""

    def __init__(
        self,
        home: Home,
        slots: int | None = None,
        lanes: Sequence[str] = (),
        *,
        until_idle: bool = False,
        on_fetch: OnFetch | None = None,
    ) -> None:
        """With `on_fetch` it fetches missing models of usual jobs meanwhile; it is called in another thread."""
        self.home, self._until_idle = home, until_idle
        self.models = BackgroundFetch(home.models, self._missing_models, on_fetch) if on_fetch else None
        self._retention = Retention(home, secrets.token_hex(8))
        self._remote = home.settings.store.startswith(REMOTE)  # then the server's workers clear up
        self.shell = worker(
            home,
            slots=slots,
            lanes=lanes,
            until=self._nothing_left,
            filter=self._filter(),
            retention=None if until_idle or self._remote else self._retention.step,
        )
        self._figures = WorkerFigures(stages=home.specs)
        self._watchers: list[Callable[[Input], None]] = [self._figures.on_input]
        if tracing.is_on():
            self._watchers.append(TaskSpans().on_input)
        self.shell.on_input = self._on_input

    def show(self, on_input: Callable[[Input], None]) -> None:
        """Tell of everything that happens in the worker's loop."""
        self._watchers.append(on_input)

    def _on_input(self, input: Input) -> None:
        for watch in self._watchers:
            watch(input)

    def serving_metrics(self, host: str, port: int) -> AbstractContextManager[int]:
        """Answer at /healthz and /metrics meanwhile; gives the port. Raises Refused: it is taken."""
        return serve_metrics(host, port, lambda: text(self._told()))

    def run(self, on_stop: OnStop = lambda _signal: None) -> int:
        """Work until a signal comes or, if so asked, nothing is left; the exit code."""
        with sending_figures("worker", self._told), self.listening(on_stop), self._events():
            self.shell.run()
        self._retention.close()
        return 128 + self.signal if self.signal else 0

    def _told(self) -> list[Family]:
        return self._figures.families(self.shell.state, self.shell.free_bytes)

    def _events(self) -> AbstractContextManager[None]:
        """Hears storage events meanwhile, if it stays and has the credentials for it."""
        return nullcontext() if self._until_idle or self._remote else open_listener(self.home).listening()

    def _missing_models(self) -> tuple[str, ...]:
        return missing_models(self.home, JobRequest())

    def _filter(self) -> TaskFilter | None:
        """None where no model is missing: who takes all tasks may take hints from a queue."""
        models = self.models
        if models is None or models.complete():
            return None
        if self._remote:  # it cannot look for tasks that need none
            models.wait()
            return None
        return TaskFilter(JobModels(self.home).present, is_on=lambda: not models.complete())

    def _nothing_left(self, shell: Shell) -> bool:
        waits = not shell.state.has_space or (self.models and self.models.running)
        return self._until_idle and shell.idle and not waits
