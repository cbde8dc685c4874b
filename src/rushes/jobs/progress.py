"""Progress of a job: chunks per stage, speed, time worked, time left, events."""

import itertools
import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from rushes.domain.event import Event, EventType
from rushes.domain.job import FINAL, Job
from rushes.domain.keys import parse_task_id
from rushes.domain.task import Task, TaskState
from rushes.ledger.pages import all_tasks
from rushes.ledger.port import Ledger
from rushes.plan.schedule import PlannedWork

Range = tuple[float, float]  # seconds
ESTIMATE_SECONDS = 1.0  # between two estimates of what is left
IN_TURN = 10  # jobs that nothing is known to have happened to: 69 ms for 500 of them is too long a look


@dataclass(frozen=True, slots=True)
class StageProgress:
    """One stage of one job."""

    stage: str
    done: int
    total: int
    running: float  # chunks' worth of work in progress: the fractions of what runs now, added up
    active: int
    speed: float | None  # media seconds per second of slot time, None until something is done
    remaining: Range | None = None  # if every slot worked on it


@dataclass(frozen=True, slots=True)
class JobProgress:
    """A job at one moment."""

    job: Job
    stages: tuple[StageProgress, ...]
    elapsed: float
    speed: float | None  # film time finished per second, over all stages
    left: "TimeLeft | None" = None
    worked: float = 0.0  # seconds in which at least one task of it ran, without the times between

    @property
    def remaining(self) -> Range | None:
        """Seconds that nine of ten runs stay between; None while nothing is known."""
        return self.left.range if self.left else None


@dataclass(frozen=True, slots=True)
class TimeLeft:
    """How long a job still takes."""

    range: Range
    stages: Mapping[str, Range]
    seconds: float  # the middle of the range
    slot_seconds: float  # of all its tasks one after the other


Measured = Mapping[str, Iterable[tuple[float, float]]]  # by stage: seconds of film and of work of finished tasks


class Estimator(Protocol):
    """Says how long jobs still take."""

    def left(self, job: Job, work: Mapping[str, tuple[PlannedWork, float]], measured: Measured) -> TimeLeft | None:
        """What is left of a job: its unfinished tasks in plan order with the share of each that is still to do."""


@dataclass(slots=True)
class _Stage:
    total: int = 0
    done: set[str] = field(default_factory=set)
    measured: list[tuple[float, float]] = field(default_factory=list)


