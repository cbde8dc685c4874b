"""Watching what is told of a job's attempts: what there is, then what comes, by looking again and again.

Every server reads the ledger, so that it does not matter to which of them a worker has told it.
"""

import time
from collections.abc import Callable, Iterator
from typing import Protocol

from rushes.domain.event import Event, EventType
from rushes.domain.keys import task_id
from rushes.domain.task import TaskState
from rushes.home import Home
from rushes.ledger.port import Ledger
from rushes.ledger.rules import LOG_LINES
from rushes.library.job_events.attempts import FootageWatch
from rushes.library.job_events.work_event import EventFilter, Truncation, WorkEvent
from rushes.library.jobs import Jobs
from rushes.library.queues import RECIPE, STAGE
from rushes.metrics import PROCESS

LOOK_SECONDS, QUIET_SECONDS = 0.25, 1.0  # between looks: while something is told, and reached while nothing is
_DIGITS = 15  # of a number that JSON carries everywhere
_OVER = (TaskState.DONE, TaskState.DEAD, TaskState.CANCELLED)


class EventWatch(Protocol):
    """Looks at one job; asked by one caller at a time."""

    over: bool  # the job is final, and everything was told
    more: bool  # there may be more at once

    def look(self) -> Iterator[WorkEvent]:
        """What is new."""


def watch(
    home: Home, job: str, from_sequence: int = 0, wanted: EventFilter | None = None, from_attempt: int = 0
) -> EventWatch:
    """What is told of a job from a number on: of the attempt in a queue of one's own, or of footage's history.

    A number of an attempt that is not the latest any more says nothing: the latest is told whole.
    Raises:
        NotFound: there is no such job.
    """
    row, wanted = Jobs(home).get(job), wanted or EventFilter()
    if row.recipe == RECIPE:
        return QueueWatch(home.ledger, row.id, max(0, from_sequence) - 1, wanted, from_attempt)
    return FootageWatch(home.ledger, row.id, max(0, from_sequence - 1), wanted)


def follow(found: EventWatch, goes_on: Callable[[], bool] = lambda: True) -> Iterator[WorkEvent]:
    """What is told until the job is final."""
    pause, begun, past = LOOK_SECONDS, time.monotonic(), True
    while goes_on():
        news = 0
        for event in found.look():
            news += 1
            yield event
        if past:
            PROCESS.add("rushes_streams_historical_replay_events_total", news)
        if past and not found.more:
            past = False
            PROCESS.observe("rushes_streams_historical_replay_duration_seconds", time.monotonic() - begun)
        if found.over:
            return
        pause = next_pause(pause, news=bool(news))
        time.sleep(0.0 if found.more else pause)


def read_place(text: str) -> tuple[int, int]:
    """The attempt (0: none) and the number that follow a place; the beginning if it is none."""
    attempt, _, number = text.rpartition(".")
    if not (number.isascii() and number.isdigit() and len(number) <= _DIGITS):
        return 0, 0
    is_named = attempt.isascii() and attempt.isdigit() and len(attempt) <= _DIGITS
    return int(attempt) if is_named else 0, int(number) + 1


def next_pause(pause: float, *, news: bool) -> float:
    """Seconds until the next look: longer and longer while nothing is told."""
    return LOOK_SECONDS if news else min(QUIET_SECONDS, 1.25 * pause)


class QueueWatch:
    """What the worker of a job in a queue of one's own tells of its latest attempt."""

    def __init__(self, ledger: Ledger, job: str, seen: int, wanted: EventFilter, attempt: int = 0) -> None:
        self._ledger, self._job, self._task, self._wanted = ledger, job, task_id(job, STAGE, None), wanted
        self._attempt, self._seen, self._truncation = attempt, seen, Truncation()
        self._live = self.more = self.over = False

    def look(self) -> Iterator[WorkEvent]:
        """What is new; a new attempt is told once nothing more comes of the one before."""
        rows = self._ledger.tasks(ids=[self._task]).rows  # before the lines: what comes with the end is among them
        over = not rows or rows[0].state in _OVER
        self._live = self._live or self._begin()
        lines = self._lines(rows[0].fence if rows else 0)
        for line in lines:
            self._seen = line.number
            event = WorkEvent.of_line(line.number, self._attempt, str(line.data["line"]), self._task)
            if self._wanted.wants(event):
                yield self._truncation.told(event)
        self.more, self.over = bool(lines), not lines and over

    def _begin(self) -> bool:
        """Find the attempt that is told, and whether what was told first of it is no longer kept."""
        for first in self._read(-1, 1):
            self._attempt = self._attempt or _fence(first)
            if self._attempt == _fence(first) and first.number > self._seen + 1:
                if first.number > max(self._seen, 0) + 1:  # else its worker counts from 1
                    self._truncation.note(first.number)
                self._seen = first.number - 1
            return True
        return False

    def _lines(self, latest: int) -> tuple[Event, ...]:
        """Lines that were not seen: of the attempt that is told, then of a later one."""
        lines = self._read(self._seen)
        if lines and _fence(lines[0]) == self._attempt:
            if lines[-1].number - LOG_LINES > self._seen:  # more was told between two looks than is kept
                self._truncation.note(lines[0].number)
                PROCESS.add("rushes_channels_overflow_total")
                PROCESS.add("rushes_events_dropped_total", max(0, lines[0].number - 1 - self._seen), reason="not_kept")
            return lines
        first = self._read(-1) if 0 < self._attempt < latest else ()
        if not first or _fence(first[0]) == self._attempt:
            return ()
        self._attempt = _fence(first[0])  # which begins to count again
        return first

    def _read(self, after: int, limit: int = LOG_LINES) -> tuple[Event, ...]:
        return self._ledger.events(self._job, after, {EventType.LOG}, self._task, limit)


def _fence(line: Event) -> int:
    return int(str(line.data["fence"]))