class JobWatcher:
    """Looks at one job again and again; reads the plan once and afterwards only what is new."""

    def __init__(self, ledger: Ledger, job: str, estimator: Estimator) -> None:
        self._ledger, self._id, self._estimator = ledger, job, estimator
        self._begin("")

    def _begin(self, created_at: str) -> None:
        self._created_at = created_at
        self._stages: dict[str, _Stage] = {}
        self._work: dict[str, PlannedWork] = {}
        self._busy: list[Range] = []  # when an attempt ran, by the clock of the ledger
        self._after = 0
        self._begun = time.monotonic()
        self._planned = False
        self._first: int | None = None
        self._left: TimeLeft | None = None
        self._estimated = -ESTIMATE_SECONDS

    def look(self) -> JobProgress:
        """The job now."""
        job = self._ledger.job(self._id)
        if job.created_at != self._created_at:  # also one that was deleted, and asked for again
            self._begin(job.created_at)
        if job.facts and not self._planned:
            self._read_plan(job)
        self._read_events()
        leased = self._ledger.tasks(self._id, TaskState.LEASED).rows
        self._estimate(job, {t.id: t.progress for t in leased})
        stages = tuple(self._stage(name, leased) for name in self._stages)
        elapsed = time.monotonic() - self._begun
        return JobProgress(job, stages, elapsed, self._speed(job), self._left, busy_seconds(self._busy))

    def _estimate(self, job: Job, progress: Mapping[str, float]) -> None:
        """Again, if the last time is a while ago."""
        if job.state in FINAL:
            self._left = None
        elif self._left is None or time.monotonic() - self._estimated >= ESTIMATE_SECONDS:
            done = {id for stage in self._stages.values() for id in stage.done}
            left = {id: (work, 1.0 - progress.get(id, 0.0)) for id, work in self._work.items() if id not in done}
            self._left = self._estimator.left(job, left, {name: s.measured for name, s in self._stages.items()})
            self._estimated = time.monotonic()

    def _read_plan(self, job: Job) -> None:
        length = json.loads(job.facts)["duration_us"] / 1e6
        self._work = {}
        for stage in self._stages.values():
            stage.total = 0
        for task in all_tasks(self._ledger, self._id):
            if task.state is TaskState.CANCELLED and task.stage in job.cancelled_stages:
                continue
            self._stages.setdefault(task.stage, _Stage()).total += 1
            self._work[task.id] = PlannedWork.of(task.id, task.stage, task.spec, length)
        self._planned = True

    def _read_events(self) -> None:
        while self._planned:
            events = self._ledger.events(self._id, self._after)
            for event in events:
                self._count(event)
                if event.type is EventType.TRUNCATED:
                    self._count_tasks()
                if "stages" in event.data or event.data.get("state") == TaskState.CANCELLED:
                    self._read_plan(self._ledger.job(self._id))  # stages were cancelled, or go on
            if not events:
                return
            self._after = events[-1].number

    def _count_tasks(self) -> None:
        """What is done, though the events that told so are no longer kept."""
        for task in all_tasks(self._ledger, self._id, TaskState.DONE):
            self._stages.setdefault(task.stage, _Stage()).done.add(task.id)
            if task.started_at and task.finished_at:
                self._busy.append((_seconds(task.started_at), _seconds(task.finished_at)))

    def _count(self, event: Event) -> None:
        type, task, data = event.type, event.task or "", event.data
        if type is EventType.REVIVED and task and (stage := self._stages.get(parse_task_id(task)[1])):
            stage.done.discard(task)
        stage = self._stages.get(str(data.get("stage", "")))
        if stage is None or type not in (EventType.DONE, EventType.ADOPTED):
            return
        stage.done.add(task)
        if type is EventType.ADOPTED:
            return
        seconds = float(str(data.get("seconds") or 0.0))
        if seconds > 0 and task in self._work:
            stage.measured.append((self._work[task].media_seconds, seconds))
            end = _seconds(event.at)
            self._busy.append((end - seconds, end))

    def _stage(self, name: str, leased: tuple[Task, ...]) -> StageProgress:
        mine, kept = [t for t in leased if t.stage == name], self._stages[name]
        rates = sorted(media / seconds for media, seconds in kept.measured)
        speed = rates[len(rates) // 2] if rates else None
        left = self._left.stages.get(name) if self._left and len(kept.done) < kept.total else None
        return StageProgress(name, len(kept.done), kept.total, sum(t.progress for t in mine), len(mine), speed, left)

    def _speed(self, job: Job) -> float | None:
        if self._first is None:
            self._first = job.counts.done  # what an earlier run did says nothing about this one's speed
        if not job.facts or not job.counts.total:
            return None
        share = (job.counts.done - self._first) / job.counts.total
        return float(json.loads(job.facts)["duration_us"]) / 1e6 * share / max(0.001, time.monotonic() - self._begun)


def _seconds(at: str) -> float:
    return datetime.fromisoformat(at).timestamp()


def busy_seconds(intervals: Iterable[Range]) -> float:
    """How much time some intervals cover; where two overlap it counts once, and what lies between does not."""
    total, until = 0.0, -math.inf
    for begin, end in sorted(intervals):
        total += max(0.0, end - max(begin, until))
        until = max(until, end)
    return total


class JobsWatcher:
    """Looks at many jobs again and again: at those that moved or are worked on, and at a few others in turn."""

    def __init__(self, ledger: Ledger, jobs: Iterable[str], estimator: Estimator) -> None:
        self._ledger = ledger
        self._watches = {job: JobWatcher(ledger, job, estimator) for job in jobs}
        self._turn = itertools.cycle(self._watches)
        self._seen: dict[str, JobProgress] = {}
        self._cursor = ""

    def look(self) -> list[JobProgress]:
        """Every job, as it is now or was a little while ago."""
        some = {job for job, seen in self._seen.items() if any(s.active for s in seen.stages)}
        some |= self._moved() | set(itertools.islice(self._turn, IN_TURN)) | (self._watches.keys() - self._seen.keys())
        self._seen |= {job: watch.look() for job, watch in self._watches.items() if job in some}
        return [self._seen[job] for job in self._watches]

    def _moved(self) -> set[str]:
        moved: set[str] = set()
        jobs, self._cursor = self._ledger.changed(self._cursor)
        while jobs:
            moved.update(jobs)
            jobs, self._cursor = self._ledger.changed(self._cursor)
        return moved


def follow(ledger: Ledger, job: str, after: int, pause: Callable[[], bool]) -> Iterator[Event]:
    """Events after a number until the job is final. `pause` waits a little and answers whether to go on."""
    while True:
        events = ledger.events(job, after)
        yield from events
        if events:
            after = events[-1].number
            continue
        row = ledger.job(job)
        if (row.state in FINAL and row.last_event == after) or not pause():
            return
